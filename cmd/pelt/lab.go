package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"pelt/lab"
	"pelt/model"
	"pelt/run"
)

func newLab() *cobra.Command {
	c := &cobra.Command{
		Use:   "lab",
		Short: "Keep a lab of network namespaces for your own programs and pelt's tests",
		Long: `lab keeps a network of unnamed namespaces on this machine. A background process keeps it
up; when that process ends, nothing is left.`,
		Example: `  pelt lab up nat --name r1
  pelt curve lab:r1
  pelt lab down r1`,
		Args: noSubcommand,
		RunE: showHelp,
	}
	c.AddCommand(newLabUp(), newLabHold(), newLabExec(), newLabLink(), newLabList(), newLabDown())
	return c
}

func newLabUp() *cobra.Command {
	var name string
	var receivers int
	c := &cobra.Command{
		Use:     "up TOPOLOGY",
		Short:   "Start a lab: direct, switch, router, nat, fast or star",
		Example: "  pelt lab up nat --name r1 --link rate=1gbit",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if !lab.IsTopology(args[0]) {
				return usagef("unknown topology %q; want one of %s", args[0], strings.Join(lab.Topologies(), ", "))
			}
			links, err := parseLinks(c.Flags())
			if err != nil {
				return err
			}
			topology := args[0]
			switch {
			case topology != lab.Star && receivers != 0:
				return usagef("--receivers is for lab up star: a %s has one", topology)
			case receivers < 0 || receivers > lab.MaxReceivers:
				return usagef("--receivers: want 1 to %d, not %d", lab.MaxReceivers, receivers)
			case receivers > 0:
				topology = fmt.Sprintf("%s:%d", topology, receivers)
			}
			if name == "" {
				if name, err = freeName(args[0]); err != nil {
					return err
				}
			}
			if err := errors.Join(lab.CheckName(name), lab.Check(topology, links)); err != nil {
				return err
			}
			text, err := json.Marshal(links)
			if err != nil {
				return err
			}
			if _, err := lab.StartHolder(c.Context(),
				[]string{"lab", "hold", name, topology, string(text)}); err != nil {
				return err
			}
			test, node := "pelt curve lab:"+name+"; ", "receiver"
			if args[0] == lab.Star {
				test, node = "", "receiver-1"
			}
			fmt.Fprint(c.OutOrStdout(), spoken().Sayf("lab %s is up: %spelt lab exec %s %s -- COMMAND; pelt lab down %s\n", name,
				test, name, node, name))
			return nil
		},
	}
	c.Flags().StringVar(&name, "name", "", "`NAME` of the lab (default: topology and number)")
	c.Flags().IntVar(&receivers, "receivers", 0, "`N` receivers of a star (default 10)")
	linkFlags(c.Flags(), "every link: rate=1gbit,queue=100,delay=20ms,loss=1%; --link-NODE: one node's")
	return c
}

func freeName(topology string) (string, error) {
	labs, err := lab.List()
	if err != nil {
		return "", err
	}
	for i := 1; ; i++ {
		name := fmt.Sprintf("%s-%d", topology, i)
		if !slices.ContainsFunc(labs, func(l lab.Info) bool { return l.Name == name }) {
			return name, nil
		}
	}
}

// newLabHold is the background process that owns a lab; lab up starts it.
func newLabHold() *cobra.Command {
	return &cobra.Command{
		Use:    "hold NAME TOPOLOGY LINKS",
		Hidden: true,
		Args:   cobra.ExactArgs(3),
		RunE: func(c *cobra.Command, args []string) error {
			var links []model.Link
			if err := json.Unmarshal([]byte(args[2]), &links); err != nil {
				return err
			}
			return lab.Hold(c.Context(), args[0], args[1], links, run.Identify)
		},
	}
}

func newLabExec() *cobra.Command {
	return &cobra.Command{
		Use:     "exec [NAME] NODE -- COMMAND [ARG...]",
		Short:   "Run a program of yours in a node of a lab",
		Example: "  pelt lab exec r1 receiver -- iperf3 -s",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			dash := c.ArgsLenAtDash()
			if dash < 1 || dash > 2 || dash == len(args) {
				return usagef("want: pelt lab exec [NAME] NODE -- COMMAND [ARG...]")
			}
			name, node, argv := "", args[dash-1], args[dash:]
			if dash == 2 {
				name = args[0]
			} else {
				var err error
				if name, err = onlyLab("pelt lab exec NAME " + node + " -- ..."); err != nil {
					return err
				}
			}
			code, err := lab.Exec(name, node, argv)
			if err != nil {
				return err
			}
			if code != 0 {
				return exitCode(code)
			}
			return nil
		},
	}
}

// onlyLab is the lab that is meant where none is named.
func onlyLab(usage string) (string, error) {
	labs, err := lab.List()
	if err != nil {
		return "", err
	}
	if len(labs) != 1 {
		return "", usagef("%d labs are up; say which: %s", len(labs), usage)
	}
	return labs[0].Name, nil
}

func newLabList() *cobra.Command {
	var asJSON jsonFlag
	c := &cobra.Command{
		Use:     "list",
		Short:   "List the labs that are up",
		Example: "  pelt lab list",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			labs, err := lab.List()
			if err != nil {
				return err
			}
			return asJSON.print(c, labs, func(w io.Writer) error {
				if len(labs) == 0 {
					tellf(c, "no lab is up; pelt lab up nat --name r1 starts one")
					return nil
				}
				var rows [][]string
				for _, l := range labs {
					if n := len(l.Nodes); n > 6 {
						l.Nodes = append(slices.Clone(l.Nodes[:3]), "...", l.Nodes[n-1])
					}
					rows = append(rows, []string{l.Name, l.Topology, fmt.Sprint(l.PID), strings.Join(l.Nodes, " ")})
					if l.Why != nil {
						tellf(c, "pelt: lab %s: %s", l.Name, spoken().Error(l.Why))
					}
				}
				return printColumns(w, "NAME\tTOPOLOGY\tPID\tNODES", rows)
			})
		},
	}
	asJSON.register(c.Flags())
	return c
}

func newLabDown() *cobra.Command {
	return &cobra.Command{
		Use:     "down NAME",
		Short:   "End a lab",
		Example: "  pelt lab down r1",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := lab.Down(c.Context(), args[0]); err != nil {
				return err
			}
			fmt.Fprint(c.OutOrStdout(), spoken().Sayf("lab %s is down\n", args[0]))
			return nil
		},
	}
}
