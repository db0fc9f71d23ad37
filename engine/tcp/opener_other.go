//go:build !linux

package tcp

import (
	"pelt/engine"
	"pelt/model"
)

const opensConnections = false

func mostOpen(int64) (n int64, why model.Reason) { return 0, why }

func (*opener) work(*stream) error {
	return &engine.Refusal{Why: "many connections are opened on Linux only"}
}
