package run

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"pelt/engine"
	"pelt/model"
	"pelt/observe"
)

// A host whose counters cannot be read says what could not be, and what the system said.
func TestWatchOfNothing(t *testing.T) {
	calls := 0
	refused := func(f func() error) error {
		if calls++; calls == 1 { // which asks for the namespace
			return f()
		}
		return unix.EPERM
	}
	w := watchKernel(&observe.Observer{Do: refused}, engine.WatchOrder{Trial: 1, Drops: model.DropsOff})
	if got := fmt.Sprint(w.account.Why); got != "[watch-failed: unread: network namespace: operation not permitted]" {
		t.Error(got)
	}
}
