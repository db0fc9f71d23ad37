package lab

import (
	"errors"
	"strings"
	"testing"
)

func TestBlocked(t *testing.T) {
	l := &Lab{links: []*Link{{Ends: [2]string{"sender", "receiver"}}}}
	l.links[0].ways[0].settings.Loss.Ratio, l.links[0].ways[1].settings.Loss.Ratio = 0.5, 1
	if got := l.Blocked(); got != "receiver to sender loses every packet" {
		t.Error(got)
	}
	changed := make(chan struct{}) // as SetLinks does; the race detector looks on
	go func() {
		defer close(changed)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.links[0].ways[0].settings.Loss.Ratio = 0
	}()
	if l.Blocked() == "" {
		t.Error("nothing is blocked after the other direction changed")
	}
	<-changed
}

// must ends a test that cannot go on after an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refused reports whether an error is that of a request that cannot be fulfilled, and says in one line what is wanted.
func refused(err error, want string) bool {
	return errors.As(err, new(*UsageError)) && strings.Contains(err.Error(), want) &&
		!strings.Contains(err.Error(), "\n")
}
