package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"pelt/model"
	"pelt/render/plain"
	"pelt/words"
)

// helpAllFlag shows every flag of a command; --help shows the groups below.
const helpAllFlag = "--help-all"

// otherFlags are the flags that --help shows beside knobs, for commands with more than mostFlags.
var otherFlags = map[model.Group][]string{
	model.ThePath: {"code", "link"},
	theResult:     {"all", "html", "json", "chart"},
}

const theResult model.Group = "The result"

// flagGroups are the headings of --help and their flags.
func flagGroups(flags *pflag.FlagSet) (groups []*pflag.FlagSet, titles []model.Group) {
	for _, title := range []model.Group{model.ToSend, model.ThePath, theResult} {
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		set.SortFlags = false
		add := func(name string) {
			if f := flags.Lookup(name); f != nil && !f.Hidden {
				set.AddFlag(f)
			}
		}
		for _, k := range model.Knobs() {
			if k.Group == title {
				add(k.Flag)
			}
		}
		for _, name := range otherFlags[title] {
			add(name)
		}
		if set.HasFlags() {
			groups, titles = append(groups, set), append(titles, title)
		}
	}
	return groups, titles
}

// mostFlags is how many flags a reader takes in at once.
const mostFlags = 16

// shortFlags are the flags of iperf3 that mean the same here. A bare number is seconds or bits per second there.
var shortFlags = map[string]string{"t": "time", "b": "rate", "l": "payload", "P": "streams", "i": "progress",
	"R": "direction", "u": "proto"}

// iperfFlags registers the short flags. -u asks for what most commands send anyway.
func iperfFlags(s *pflag.FlagSet, onlyTCP bool) {
	for short, long := range shortFlags {
		if s.Lookup(long) == nil && (short != "u" || onlyTCP) {
			continue
		}
		f := s.VarPF(&iperf{s, short, long}, "iperf3-"+short, short, "")
		f.Hidden = true
		f.NoOptDefVal = map[string]string{"R": "down", "u": "udp"}[short]
	}
}

// iperf sets the flag that a short one of iperf3 stands for.
type iperf struct {
	flags       *pflag.FlagSet
	short, long string
}

func (v *iperf) String() string { return "" }

func (v *iperf) Type() string { return "iperf3" }

func (v *iperf) Set(text string) error {
	if v.flags.Lookup(v.long) == nil {
		return nil
	}
	return v.flags.Set(v.long, iperfValue(v.short, text))
}

// iperfValue adds the unit that iperf3 means.
func iperfValue(short, value string) string {
	number := strings.TrimRight(value, "KMGkmg")
	if number == "" || strings.Trim(number, "0123456789.") != "" || len(value)-len(number) > 1 {
		return value
	}
	switch {
	case (short == "t" || short == "i") && value == number:
		return value + "s"
	case short == "b" && value == "0":
		return "max"
	case short == "b":
		return value + "bit"
	}
	return value
}

// helpArgs takes --help-all out of a command line. It means --help with all flags.
func helpArgs(args []string) (out []string, all bool) {
	for i, a := range args {
		switch a {
		case "--":
			return append(out, args[i:]...), all
		case helpAllFlag:
			out, all = append(out, "--help"), true
		default:
			out = append(out, a)
		}
	}
	return out, all
}

// speak puts what commands and flags say of themselves into a language.
func speak(c *cobra.Command, l words.Language) {
	c.Short, c.Long = l.Say(c.Short), l.Say(c.Long)
	c.InitDefaultHelpFlag()
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		who, help, ofProtocol := strings.Cut(f.Usage, ": ")
		switch {
		case f.Name == "help":
			f.Usage = l.Sayf("help for %s", c.Name())
		case f.Name == "version":
			f.Usage = l.Sayf("version for %s", c.Name())
		case ofProtocol && who == strings.ToUpper(who) && l.Say(f.Usage) == f.Usage:
			f.Usage = l.Sayf("%s: %s", who, l.Say(help))
		default:
			f.Usage = l.Say(f.Usage)
		}
	})
	for _, sub := range c.Commands() {
		speak(sub, l)
	}
}

// fill fits what commands say of themselves to a number of columns. Lines that are indented stay as they are.
func fill(c *cobra.Command, columns int) {
	paragraphs := strings.Split(c.Long, "\n\n")
	for i, p := range paragraphs {
		if !strings.HasPrefix(p, " ") && !strings.HasPrefix(p, "\t") {
			lines := plain.WrapWhole(joinedLines(strings.Split(p, "\n")), "", "", columns)
			paragraphs[i] = strings.Join(lines, "\n")
		}
	}
	c.Long = strings.Join(paragraphs, "\n\n")
	for _, sub := range c.Commands() {
		fill(sub, columns)
	}
}

// groupHelp makes --help of a command with many flags show those of the groups.
func groupHelp(c *cobra.Command, all bool) {
	c.SetUsageFunc(func(c *cobra.Command) error {
		_, err := fmt.Fprint(c.OutOrStderr(), usage(c, all))
		return err
	})
}

func usage(c *cobra.Command, all bool) string {
	var b strings.Builder
	l := spoken()
	fmt.Fprintf(&b, "%s\n  %s\n", l.Say("Usage:"), c.UseLine())
	if c.Example != "" {
		fmt.Fprintf(&b, "\n%s\n%s\n", l.Say("Examples:"), c.Example)
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n%s\n", l.Say("Commands:"))
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() || sub.Name() == "help" {
				head := fmt.Sprintf("  %-10s ", sub.Name())
				for _, line := range plain.WrapWhole(sub.Short, head, strings.Repeat(" ", len(head)), helpWidth()) {
					fmt.Fprintln(&b, line)
				}
			}
		}
	}
	shown := 0
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			shown++
		}
	})
	if all || shown <= mostFlags {
		if shown > 0 {
			fmt.Fprintf(&b, "\n%s\n%s", l.Say("Flags:"), flagUsages(c.LocalFlags()))
		}
		return b.String()
	}
	groups, titles := flagGroups(c.LocalFlags())
	for i, set := range groups {
		fmt.Fprintf(&b, "\n%s\n%s", l.Say(string(titles[i])+":"), flagUsages(set))
	}
	fmt.Fprintf(&b, "\n%s\n", l.Sayf("%s lists all %d flags.", helpAllFlag, shown))
	var iperfs []string
	for _, short := range strings.Fields("t l P R u i") {
		if c.Flags().Lookup("iperf3-"+short) != nil {
			iperfs = append(iperfs, "-"+short)
		}
	}
	if len(iperfs) > 0 {
		fmt.Fprintln(&b, l.Sayf("%s mean what they mean in iperf3.", strings.Join(iperfs, " ")))
	}
	if c.Flags().Lookup("iperf3-b") != nil {
		fmt.Fprintln(&b, l.Say("-b is the rate of all streams together."))
	}
	return b.String()
}

// flagLine is a line of pflag about one flag: its name, its help, its default.
var flagLine = regexp.MustCompile(`^( +(?:-\w, )?--\S+(?: \S+)? {2,})(.*?)(?: \(default (.*)\))?\n$`)

// flagUsages lists flags with their help. pflag says defaults in English, and breaks lines only at spaces.
func flagUsages(flags *pflag.FlagSet) string {
	l, columns := spoken(), helpWidth()
	if l == words.English {
		return flags.FlagUsagesWrapped(columns)
	}
	var b strings.Builder
	for line := range strings.Lines(flags.FlagUsages()) {
		m := flagLine.FindStringSubmatch(line)
		if m == nil {
			b.WriteString(line)
			continue
		}
		text := m[2]
		if m[3] != "" {
			text = l.Sayf("%s (default %s)", text, m[3])
		}
		for _, broken := range plain.WrapWhole(text, m[1], strings.Repeat(" ", len(m[1])), columns) {
			fmt.Fprintln(&b, broken)
		}
	}
	return b.String()
}

// flagError is a usage error that names the flag which may have been meant, or what its value should be.
func flagError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var lacking *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &lacking):
		given := "--" + lacking.GetFlag().Name
		if lacking.GetSpecifiedShortnames() != "" { // those of iperf3 have long names that nobody sees
			given = "-" + lacking.GetSpecifiedName()
		}
		return usagef("%s: needs a value; %s --help shows which", given, c.CommandPath())
	case errors.As(err, &invalid):
		name, value := invalid.GetFlag().Name, invalid.GetValue()
		switch invalid.GetFlag().Value.Type() {
		case "int":
			return usagef("--%s: want a whole number, not %q", name, value)
		case "bool":
			return usagef("--%s: want true or false, not %q", name, value)
		case "duration":
			return usagef("--%s: want a time as 5s, not %q", name, value)
		}
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		err = words.Errorf("unknown flag: %s", "-"+unknown.GetSpecifiedName())
	case errors.As(err, &unknown):
		if flag, long := strings.CutPrefix(err.Error(), "unknown flag: "); long {
			err = words.Errorf("unknown flag: %s", flag)
		}
		if near := nearFlags(c.Flags(), unknown.GetSpecifiedName()); len(near) > 0 {
			return usagef("%v; did you mean --%s?", err, strings.Join(near, spoken().Say(" or ")+"--"))
		}
	}
	return usagef("%v; %s --help lists the flags", err, c.CommandPath())
}

// nearFlags are the flags whose names differ by two letters at most, or go on from there.
func nearFlags(flags *pflag.FlagSet, name string) []string {
	names := cobra.Command{SuggestionsMinimumDistance: 2} // cobra compares names of commands
	flags.VisitAll(func(f *pflag.Flag) {
		names.AddCommand(&cobra.Command{Use: f.Name, Hidden: f.Hidden, Run: func(*cobra.Command, []string) {}})
	})
	return names.SuggestionsFor(name)
}

// helpWidth is how wide help is printed: as the terminal is, but no wider than people read.
func helpWidth() int {
	width, _, _ := terminal(os.Stdout)
	return min(width, 100)
}
