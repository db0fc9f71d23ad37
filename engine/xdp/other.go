//go:build !linux || !(amd64 || arm64)

package xdp

import "pelt/engine"

const elsewhere = "XDP needs Linux on amd64 or arm64"

func whyUnable(engine.Role) string { return elsewhere }

// Interfaces lists none: XDP needs Linux.
func Interfaces() ([]Interface, error) { return nil, nil }

func (*transport) open([]engine.Stream) (frameEnd, string, error) { return nil, elsewhere, nil }

func (*transport) makeReady(engine.Stream) error { return nil }

// Ready can make no interface ready here.
func (*Engine) Ready(engine.Host, string) error { return &engine.Refusal{Why: elsewhere} }

type port struct{}

// Close has nothing to free.
func (*Engine) Close() error { return nil }
