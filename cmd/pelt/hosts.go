package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"pelt/fleet"
	"pelt/run"
)

func newHosts() *cobra.Command {
	var asJSON jsonFlag
	var hub hubFlags
	c := &cobra.Command{
		Use:   "hosts",
		Short: "List the hosts of a fleet",
		Long: `hosts asks a pelt hub, or NATS servers of yours, which hosts joined: where others call them,
what they can do and what their owners allow.`,
		Example: `  pelt hosts
  pelt hosts --hub hub.example --code-file code`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			code, err := hub.settled(c.Context())
			if err != nil {
				return err
			}
			hosts, unfit, err := run.Hosts(c.Context(), version(), hub.Hub, code)
			if err != nil {
				return err
			}
			for _, why := range unfit {
				fmt.Fprintln(c.ErrOrStderr(), "pelt: "+spoken().Error(why))
			}
			return asJSON.print(c, hosts, func(w io.Writer) error {
				if len(hosts) == 0 {
					tellf(c, "no host has joined yet; pelt hub prints what to paste on each")
					return nil
				}
				var rows [][]string
				for _, h := range hosts {
					rows = append(rows, hostColumns(h))
				}
				return printColumns(w, "NAME\tADDRESS\tENGINES\tROOT\tVERSION\tALLOWS", rows)
			})
		},
	}
	hub.register(c.Flags(), "`CODE` of the hub (default: that of a hub on this host, or $PELT_CODE)")
	asJSON.register(c.Flags())
	return c
}

func hostColumns(h fleet.AgentInfo) []string {
	address := h.Address.String()
	if h.BehindNAT() {
		address = fmt.Sprintf("%v behind %v", h.Address, h.Seen)
	}
	root := "no"
	if h.Host.Privileged {
		root = "yes"
	}
	return []string{h.ID, address, strings.Join(h.Engines, ","), root, h.Version, h.Limits.Trials(spoken())}
}
