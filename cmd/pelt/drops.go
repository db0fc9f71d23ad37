package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pelt/internal/outfile"
	"pelt/model"
	"pelt/render"
	"pelt/run"
	"pelt/unit"
	"pelt/view"
)

type dropsFlags struct {
	ports, hosts   []string
	devices        []string
	all, verbose   bool
	json, prom     string
	time, interval string
}

func newDrops() *cobra.Command {
	var f dropsFlags
	c := &cobra.Command{
		Use:   "drops",
		Short: "Watch what this host drops right now: layer, reason, kernel function, flow",
		Long: `drops watches the kernel drop packets of any traffic, in every network namespace, until
Ctrl-C or --time; then it prints totals. It needs root and Linux 5.5 with BTF, and cannot
see a network card's own drops: see ip -s link.

--port, --host and --dev show only drops that match all three. The kernel filters by port;
hosts and interfaces are picked from its table of 16 384 flows. So on a host that drops
packets of more flows, give --port as well.

--json writes an object of format pelt/drops/1 for each interval; the last has "sum": true
and holds the whole watch.

Ctrl-C is exit code 0, or 130 if it cuts --time short.`,
		Example: "  pelt drops --port 5201 --time 10s\n  pelt drops --host 10.0.1.2 --dev eth0",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return f.run(c)
		},
	}
	c.Flags().StringSliceVar(&f.ports, "port", nil, "only TCP and UDP of this `PORT`; up to 16: 5201,7359")
	c.Flags().StringSliceVar(&f.hosts, "host", nil, "only from or to this `ADDRESS` or network; up to 16: "+
		"10.0.1.2,10.0.2.0/24")
	c.Flags().StringSliceVar(&f.devices, "dev", nil, "only what is dropped at this `INTERFACE`; up to 16: eth0,wlan0")
	c.Flags().BoolVar(&f.all, "all", false, "list also the usual drops of healthy hosts")
	c.Flags().StringVar(&f.json, "json", "", "write one JSON object an interval to `FILE`, or -")
	c.Flags().StringVar(&f.prom, "prom", "",
		"write totals for Prometheus (text format 0.0.4) to `FILE`, anew each interval")
	c.Flags().StringVar(&f.time, "time", "", "end after this `TIME`: 10s (default: at Ctrl-C)")
	c.Flags().StringVar(&f.interval, "interval", "1s", "`TIME` between readings: 100ms to 1h")
	c.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "print all that the kernel says if it refuses")
	return c
}

// mostFilters is how many values of each kind a filter has.
const mostFilters = 16

func (f *dropsFlags) filter() (x run.DropsFilter, err error) {
	for _, text := range f.ports {
		n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 16)
		if err != nil || n == 0 {
			return x, usagef("--port: want 1 to 65535, not %q", text)
		}
		x.Ports = append(x.Ports, uint16(n))
	}
	for _, text := range f.hosts {
		p, err := netip.ParsePrefix(strings.TrimSpace(text))
		if a, wrong := netip.ParseAddr(strings.TrimSpace(text)); wrong == nil {
			a = a.Unmap().WithZone("")
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		if err != nil {
			return x, usagef("--host: want an address or a network such as 10.0.2.0/24, not %q", text)
		}
		x.Hosts = append(x.Hosts, p.Masked())
	}
	for _, text := range f.devices {
		name := strings.TrimSpace(text)
		if name == "" || len(name) > 15 || strings.ContainsAny(name, " /") {
			return x, usagef("--dev: want the name of an interface, not %q", text)
		}
		x.Interfaces = append(x.Interfaces, name)
	}
	x.Ports, x.Hosts, x.Interfaces = once(x.Ports), once(x.Hosts), once(x.Interfaces)
	for name, n := range map[string]int{"--port": len(x.Ports), "--host": len(x.Hosts), "--dev": len(x.Interfaces)} {
		if n > mostFilters {
			return x, usagef("%s: want at most %d, not %d", name, mostFilters, n)
		}
	}
	return x, nil
}

// once leaves out what stands in a list already.
func once[T comparable](list []T) (out []T) {
	for _, x := range list {
		if !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	return out
}

func (f *dropsFlags) parse() (filter run.DropsFilter, length, interval time.Duration, err error) {
	if filter, err = f.filter(); err != nil {
		return filter, 0, 0, err
	}
	interval, err = unit.ParseDuration(f.interval)
	if err != nil || interval < 100*time.Millisecond || interval > time.Hour {
		return filter, 0, 0, usagef("--interval: want 100ms to 1h, not %q", f.interval)
	}
	if f.time != "" {
		if length, err = positive(f.time); err != nil {
			return filter, 0, 0, usagef("--time: %v", err)
		}
	}
	return filter, length, interval, nil
}

func (f *dropsFlags) run(c *cobra.Command) (err error) {
	filter, length, interval, err := f.parse()
	if err != nil {
		return err
	}
	v := &dropsView{filter: filter.String(), all: f.all, out: c.OutOrStdout(), prom: f.prom}
	v.watch = view.NewDrops(spoken(), v.filter, f.all)
	switch file, ok := v.out.(*os.File); f.json {
	case "":
		v.live = ok && isTerminal(file)
	case "-":
		v.out, v.record = nil, c.OutOrStdout()
	default:
		v.live = ok && isTerminal(file)
		if err := outfile.Check(f.json); err != nil {
			return fmt.Errorf("--json: %w", err)
		}
	}
	switch {
	case f.prom == "":
	case f.prom == "-" || f.prom == f.json:
		return usagef("--prom: want a file of its own, which is written anew at each interval")
	default:
		if err := outfile.Check(f.prom); err != nil {
			return fmt.Errorf("--prom: %w", err)
		}
	}
	w, err := run.WatchDrops(filter)
	if err != nil {
		if f.verbose {
			fmt.Fprintf(c.ErrOrStderr(), "%+v\n", errors.Unwrap(err))
		}
		return err
	}
	if f.json != "" && f.json != "-" {
		// It can be read meanwhile, and holds what was seen if this process is killed.
		file, refused := outfile.Create(f.json)
		if refused != nil {
			return errors.Join(fmt.Errorf("--json: %s: %w", f.json, outfile.Cause(refused)), w.Close())
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		v.record = file
	}
	return v.run(c, w, length, interval)
}

// dropsView is how a watch is shown: a table that is redrawn, or lines, and JSON.
type dropsView struct {
	watch       *view.Drops
	filter      string
	all         bool
	out, record io.Writer // for people, and for JSON; one may be nil
	prom        string    // file for Prometheus; "" for none
	live        bool      // out is a terminal
	drawn       int       // lines of the table on the screen
}

// run reads at each interval until it is over, and then the whole.
func (v *dropsView) run(c *cobra.Command, w *run.Drops, length, interval time.Duration) error {
	ctx := c.Context()
	if v.out != nil && !v.live {
		tellf(c, "watching %s; Ctrl-C ends it", cmp.Or(v.filter, spoken().Say("all traffic")))
	}
	if length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, length)
		defer cancel()
	}
	err := v.follow(ctx, w, interval)
	if err = errors.Join(err, w.Close()); err == nil && length > 0 && c.Context().Err() != nil {
		return exitCode(exitInterrupted)
	}
	return err
}

func (v *dropsView) follow(ctx context.Context, w *run.Drops, interval time.Duration) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		read := w.Next
		select {
		case <-ctx.Done():
			read = w.Sum
		case <-tick.C:
		}
		d, err := read()
		if err != nil {
			return err
		}
		if err := v.show(d); err != nil || d.Sum {
			return err
		}
	}
}

// show writes figures as JSON, and for people lines, or on a terminal the table in the place of the one before.
func (v *dropsView) show(d model.LiveDrops) error {
	if v.record != nil {
		if err := json.NewEncoder(v.record).Encode(model.Finite(d)); err != nil {
			return err
		}
	}
	v.watch.Add(d)
	if v.prom != "" {
		gauges := v.watch.Gauges()
		if err := outfile.Write(v.prom, func(w io.Writer) error { return render.Prometheus(w, gauges) }); err != nil {
			return fmt.Errorf("--prom: %w", err)
		}
	}
	if v.out == nil {
		return nil
	}
	var b strings.Builder // one write does not flicker
	if v.drawn > 0 {
		fmt.Fprintf(&b, "\r\x1b[%dA\x1b[J", v.drawn) // up the table's lines, and erase from there (ECMA-48 CUU and ED)
	}
	page := v.watch.Page()
	if d.Sum {
		page = view.DropsTotal(spoken(), d, v.filter, v.all)
	}
	var lines []string
	if d.Sum || v.live {
		width, rows, color := terminal(os.Stdout)
		var text strings.Builder
		if err := render.Text(&text, page, render.Terminal{Width: width, Color: color, All: true}); err != nil {
			return err
		}
		lines = strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
		if !d.Sum {
			lines = lines[:min(len(lines), rows-1)]
			v.drawn = len(lines)
		}
	} else {
		lines = view.DropLines(spoken(), d, v.all)
	}
	for _, line := range lines {
		fmt.Fprintln(&b, line)
	}
	_, err := io.WriteString(v.out, b.String())
	return err
}
