package lab

import (
	"testing"

	"pelt/model"
)

func parsed(t *testing.T, text string) []model.Link {
	t.Helper()
	l, _, err := model.ParseLink("", text)
	must(t, err)
	return []model.Link{l}
}

func TestRouterSetup(t *testing.T) {
	for _, c := range []struct {
		topology, text string
		want           string // in order, or what the error says
	}{
		{"nat", "", "plain"},
		{"nat", "plain", "plain"},
		{"switch", "log+rules=100", "rules=100+log"},
		{"fast", "fast", "fast"},
		{"fast", "fast+log+rules=10000", "rules=10000+log+fast"},
		{"router", "rules=1", "rules=1"},
		{"router", "limit=50mbit", `no such word as "limit=50mbit"; want plain, or rules=N and log joined by +`},
		{"router", "rules", `no such word as "rules"`},
		{"router", "rules=0", "from 1 to 10000"},
		{"router", "rules=10001", "from 1 to 10000"},
		{"router", "rules=many", `"many" is no number`},
		{"router", "log=1", `no such word as "log=1"`},
		{"router", "log+log", "log stands twice"},
		{"router", "rules=1+rules=2", "rules stands twice"},
		{"router", "plain+log", "plain stands alone"},
		{"router", "log+", `no such word as ""`},
		{"router", "LOG", `no such word as "LOG"`},
		{"nat", "fast", "lab nat has no fast path, lab fast has"},
		{"direct", "log", "lab direct has no router or switch"},
		{"star:3", "plain", "lab star:3 has no router or switch"},
		{"bus", "plain", "no such topology"},
	} {
		err := CheckRouter(c.topology, c.text)
		if err != nil {
			if !refused(err, c.want) {
				t.Errorf("%s, %q: %v, want %q", c.topology, c.text, err, c.want)
			}
			continue
		}
		spec, err := findTopology(c.topology)
		must(t, err)
		if got, err := spec.parseRouter(c.text); err != nil || got.String() != c.want {
			t.Errorf("%s, %q: %v, %v, want %s", c.topology, c.text, got, err, c.want)
		}
	}
}

// What a fast path would go past is no link of its lab.
func TestFastHasPlainLinks(t *testing.T) {
	for _, text := range []string{"delay=1ms", "backend=user"} {
		if err := Check("fast", parsed(t, text)); !refused(err, "plain cable") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if err := Check("fast", parsed(t, "rate=1gbit,queue=100,mtu=1400")); err != nil {
		t.Error(err)
	}
}
