package main

import (
	"io"
	"strings"
	"testing"
)

// The rate of a soak is its own default, or what one of two options says.
func TestSoakRate(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"", "40kpps"},
		{"--rate 5kpps", "5kpps"},
		{"--interval 5ms", "every 5ms"},
		{"--interval 5ms --rate 5kpps", "not both"},
		{"--rate max", "--rate: a soak has one"},
	} {
		var out strings.Builder
		root := newRoot(&out, io.Discard)
		root.SetArgs(strings.Fields("soak lab:direct --print-plan " + c.args))
		if err := root.Execute(); err != nil {
			out.WriteString(err.Error())
		}
		if !strings.Contains(out.String(), c.want) {
			t.Errorf("%q: want %q in\n%s", c.args, c.want, out.String())
		}
	}
}
