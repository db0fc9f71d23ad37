package run

import (
	"strings"
	"testing"

	"pelt/internal/testenv"
	"pelt/lab"
	"pelt/model"
)

// A variant with a command makes the router plain and runs within its node.
func TestSetLabRouter(t *testing.T) {
	testenv.Root(t)
	testenv.Tool(t, "sh", "ip")
	l, err := lab.Open(t.Context(), "router", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, c := range []struct {
		variant     model.Variant
		setup, want string
	}{
		{model.Variant{Name: "rules=3"}, "rules=3", ""},
		{model.Variant{Name: "quiet", Command: "ip link show to-receiver"}, lab.Plain, ""},
		{model.Variant{Name: "rules=nothing"}, lab.Plain, "no number of rules"},
		{model.Variant{Name: "bad", Command: "echo no luck; exit 3"}, lab.Plain,
			`its command failed (exit status 3): echo no luck; exit 3: "no luck"`},
	} {
		err := setLabRouter(t.Context(), l, c.variant)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.variant, err)
		}
		if a, err := l.RouterAccount(); err != nil || a.Setup != c.setup {
			t.Errorf("%+v: the router is %q, %v", c.variant, a.Setup, err)
		}
	}
}
