package main

import (
	"net"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"pelt/lab"
	"pelt/model"
	"pelt/run"
	"pelt/table"
)

// valuesOf lists the values of flags and arguments, by what --help calls them. All are known without asking the
// network. A value may have a tab and a description behind it.
var valuesOf = map[string]func() []string{
	"--control": controls,
	"--metric":  table.Words,
	"--sort":    table.Words,
	"--by":      settings,
	"--dev":     interfaces,
	"--role":    func() []string { return []string{"sender", "receiver", "router"} },
	"RUN":       runs,
	"TARGET":    targets,
	"FLEET":     fleets,
	"TOPOLOGY":  lab.Topologies,
	"LAB":       labs,
}

// complete gives the flags and arguments of all commands their values for the completion of a shell.
func complete(c *cobra.Command) {
	for _, sub := range c.Commands() {
		complete(sub)
	}
	c.ValidArgsFunction = func(c *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		return completed(argument(c.Use, args), typed)
	}
	c.Flags().VisitAll(func(f *pflag.Flag) {
		value, _ := pflag.UnquoteUsage(f)
		if _, ours := valuesOf["--"+f.Name]; ours {
			value = "--" + f.Name
		}
		words := knobWords(f)
		_ = c.RegisterFlagCompletionFunc(f.Name,
			func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
				if words != nil {
					return listed(words, typed), onlyThese
				}
				return completed(value, typed)
			})
	})
}

// What a shell offers beside the values, which stay in order.
const (
	onlyThese = cobra.ShellCompDirectiveKeepOrder | cobra.ShellCompDirectiveNoFileComp
	orFiles   = cobra.ShellCompDirectiveKeepOrder // if no value fits
)

// completed returns the values of a flag or argument that begin as the typed text does.
func completed(name, typed string) ([]string, cobra.ShellCompDirective) {
	var values []string
	if of := valuesOf[name]; of != nil {
		values = listed(of(), typed)
	}
	if name == "FILE" || name == "RUN" { // RUN may be a file
		return values, orFiles
	}
	return values, onlyThese
}

// listed returns the values that may stand behind the last comma of a list.
func listed(values []string, typed string) (all []string) {
	before := typed[:strings.LastIndex(typed, ",")+1]
	for _, v := range values {
		word, _, _ := strings.Cut(v, "\t")
		if strings.HasPrefix(before+word, typed) && !slices.Contains(strings.Split(before, ","), word) {
			all = append(all, before+v)
		}
	}
	return all
}

// argument names what comes next on a command line, by the form of the command in --help.
func argument(use string, args []string) string {
	several := strings.HasSuffix(use, "...") || strings.HasSuffix(use, "...]")
	switch {
	case strings.Contains(use, " [NAME] ") && len(args) == 0, strings.HasSuffix(use, " NAME") && len(args) == 0:
		return "LAB"
	case len(args) > 0 && !several:
		return ""
	case use == "mesh TARGET":
		return "FLEET"
	case strings.Contains(use, "TARGET"), strings.Contains(use, "lab:NAME"):
		return "TARGET"
	case strings.Contains(use, "RUN"):
		return "RUN"
	case strings.Contains(use, "FILE"), strings.Contains(use, "PLAN"):
		return "FILE"
	case strings.Contains(use, "TOPOLOGY"):
		return "TOPOLOGY"
	}
	return ""
}

// knobWords are the words that the flag of a knob may be.
func knobWords(f *pflag.Flag) []string {
	i := slices.IndexFunc(model.Knobs(), func(k model.Knob) bool { return k.Flag == f.Name })
	if _, ours := f.Value.(*typed); !ours || i < 0 {
		return nil
	}
	return model.Knobs()[i].Words
}

// settings are what --by of pelt compare can name.
func settings() []string {
	return slices.DeleteFunc(model.KnobNames(), func(name string) bool { return name == "direction" })
}

// controls are the congestion controls that this host's kernel has loaded.
func controls() []string {
	text, _ := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control") // no values where there is none
	return strings.Fields(string(text))
}

func interfaces() (names []string) {
	all, _ := net.Interfaces() // no values where they cannot be read
	for _, i := range all {
		names = append(names, i.Name)
	}
	return names
}

// labs are those that are up.
func labs() (names []string) {
	all, _ := lab.List() // no values on systems without labs
	for _, l := range all {
		names = append(names, l.Name+"\t"+l.Topology)
	}
	return names
}

func runs() []string {
	values := []string{"last"}
	all, _ := kept() // no values where they cannot be read
	for _, r := range all {
		values = append(values, r.ID+"\t"+r.Command+" "+r.Target+" "+r.Started.Local().Format("2006-01-02 15:04"))
	}
	return values
}

// targets are all labs, and where earlier tests went.
func targets() []string {
	var values []string
	for _, name := range slices.Concat(lab.Topologies(), []string{run.Loopback}, labs()) {
		values = append(values, "lab:"+name)
	}
	return append(values, earlier(func(target string) bool { return !slices.Contains(values, target) })...)
}

// fleets are all hosts of the hub, and the fleets of earlier tests.
func fleets() []string {
	return append([]string{model.FleetTarget}, earlier(func(target string) bool {
		return target != model.FleetTarget && strings.HasPrefix(target, model.FleetTarget)
	})...)
}

// earlier returns the targets of kept runs that a function wants.
func earlier(wanted func(target string) bool) (values []string) {
	all, _ := kept() // no values where they cannot be read
	for _, r := range all {
		if !slices.Contains(values, r.Target) && wanted(r.Target) {
			values = append(values, r.Target)
		}
	}
	return values
}
