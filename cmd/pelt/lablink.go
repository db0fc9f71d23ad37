package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"pelt/lab"
	"pelt/model"
	"pelt/unit"
)

// labLinksFormat names the JSON of lab link show, whose words are those of lab.LinkWay.
const labLinksFormat = "pelt/links/1"

func newLabLink() *cobra.Command {
	var asJSON string
	var all, nodes []string
	c := &cobra.Command{
		Use:   "link [NAME] show | link [NAME] set [LINK] KEY=VALUE,...",
		Short: "Show what the links of a lab do, or change it while it runs",
		Long: `link NAME show prints each direction of each link of a lab that is up: its settings,
and what it did so far. link NAME set changes the settings that it is given and
leaves the others; none, or 0 for a number, puts one back to nothing.

LINK is a node, which means the links at it, or two, as sender-router. Without it
all links are meant; --link and --link-NODE say several things at once.
toward=NODE keeps to the direction that leads there. A queue may not lose its
rate, and a link that was made without delay, loss and the like cannot get
them: lab up --link backend=user makes one that can.`,
		Example: `  pelt lab link r1 show
  pelt lab link r1 set receiver loss=5%,delay=20ms
  pelt lab link r1 set sender-router rate=10mbit,toward=router
  pelt lab link r1 set loss=0`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			name, verb, rest, err := linkArgs(args)
			if err != nil {
				return err
			}
			if verb == "show" && (len(rest)+len(all)+len(nodes) > 0) {
				return usagef("want: pelt lab link %s show", name)
			}
			var changes []model.LinkChange
			if verb == "set" {
				if changes, err = parseChanges(rest, all, nodes); err != nil {
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
				return showLinks(c.OutOrStdout(), name, l, asJSON)
			}
			list, err := l.SetLinks(changes, lab.SetOptions{})
			if err != nil {
				return err
			}
			return tellChanged(c.OutOrStdout(), list, asJSON)
		},
	}
	c.Flags().StringVar(&asJSON, "json", "", jsonHelp)
	c.Flags().StringArrayVar(&all, "link", nil, "set: settings of every link; --link-NODE for one node's links")
	c.Flags().StringArrayVar(&nodes, "node-link", nil, "")
	_ = c.Flags().MarkHidden("node-link")
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

// parseChanges reads the words behind set, and its flags, in this order.
func parseChanges(words, all, nodes []string) ([]model.LinkChange, error) {
	var changes []model.LinkChange
	add := func(at, node, text string) error {
		c, err := model.ParseLinkChange(node, text)
		if err != nil {
			return usagef("%s: %v", at, err)
		}
		changes = append(changes, c)
		return nil
	}
	if len(words) > 2 || len(words) == 2 && strings.Contains(words[0], "=") || len(words) > 0 && !strings.Contains(words[len(words)-1], "=") {
		return nil, usagef("set: want [LINK] KEY=VALUE,... as receiver loss=5%%,delay=20ms")
	}
	if len(words) > 0 {
		node := ""
		if len(words) == 2 {
			node = words[0]
		}
		if err := add("set", node, words[len(words)-1]); err != nil {
			return nil, err
		}
	}
	for _, text := range all {
		if err := add("--link", "", text); err != nil {
			return nil, err
		}
	}
	for _, text := range nodes {
		node, value, _ := strings.Cut(text, ":")
		if err := add("--link-"+node, node, value); err != nil {
			return nil, err
		}
	}
	if len(changes) == 0 {
		return nil, usagef("set: nothing to change; want [LINK] KEY=VALUE,... as receiver loss=5%%,delay=20ms")
	}
	return changes, nil
}

func showLinks(w io.Writer, name string, l *lab.Lab, asJSON string) error {
	ways, err := l.Links()
	if err != nil {
		return err
	}
	if asJSON != "" {
		return writeJSON(w, asJSON, struct {
			Format string        `json:"format"`
			Lab    string        `json:"lab"`
			Links  []lab.LinkWay `json:"links"`
		}{labLinksFormat, name, ways})
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "DIRECTION\tBY\tSETTINGS\tFRAMES\tLOST\tQUEUE FULL\tDOUBLED\tDAMAGED\tOVERRUN\tLATE p50\tp99")
	for _, one := range ways {
		fmt.Fprintf(t, "%s to %s\t%s\t%s\t%s\n", one.From, one.To, one.Backend, settingsText(one), doneText(one.Done))
	}
	return t.Flush()
}

// settingsText is what a direction does, with the seed that it has.
func settingsText(w lab.LinkWay) string {
	s := w.Settings
	s.Seed = w.Seed
	if text := s.Words(); text != "" {
		return text
	}
	return "as it is"
}

// doneText are the columns of what a direction did; what nobody counts is a dash.
func doneText(d *model.LinkResult) string {
	columns := slices.Repeat([]string{"–"}, 8)
	if d == nil {
		return strings.Join(columns, "\t")
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
	return strings.Join(columns, "\t")
}

// mostChanged is how many directions that changed alike are named one by one.
const mostChanged = 8

func tellChanged(w io.Writer, list []lab.LinkChanged, asJSON string) error {
	if asJSON != "" {
		return writeJSON(w, asJSON, list)
	}
	text := func(l model.Link) string {
		if words := l.Words(); words != "" {
			return words
		}
		return "as it is"
	}
	for i, c := range list {
		if i == mostChanged && len(list) > mostChanged+1 {
			fmt.Fprintf(w, "and %d more directions\n", len(list)-i)
			break
		}
		if c.Before == c.Now {
			fmt.Fprintf(w, "%s to %s: stays %s\n", c.From, c.To, text(c.Now))
			continue
		}
		fmt.Fprintf(w, "%s to %s: was %s; now %s\n", c.From, c.To, text(c.Before), text(c.Now))
	}
	return nil
}
