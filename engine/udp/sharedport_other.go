//go:build !linux

package udp

func newSocketMaker(uint16) socketMaker { return portable{} }
