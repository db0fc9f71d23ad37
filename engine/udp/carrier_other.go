//go:build !linux

package udp

func newCarrier(uint16) carrier { return plain{} }
