package main

import (
	"fmt"
	"net/netip"

	"github.com/spf13/cobra"

	"pelt/live/web"
	"pelt/model"
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
			o := web.Options{Store: st, Tool: model.Tool{Version: version()}, Code: code}
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
