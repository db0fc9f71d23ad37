//go:build !linux || !(amd64 || arm64)

package xdp

const elsewhere = "XDP needs Linux on amd64 or arm64"

func unable() string { return elsewhere }

func (e *end) open() (plane, string, error) { return nil, elsewhere, nil }

type hostState struct{}

func (hostState) close() error { return nil }
