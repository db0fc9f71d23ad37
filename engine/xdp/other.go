//go:build !linux || !(amd64 || arm64)

package xdp

import (
	"pelt/engine"
	"pelt/model"
)

func whyUnable(engine.Role) model.Reason { return model.Reason{Code: model.FramesElsewhere} }
func Interfaces() ([]Interface, error)   { return nil, nil }

func (*transport) open([]engine.Stream) (frameEnd, model.Reason, error) {
	return nil, whyUnable(""), nil
}

func (*transport) makeReady(engine.Stream) error { return nil }
func (*Engine) Ready(engine.Host, string) error  { return &engine.Refusal{Why: whyUnable("")} }

type port struct{}

func (*Engine) Close() error { return nil }
