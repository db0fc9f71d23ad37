//go:build !linux

package tcp

import "pelt/engine"

const opensConnections = false

func mostOpen(int64) (n int64, why string) { return 0, "" }

func (*opener) work(*stream) error {
	return &engine.Refusal{Why: "many connections are opened on Linux only"}
}
