package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"pelt/engine"
	"pelt/finding"
	"pelt/fleet"
	"pelt/internal/testenv"
	"pelt/model"
	"pelt/unit"
)

// TestNoSentenceIsStored: a stored run, and what a list shows of it, hold codes and figures, also of a run that reached
// nobody.
func TestNoSentenceIsStored(t *testing.T) {
	t.Parallel()
	hub, err := fleet.StartHub(fleet.HubConfig{Listen: netip.MustParseAddrPort("127.0.0.1:0"), Code: "otter-11-blue"})
	testenv.Must(t, err)
	t.Cleanup(func() { hub.Close() })
	const long = "far longer than any code that a pelt serve prints and so nobody who types it means one"
	for name, c := range map[string]struct {
		target, code string
		want         []string // codes, the outermost first; none: it runs
	}{
		"runs":           {"lab:" + Loopback, "", nil},
		"refused":        {"127.0.0.1:1", "tiger-42-amber", []string{model.ConnectionRefused}},
		"dead":           {fullListener(t), "tiger-42-amber", []string{model.ConnectUnanswered}},
		"wrong name":     {"no..host", "tiger-42-amber", []string{model.HostUnknown}},
		"no interface":   {"[fe80::1%nowhere]", "tiger-42-amber", []string{model.ZoneUnknown}},
		"wrong code":     {hub.Addr().String(), "tiger-42-amber", []string{model.CodeWrong}},
		"no code":        {hub.Addr().String(), "", []string{model.CodeWanted}},
		"no code at all": {"127.0.0.1:1", long, []string{model.CodeUnfit}},
		"a hub":          {hub.Addr().String(), "otter-11-blue", []string{model.HubNoEnd}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, p := openStore(t), smallPlan(t)
			p.Target = c.target
			p.Flows[0].Rate = unit.PacketRate(1000) // what is lost has the kernel's names
			doc, err := Execute(t.Context(), p, Options{Version: "test", Store: s, Code: c.code})
			if (err != nil) != (c.want != nil) {
				t.Fatal(err)
			}
			kept, err := Load(s, "last")
			testenv.Must(t, err)
			list, err := s.List()
			if err != nil || len(list) != 1 || doc.ID != kept.ID || list[0].Headline == nil || (len(kept.Results) > 0) != (c.want == nil) {
				t.Fatalf("it lists %+v, %v, of %d results", list, err, len(kept.Results))
			}
			noSentence(t, kept)
			noSentence(t, list)
			var why model.Reasons
			if c.want != nil && len(kept.Warnings) > 0 {
				why = kept.Warnings[0].Of
			}
			if got := codesOfReasons(why); !slices.Equal(got, c.want) && !slices.Equal(got, append([]string{model.CallDropped}, c.want...)) {
				t.Errorf("it is stored why by %q, want %q: %+v", got, c.want, why)
			}
			if b, _ := json.Marshal(kept); c.code != "" && strings.Contains(string(b), c.code) {
				t.Errorf("the code is stored: %s", b)
			}
		})
	}
}

// codesOfReasons are the codes of a reason and of what it follows from.
func codesOfReasons(why model.Reasons) (codes []string) {
	for len(why) > 0 {
		codes, why = append(codes, why[0].Code), why[0].Of
	}
	return codes
}

// fullListener is an address that answers no call: whoever listens there takes no connection, and its queue is full.
func fullListener(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	testenv.Must(t, err)
	t.Cleanup(func() { syscall.Close(fd) })
	err = errors.Join(syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), syscall.Listen(fd, 0))
	at, nameErr := syscall.Getsockname(fd)
	if err = errors.Join(err, nameErr); err != nil {
		t.Fatal(err)
	}
	address := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(at.(*syscall.SockaddrInet4).Port)).String()
	for {
		c, err := net.DialTimeout("tcp", address, 300*time.Millisecond)
		if err != nil {
			return address
		}
		t.Cleanup(func() { c.Close() })
	}
}

// TestNoSentenceOfAFailedSetUp: what could not be set up during a run, or again after it, is stored as codes and what others
// said.
func TestNoSentenceOfAFailedSetUp(t *testing.T) {
	t.Parallel()
	failing := func(model.TimedChange) error {
		return fmt.Errorf("make the router plain again for a while: %w", syscall.EBADF)
	}
	asked := model.TimedChange{Router: "rules=3"}
	c := &changes{change: failing, asked: []model.TimedChange{asked}}
	if _, err := c.Do(t.Context(), engine.Go, engine.Known{}); err != nil {
		t.Fatal(err)
	}
	result := model.Result{State: model.Valid}
	setMade(&result, c.made)
	noSentence(t, result)
	if said := finding.Why(result.Why); result.State != model.Invalid || !strings.Contains(said, syscall.EBADF.Error()) {
		t.Errorf("%s: %s", result.State, said)
	}

	s := &site{}
	s.setVariants([]model.Variant{{Name: "old", Command: "echo the router is gone for good; exit 3"}, {Name: "new"}}, setByHost)
	testenv.Must(t, s.set[0](t.Context(), model.Trial{Variant: "new"}))
	r := &runner{site: s, doc: &model.Document{}}
	r.endRouter()
	noSentence(t, r.doc)
	const want = `the router could not be set up again as variant old: its command failed (exit status 3): ` +
		`echo the router is gone for good; exit 3: "the router is gone for good"`
	if len(r.doc.Warnings) != 1 || finding.Clause(r.doc.Warnings[0]) != want {
		t.Errorf("%+v, want %s", r.doc.Warnings, want)
	}
}

// others are fields that hold what others said: users in a command, other programs, and the system, of which see also
// ofSystem.
var others = []string{"cpu", "arguments", "command", "output", "said"}

// ofSystem leaves of a text what is no word of the system.
func ofSystem(text string) string {
	for number := range 134 {
		text = strings.TrimSuffix(text, syscall.Errno(number).Error())
	}
	if strings.HasPrefix(text, "open /") { // and its file, as the os package names it
		text = strings.TrimSuffix(text, ": ")
	}
	return regexp.MustCompile(`exit status \d+$`).ReplaceAllString(text, "")
}

// noSentence fails if a value has a sentence when it is stored: a text with two spaces that is none of others.
func noSentence(t *testing.T, kept any) {
	t.Helper()
	b, err := json.Marshal(kept)
	var v any
	if err == nil {
		err = json.Unmarshal(b, &v)
	}
	testenv.Must(t, err)
	var look func(at string, v any)
	look = func(at string, v any) {
		switch x := v.(type) {
		case map[string]any:
			for name, part := range x {
				if !slices.Contains(others, name) {
					look(at+"."+name, part)
				}
			}
		case []any:
			for _, part := range x {
				look(at, part)
			}
		case string:
			if strings.HasSuffix(at, ".text") {
				x = ofSystem(x)
			}
			if strings.Count(x, " ") > 1 {
				t.Errorf("%s holds a sentence: %q", at, x)
			}
		}
	}
	look("", v)
}
