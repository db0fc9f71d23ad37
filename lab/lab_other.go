//go:build !linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"pelt/lab/userlink"
	"pelt/model"
)

func unsupported() error {
	return fmt.Errorf("labs need Linux: %w", errors.ErrUnsupported)
}

// Open fails: labs need Linux.
func Open(context.Context, string, []model.Link) (*Lab, error) { return nil, unsupported() }

// Attach fails: labs need Linux.
func Attach(string) (*Lab, error) { return nil, unsupported() }

// Hold fails: labs need Linux.
func Hold(context.Context, string, string, []model.Link, userlink.Identify, func()) error {
	return unsupported()
}

// StartHolder fails: labs need Linux.
func StartHolder(context.Context, []string, ...string) (int, error) { return 0, unsupported() }

// ReportReady does nothing: labs need Linux.
func ReportReady(error) {}

// List fails: labs need Linux.
func List() ([]Info, error) { return nil, unsupported() }

// Down fails: labs need Linux.
func Down(context.Context, string) error { return unsupported() }

func (*Link) overrun() ([2]uint64, error) { return [2]uint64{}, unsupported() }

// JoinPackets fails: labs need Linux.
func (n *Node) JoinPackets(string) error { return unsupported() }

// OwnThread fails: labs need Linux.
func (n *Node) OwnThread(string, int) error { return unsupported() }

// ThreadTime fails: labs need Linux.
func (n *Node) ThreadTime(string) (time.Duration, error) { return 0, unsupported() }

// SetRouter fails: labs need Linux.
func (l *Lab) SetRouter(string) error { return unsupported() }

// RouterAccount fails: labs need Linux.
func (l *Lab) RouterAccount() (RouterAccount, error) { return RouterAccount{}, unsupported() }

type routerState struct{}

func (*routerState) close() error { return nil }

// Exec fails: labs need Linux.
func Exec(string, string, []string) (int, error) { return 0, unsupported() }

// BeFirst does nothing: labs need Linux.
func BeFirst() {}

// Program is a program that runs in a node: labs need Linux.
type Program struct{}

// Start fails: labs need Linux.
func (n *Node) Start(context.Context, ProgramOptions) (*Program, error) { return nil, unsupported() }

// Done is never closed: labs need Linux.
func (p *Program) Done() <-chan struct{} { return nil }

// Wait fails: labs need Linux.
func (p *Program) Wait() (Ending, error) { return Ending{}, unsupported() }

// Stop fails: labs need Linux.
func (p *Program) Stop() (Ending, error) { return Ending{}, unsupported() }

// Tail is empty: labs need Linux.
func (p *Program) Tail() []string { return nil }

// WaitListening fails: labs need Linux.
func (p *Program) WaitListening(context.Context, time.Duration) (netip.AddrPort, error) {
	return netip.AddrPort{}, unsupported()
}

// Privileged is false: labs need Linux.
func Privileged() bool { return false }

// InUserNamespace is false: labs need Linux.
func InUserNamespace() (bool, string) { return false, unsupported().Error() }

// RunInUserNamespace fails: labs need Linux.
func RunInUserNamespace([]string, ...string) (int, error) { return 0, unsupported() }

// Probe says why there are no labs here.
func Probe() []Capability {
	return []Capability{{Name: "network-namespace", Reason: unsupported().Error(), Remedy: "run labs on Linux, or in a Linux virtual machine"}}
}

// BeginAnew fails: labs need Linux.
func (l *Lab) BeginAnew() error { return unsupported() }

// Calibrate fails: labs need Linux.
func (l *Lab) Calibrate(context.Context) ([]model.LinkCalibration, error) { return nil, unsupported() }

func (l *Lab) readWay(kernelWay) (wayReading, error) { return wayReading{}, unsupported() }

// SetLinks fails: labs need Linux.
func (l *Lab) SetLinks([]model.LinkChange, SetOptions) ([]LinkChanged, error) {
	return nil, unsupported()
}

// Links fails: labs need Linux.
func (l *Lab) Links() ([]LinkWay, error) { return nil, unsupported() }

func (c *client) ask(request) (text, verdicts []byte, err error) { return nil, nil, unsupported() }
