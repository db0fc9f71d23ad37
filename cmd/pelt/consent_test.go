package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"pelt/model"
)

// A name stands for its address: a public one is asked for, too.
func TestConsentToNames(t *testing.T) {
	real := resolve
	stdin := os.Stdin
	t.Cleanup(func() { resolve, os.Stdin = real, stdin })
	null, err := os.Open(os.DevNull) // nobody to ask
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	os.Stdin = null
	resolve = func(_ context.Context, host string, family int) ([]netip.Addr, error) {
		a, ok := map[string]string{"far.example 0": "93.184.215.14", "far.example 6": "fd00::1",
			"home.example 0": "192.168.7.1", "group.example 0": "239.1.2.3"}[fmt.Sprint(host, " ", family)]
		if !ok {
			return nil, errors.New("no such host")
		}
		return []netip.Addr{netip.MustParseAddr("10.0.0.7"), netip.MustParseAddr(a)}, nil
	}
	for _, c := range []struct {
		target, near string
		family       int
		yes          bool
		want         string // "" no objection
	}{
		{"far.example", "", 0, false, "93.184.215.14 of far.example is a public address"},
		{"far.example:9000", "", 0, false, "93.184.215.14 of far.example is a public address"},
		{"home.example", "far.example", 0, false, "93.184.215.14 of far.example is a public address"},
		{"far.example", "", 0, true, ""},
		{"far.example", "", 6, false, ""},
		{"home.example", "", 0, false, ""},
		{"group.example", "", 0, true, "239.1.2.3 of group.example is not the address of one host"},
		{"8.8.8.8", "", 0, false, "8.8.8.8 is a public address"},
		{"lab:direct", "", 0, false, ""},
	} {
		f := commonFlags{yes: c.yes}
		cmd := newRun()
		cmd.SetContext(t.Context())
		err := f.consents(cmd, model.Plan{Target: c.target, Near: c.near, Flows: []model.Flow{{Family: c.family}}})
		if c.want == "" && err != nil || c.want != "" &&
			(err == nil || !strings.Contains(err.Error(), c.want) || !isUsage(err)) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// What went wrong beside an interruption is told.
func TestBeside(t *testing.T) {
	full, left := errors.New("no space left on device"), errors.New("an interface is left")
	err := errors.Join(errors.Join(fmt.Errorf("walk: %w", context.Canceled), left), nil, full)
	if got := fmt.Sprint(besides(err)); got != fmt.Sprint([]error{left, full}) {
		t.Errorf("beside an interruption: %s", got)
	}
	if got := besides(errors.Join(context.Canceled)); len(got) != 0 {
		t.Errorf("an interruption alone: %v", got)
	}
}

// Codes and passwords are neither stored nor shown; where lines of events went says nothing of a run.
func TestKeptArguments(t *testing.T) {
	args := strings.Fields("curve nas --json-lines - --code tiger-42-amber --code=otter-17-blue --nats tls://me:otter@a.example --nats=otter@b.example --time 1s --json-lines=a.jsonl")
	if got := strings.Join(keptArguments(args),
		" "); got != "curve nas --code CODE --code=CODE --nats URLS --nats=URLS --time 1s" {
		t.Error(got)
	}
	if args[5] != "tiger-42-amber" {
		t.Error("the arguments themselves are changed")
	}
}

func TestLongRuns(t *testing.T) {
	for _, c := range []struct{ command, want string }{
		{"curve lab:direct", ""},
		{"curve lab:direct --payload 16..1472/1", "about 4 h 10 min: 4371 trials"},
		{"curve lab:direct --payload 16..1472/1 --time 10ms --warmup 10ms --repeats 1", ""},
		{"soak 192.0.2.1 --time 24h", ""},
		{"sweep lab:direct --payload 64,1472 --rate 1kpps,10kpps --repeats 3", ""},
		{"sweep lab:direct --payload 16..1472/8 --rate 10pps,100pps", "about"},
	} {
		words := strings.Fields(c.command)
		i := slices.IndexFunc(tests, func(x testText) bool { return x.preset.Command == words[0] })
		flags := map[string][]string{}
		for k := 2; k < len(words); k += 2 {
			flags[strings.TrimPrefix(words[k], "--")] = []string{words[k+1]}
		}
		p, err := planOf(tests[i].preset, words[1], flags, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := long(p); (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", c.command, got, c.want)
		}
	}
}
