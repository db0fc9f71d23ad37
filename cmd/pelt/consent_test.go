package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
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
		{"far.example", "", 0, false, "far.example (93.184.215.14) is a public address"},
		{"far.example:9000", "", 0, false, "far.example (93.184.215.14) is a public address"},
		{"home.example", "far.example", 0, false, "far.example (93.184.215.14) is a public address"},
		{"far.example", "", 0, true, ""},
		{"far.example", "", 6, false, ""},
		{"home.example", "", 0, false, ""},
		{"group.example", "", 0, true, "group.example (239.1.2.3) is not the address of one host"},
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
