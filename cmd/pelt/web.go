package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"sync"

	"github.com/spf13/cobra"

	"pelt/finding"
	"pelt/live/web"
	"pelt/plan"
	"pelt/run"
	"pelt/store"
	"pelt/words"
)

// loopback is an address that other hosts do not reach.
var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

func newWeb() *cobra.Command {
	at, port, listen := loopback, web.DefaultPort, ""
	var figures metricsFlag
	c := &cobra.Command{
		Use:   "web",
		Short: "Show runs, and start tests, in a browser",
		Long: `web serves pages to a browser on this host: the runs that are kept, with search, names and
tags, their reports, comparisons, and new tests. It prints the address to open. The address
lets in whoever has it.

It listens on this host only. From another host: ssh -L 7360:127.0.0.1:7360 HOST.`,
		Example: "  pelt web",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			given, err := listenAddress(c, listen, &port)
			if given.IsValid() {
				at = given
			}
			switch {
			case err != nil:
				return err
			case port < 1 || port > 65535:
				return usagef("--port: want 1 to 65535, not %d", port)
			case !at.IsLoopback():
				return usagef("--listen: other hosts reach %s, and pelt web is for this host only; "+
					"from another host: ssh -L %d:127.0.0.1:%d HOST", at, port, port)
			}
			st, err := store.Open("")
			if err != nil {
				return err
			}
			program, err := os.Executable()
			if err != nil {
				return words.Errorf("find the program to start tests with: %w", err)
			}
			end, err := figures.serve(c)
			if err != nil {
				return err
			}
			defer end()
			o := web.Options{Store: st, Offers: offers(), Program: program, Language: spoken()}
			return web.Serve(c.Context(), netip.AddrPortFrom(at, uint16(port)), o,
				func(text string) { fmt.Fprintln(c.OutOrStdout(), text) })
		},
	}
	f := c.Flags()
	f.IntVar(&port, "port", web.DefaultPort, "`PORT` to listen on, or the next that is free")
	f.StringVar(&listen, "listen", "",
		"`ADDRESS`, ADDRESS:PORT or :PORT of this host alone to listen on, PORT as in --port (default 127.0.0.1)")
	figures.register(f)
	return c
}

// offers are the tests that pages start.
func offers() (list []web.Offer) {
	for _, k := range finding.Kinds() {
		if k.Pairs { // its hosts are known when its hub is
			continue
		}
		list = append(list, web.Offer{Preset: k.Preset, About: k.Short,
			Make: func(target string, flags map[string][]string) error {
				p, err := planOf(k.Preset, plan.Settings{Target: target, Flags: flags})
				if err == nil {
					err = p.Check()
				}
				if err == nil {
					err = run.CheckLinks(p)
				}
				return err
			}})
	}
	return list
}

// serveWeb shows the run in a browser until end is called; stop ends the run. A test goes on without it.
func (f *commonFlags) serveWeb(c *cobra.Command, s *screen, stop func()) (end func()) {
	if !f.web {
		return func() {}
	}
	serving, finish := context.WithCancel(context.WithoutCancel(c.Context()))
	said, ended := make(chan struct{}), make(chan struct{})
	first := sync.OnceFunc(func() { close(said) })
	go func() {
		defer close(ended)
		defer first()
		st, err := store.Open("")
		if err == nil {
			o := web.Options{Store: st, Watch: web.Watch(keptArguments(os.Args[1:]), s.Stream, stop),
				Language: spoken()}
			err = web.Serve(serving, netip.AddrPortFrom(loopback, web.DefaultPort), o, func(text string) {
				fmt.Fprintln(c.ErrOrStderr(), text)
				first()
			})
		}
		if err != nil {
			tellf(c, "--web: %v; the test goes on without", err)
		}
	}()
	<-said
	return func() {
		finish()
		<-ended
	}
}
