//go:build !linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"time"

	"pelt/lab/userlink"
	"pelt/model"
	"pelt/words"
)

// Labs need Linux; elsewhere each of these says so.
func unsupported() error {
	return fmt.Errorf("labs need Linux: %w", errors.ErrUnsupported)
}

func Open(context.Context, string, []model.Link) (*Lab, error) { return nil, unsupported() }
func Attach(string) (*Lab, error)                              { return nil, unsupported() }

func Hold(context.Context, string, string, []model.Link, userlink.Identify) error {
	return unsupported()
}

func StartHolder(context.Context, []string, ...string) (int, error) { return 0, unsupported() }
func List() ([]Info, error)                                         { return nil, unsupported() }
func Down(context.Context, string) error                            { return unsupported() }
func (way) overrun() (uint64, error)                                { return 0, unsupported() }
func (n *Node) JoinPackets(string) error                            { return unsupported() }
func (n *Node) OwnThread(string, int) error                         { return unsupported() }
func (n *Node) Urgent(string, bool)                                 {}
func (n *Node) ThreadTime(string) (time.Duration, error)            { return 0, unsupported() }
func (l *Lab) SetRouter(string) error                               { return unsupported() }
func (l *Lab) RouterAccount() (RouterAccount, error)                { return RouterAccount{}, unsupported() }

type routerState struct{}

func (*routerState) close() error                { return nil }
func Exec(string, string, []string) (int, error) { return 0, unsupported() }

func (n *Node) Shell(context.Context, string) ([]byte, error) { return nil, unsupported() }

func InUserNamespace() (bool, string)                     { return false, unsupported().Error() }
func RunInUserNamespace([]string, ...string) (int, error) { return 0, unsupported() }

func Probe(l words.Language) []Capability {
	return []Capability{{Name: "network-namespace", Reason: l.Error(unsupported()),
		Remedy: l.Say("run labs on Linux, or in a Linux virtual machine")}}
}

func (l *Lab) RestartDraws(uint64) {}

func (l *Lab) SetLinks([]model.Link, SetOptions) ([]LinkChanged, error) {
	return nil, unsupported()
}

func (l *Lab) readTBF(*Link, int) (*model.LinkResult, error) { return nil, unsupported() }
