package tuning

import (
	"context"
	"errors"
	"fmt"

	"pelt/model"
	"pelt/tune"
)

// toggle makes a setting of this host before trials that have it, and takes it back before
// those that have not. The zero toggle does nothing.
type toggle struct {
	tuner  *tune.Tuner
	change tune.Change
	made   bool
}

// refusal is a setting that this host does not take.
type refusal struct{ error }

func (r *refusal) Unwrap() error { return r.error }

func (t *toggle) before(_ context.Context, trial model.Trial) error {
	switch trial.Tuning {
	case model.TuningWith:
		return t.on(true)
	case model.TuningWithout:
		return t.off()
	}
	return nil
}

// on makes the setting: to try it, or for good.
func (t *toggle) on(try bool) error {
	if t.tuner == nil || t.made {
		return nil
	}
	done, err := t.tuner.Apply(tune.Request{Changes: []tune.Change{t.change}, Tried: try})
	if err != nil {
		return &refusal{err}
	}
	for _, d := range done {
		t.made = t.made || d.State == tune.Changed
	}
	return nil
}

func (t *toggle) off() error {
	if !t.made {
		return nil
	}
	t.made = false
	done, err := t.tuner.Revert(tune.RevertOptions{Last: true})
	if err != nil && !errors.Is(err, tune.ErrNothing) {
		return fmt.Errorf("take %s back: %w", t.change.Knob, err)
	}
	for _, d := range done {
		if d.State == tune.Kept {
			return fmt.Errorf("take %s back: %s", t.change.Knob, d.Text)
		}
	}
	return nil
}
