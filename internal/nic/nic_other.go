//go:build !linux

package nic

import "errors"

// Conn is for Linux only: Open always fails here.
type Conn struct{}

var errLinux = errors.New("drivers can be asked on Linux only")

func Open() (*Conn, error)                             { return nil, errLinux }
func (c *Conn) Close()                                 {}
func (c *Conn) Driver(string) (string, error)          { return "", errLinux }
func (c *Conn) Speed(string) uint64                    { return 0 }
func (c *Conn) Get(iface, name string) (string, error) { return "", errLinux }
func (c *Conn) Set(iface, name, value string) error    { return errLinux }
