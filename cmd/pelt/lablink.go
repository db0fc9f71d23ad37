package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"pelt/lab"
	"pelt/model"
	"pelt/unit"
)

// labLinksFormat names the JSON of lab link show, whose words are those of lab.LinkWay.
const labLinksFormat = "pelt/links/1"

func newLabLink() *cobra.Command {
	var asJSON jsonFlag
	c := &cobra.Command{
		Use:   "link [NAME] show | link [NAME] set [LINK] KEY=VALUE,...",
		Short: "Show what the links of a lab do, or change it while it runs",
		Long: `link NAME show prints each direction of each link: its settings, and what it did so far.
link NAME set changes settings; the value none (of numbers: 0) takes a setting back.

LINK is a node (all its links) or two nodes, as sender-router; without LINK all links change.
toward=NODE is one direction only. A queue needs a rate. Delay, loss and the like need a link
that has one of them from the start, or lab up --link backend=user.`,
		Example: `  pelt lab link r1 show
  pelt lab link r1 set sender-router rate=10mbit,toward=router`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			name, verb, rest, err := linkArgs(args)
			if err != nil {
				return err
			}
			if verb == "show" && len(rest) > 0 {
				return usagef("want: pelt lab link %s show", name)
			}
			var change model.Link
			if verb == "set" {
				if change, err = parseChange(rest); err != nil {
					return err
				}
			}
			if name == "" {
				if name, err = onlyLab("pelt lab link NAME " + verb); err != nil {
					return err
				}
			}
			l, err := lab.Attach(name)
			if err != nil {
				return err
			}
			defer l.Close()
			if verb == "show" {
				return showLinks(c, name, l, asJSON)
			}
			list, err := l.SetLinks([]model.Link{change}, lab.SetOptions{})
			if err != nil {
				return err
			}
			return asJSON.print(c, list, func(w io.Writer) error { return tellChanged(w, list) })
		},
	}
	asJSON.register(c.Flags())
	return c
}

// linkArgs parts [NAME] VERB REST; the name is "" if it is left out.
func linkArgs(args []string) (name, verb string, rest []string, err error) {
	isVerb := func(i int) bool { return i < len(args) && (args[i] == "show" || args[i] == "set") }
	switch {
	case isVerb(1):
		return args[0], args[1], args[2:], nil
	case isVerb(0):
		return "", args[0], args[1:], nil
	}
	return "", "", nil, usagef("want: pelt lab link NAME show, or pelt lab link NAME set [LINK] KEY=VALUE,...")
}

func parseChange(words []string) (model.Link, error) {
	node := ""
	if len(words) == 2 {
		node, words = words[0], words[1:]
	}
	if len(words) != 1 || !strings.Contains(words[0], "=") || strings.Contains(node, "=") {
		return model.Link{}, usagef("set: want [LINK] KEY=VALUE,... as receiver loss=5%%,delay=20ms")
	}
	change, err := model.ParseLinkChange(node, words[0])
	if err != nil {
		return change, usagef("set: %v", err)
	}
	return change, nil
}

func showLinks(c *cobra.Command, name string, l *lab.Lab, asJSON jsonFlag) error {
	ways, err := l.Links()
	if err != nil {
		return err
	}
	whole := struct {
		Format string        `json:"format"`
		Lab    string        `json:"lab"`
		Links  []lab.LinkWay `json:"links"`
	}{labLinksFormat, name, ways}
	return asJSON.print(c, whole, func(w io.Writer) error {
		var rows [][]string
		for _, one := range ways {
			s := one.Settings
			s.Seed = one.Seed
			rows = append(rows, append([]string{spoken().Sayf("%s to %s", one.From, one.To), one.Backend,
				settingsText(s)}, done(one.Done)...))
		}
		return printColumns(w,
			"DIRECTION\tBY\tSETTINGS\tFRAMES\tLOST\tQUEUE FULL\tDOUBLED\tDAMAGED\tOVERRUN\tLATE p50\tp99", rows)
	})
}

func settingsText(l model.Link) string { return cmp.Or(l.Words(), spoken().Say("as it is")) }

// done are the columns of what a direction did; what nobody counts is a dash.
func done(d *model.LinkResult) []string {
	columns := slices.Repeat([]string{"–"}, 8)
	if d == nil {
		return columns
	}
	for i, n := range []*uint64{&d.Frames, d.Lost, d.QueueFull, d.Duplicated, d.Corrupted} {
		if n != nil {
			columns[i] = strconv.FormatUint(*n, 10)
		}
	}
	if d.Backend == model.BackendUser {
		columns[5] = strconv.FormatUint(d.Overrun, 10)
		columns[6], columns[7] = unit.FormatNanos(float64(d.LateNS.P50)), unit.FormatNanos(float64(d.LateNS.P99))
	}
	return columns
}

// mostChanged is how many directions that changed alike are named one by one.
const mostChanged = 8

func tellChanged(w io.Writer, list []lab.LinkChanged) error {
	l := spoken()
	for i, c := range list {
		if i == mostChanged && len(list) > mostChanged+1 {
			fmt.Fprint(w, l.Sayf("and %d more directions\n", len(list)-i))
			break
		}
		if c.Before == c.Now {
			fmt.Fprint(w, l.Sayf("%s to %s: stays %s\n", c.From, c.To, settingsText(c.Now)))
			continue
		}
		fmt.Fprint(w, l.Sayf("%s to %s: was %s; now %s\n", c.From, c.To, settingsText(c.Before), settingsText(c.Now)))
	}
	return nil
}
