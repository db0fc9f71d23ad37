package run

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"pelt/internal/testenv"
	"pelt/model"
)

// TestRouterIsLeftAlone: a run that ends before its first trial runs no command on the router.
func TestRouterIsLeftAlone(t *testing.T) {
	for _, c := range []struct {
		trials []string
		want   string
	}{{nil, ""}, {[]string{"a"}, "a"}, {[]string{"a", "b"}, "aba"}} {
		file := filepath.Join(t.TempDir(), "commands")
		s := &site{}
		s.setVariants([]model.Variant{{Name: "a", Command: "printf a >>" + file},
			{Name: "b", Command: "printf b >>" + file}}, setByHost)
		for _, variant := range c.trials {
			testenv.Must(t, s.set[0](t.Context(), model.Trial{Variant: variant}))
		}
		testenv.Must(t, s.restore())
		if got, _ := os.ReadFile(file); string(got) != c.want {
			t.Errorf("trials %q: commands %q, want %q", c.trials, got, c.want)
		}
	}
}

// TestFamilyOfFrames: the size of a header is that of the addresses that are called, of the sender's where the
// receiver calls.
func TestFamilyOfFrames(t *testing.T) {
	plan := model.Plan{Flows: []model.Flow{{Name: "up"}},
		Factors: []model.Factor{{Knob: "frame_bytes", Levels: []model.Value{model.Number(128)}}}}
	for _, c := range []struct {
		calls, listens string
		want           int
	}{{"", "192.0.2.1", 4}, {"", "2001:db8::1", 6}, {"2001:db8::1", "", 6}, {"192.0.2.1", "", 4}} {
		far := node{name: model.Receiver, end: true}
		if c.listens != "" {
			far.address = func(int) netip.Addr { return netip.MustParseAddr(c.listens) }
		} else {
			far.calls = netip.MustParseAddr(c.calls)
		}
		s := &site{nodes: []node{{name: model.Sender, end: true}, far}}
		if got := s.withFamilies(plan)[0].Family; got != c.want {
			t.Errorf("%+v: IPv%d", c, got)
		}
	}
}
