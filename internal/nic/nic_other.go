//go:build !linux

package nic

import "errors"

// Conn is for Linux only: Open always fails here.
type Conn struct{}

var errLinux = errors.New("drivers can be asked on Linux only")

// Open always fails here.
func Open() (*Conn, error) { return nil, errLinux }

// Close does nothing.
func (c *Conn) Close() {}

// Driver is unknown here.
func (c *Conn) Driver(string) (string, error) { return "", errLinux }

// Speed is unknown here.
func (c *Conn) Speed(string) uint64 { return 0 }

// Settings are unknown here.
func (c *Conn) Settings(string) []Setting { return nil }

// Get always fails here.
func (c *Conn) Get(iface, name string) (string, error) { return "", errLinux }

// Set always fails here.
func (c *Conn) Set(iface, name, value string) error { return errLinux }
