package run

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pelt/model"
)

// TestMeantThere: an address that each host takes for another one is no target.
func TestMeantThere(t *testing.T) {
	for _, c := range []struct{ near, far, want string }{
		{"10.0.0.1", "10.1.0.1", ""},
		{"127.0.0.1", "10.1.0.1", ""},
		{"127.0.0.1", "127.0.0.2", ""}, // two on this very host
		{"10.0.0.1", "127.0.0.1", "127.0.0.1 is each host itself"},
		{"10.0.0.1", "::1", "::1 is each host itself"},
		{"10.0.0.1", "fe80::1%eth0", "is of one link of this host"},
	} {
		err := checkFarAddress(netip.MustParseAddr(c.near), netip.MustParseAddr(c.far))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s to %s: %v, want %q", c.near, c.far, err, c.want)
		}
	}
}

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
			if err := s.set[0](t.Context(), model.Trial{Variant: variant}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.restore(); err != nil {
			t.Fatal(err)
		}
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
