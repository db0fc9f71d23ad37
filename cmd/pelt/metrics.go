package main

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"pelt/fleet"
	"pelt/live/metrics"
	"pelt/store"
	"pelt/words"
)

// metricsFlag is where a command that goes on for long tells Prometheus the figures of kept runs.
type metricsFlag struct{ at string }

func (m *metricsFlag) register(f *pflag.FlagSet) {
	f.StringVar(&m.at, "metrics", "", fmt.Sprintf("serve Prometheus the newest figures of each target, to "+
		"everybody who reaches `ADDRESS`, ADDRESS:PORT or :PORT (default port %d)", metrics.DefaultPort))
}

// serve answers until end is called.
func (m *metricsFlag) serve(c *cobra.Command) (end func(), err error) {
	if m.at == "" {
		return func() {}, nil
	}
	a, port, err := addressPort("metrics", m.at, metrics.DefaultPort)
	if err != nil {
		return nil, err
	}
	st, err := store.Open("")
	if err != nil {
		return nil, err
	}
	want := netip.AddrPortFrom(a, uint16(port))
	at, stop, err := metrics.Serve(want, st)
	if err != nil {
		if why := fleet.MayNotListen(want, err); why != nil {
			return nil, fmt.Errorf("--metrics: %w", why)
		}
		if system, ok := errors.AsType[*os.SyscallError](err); ok {
			err = system.Err
		}
		return nil, words.Errorf("--metrics: port %d cannot be opened: %w", port, err)
	}
	fmt.Fprint(c.OutOrStdout(), spoken().Sayf("Metrics: http://%v/metrics\n", at))
	return func() {
		if err := stop(); err != nil {
			tellf(c, "pelt: --metrics: %v", err)
		}
	}, nil
}
