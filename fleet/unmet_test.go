package fleet

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestNotMet(t *testing.T) {
	refused := errors.New("receiver: connect: the peer does not consent")
	for _, c := range []struct {
		err    error
		waited time.Duration
		unmet  bool
	}{
		{refused, time.Second, false},
		{refused, connectTimeout, true},
		{context.Canceled, 2 * connectTimeout, false},
	} {
		err := notMet(c.err, c.waited)
		if errors.Is(err, ErrUnmet) != c.unmet || !errors.Is(err, c.err) || err.Error() != c.err.Error() {
			t.Errorf("%v after %v is %v, unmet: %v", c.err, c.waited, err, errors.Is(err, ErrUnmet))
		}
	}
}
