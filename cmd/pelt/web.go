package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"sync"

	"github.com/spf13/cobra"

	"pelt/live/web"
	"pelt/plan"
	"pelt/run"
	"pelt/store"
)

func newWeb() *cobra.Command {
	at := web.Place{Address: netip.AddrFrom4([4]byte{127, 0, 0, 1})}
	var listen, code string
	c := &cobra.Command{
		Use:   "web",
		Short: "Show runs in a browser",
		Long: `web serves pages to a browser on this host: the runs that are kept, with search, names and
tags, their reports, and comparisons. It prints the address to open. The address lets in
whoever has it.

--listen serves other hosts too. It needs --code, which users type into a page, and uses TLS.`,
		Example: "  pelt web",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if listen != "" {
				if at.Address, err = listenAddress(listen); err != nil {
					return err
				}
			}
			if code, err = codeOf(code, ""); err != nil {
				return err
			}
			switch {
			case at.Port < 1 || at.Port > 65535:
				return usagef("--port: want 1 to 65535, not %d", at.Port)
			case !at.Address.IsLoopback() && code == "":
				return usagef("--listen: %s is no address of this host alone, so it needs a --code", at.Address)
			case code != "" && len(code) < 8:
				return usagef("--code: want at least 8 characters")
			case (at.Cert == "") != (at.Key == ""):
				return usagef("give --cert and --key together")
			case at.Cert != "" && code == "":
				return usagef("--cert: TLS is for --listen with --code")
			}
			st, err := store.Open("")
			if err != nil {
				return err
			}
			program, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find the program to start tests with: %w", err)
			}
			o := web.Options{Store: st, Code: code, Offers: offers(), Program: program}
			return web.Serve(c.Context(), at, o, func(text string) { fmt.Fprintln(c.OutOrStdout(), text) })
		},
	}
	f := c.Flags()
	f.IntVar(&at.Port, "port", web.DefaultPort, "`PORT` to listen on, or the next that is free")
	f.StringVar(&listen, "listen", "", "`ADDRESS` to listen on (default 127.0.0.1)")
	f.StringVar(&code, "code", "", "let in whoever types this `CODE` (or $PELT_CODE)")
	f.StringVar(&at.Cert, "cert", "", "`FILE` with the certificate for TLS (default: a new one)")
	f.StringVar(&at.Key, "key", "", "`FILE` with the certificate's key")
	return c
}

// offers are the tests that pages start.
func offers() (list []web.Offer) {
	for _, t := range tests {
		if t.preset.Command == plan.Mesh.Command { // its hosts are known when its hub is
			continue
		}
		list = append(list, web.Offer{Preset: t.preset, About: t.short,
			Make: func(target string, flags map[string][]string) error {
				p, err := planOf(t.preset, target, flags, nil)
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
			o := web.Options{Store: st, Watch: web.Watch(keptArguments(os.Args[1:]), s.Stream, stop)}
			at := web.Place{Address: netip.AddrFrom4([4]byte{127, 0, 0, 1}), Port: web.DefaultPort}
			err = web.Serve(serving, at, o, func(text string) {
				fmt.Fprintln(c.ErrOrStderr(), text)
				first()
			})
		}
		if err != nil {
			fmt.Fprintf(c.ErrOrStderr(), "--web: %v; the test goes on without\n", err)
		}
	}()
	<-said
	return func() {
		finish()
		<-ended
	}
}
