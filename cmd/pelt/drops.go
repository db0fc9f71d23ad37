package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// dropsFlags say what is watched and how it is shown.
type dropsFlags struct {
	ports          []string
	all, verbose   bool
	json           string
	time, interval string
}

func newDrops() *cobra.Command {
	var f dropsFlags
	c := &cobra.Command{
		Use:   "drops",
		Short: "Watch what this host drops right now: layer, reason, kernel function, flow",
		Long: `drops watches the kernel drop packets of any traffic, in every network namespace of this
host, until Ctrl-C or --time; then it prints totals. It needs root and Linux 5.17 with
BTF. Delivered packets cost nothing. A network card's own drops pass no kernel function:
pelt curve and ip -s link show them.

Without --all, drops that healthy hosts make all the time (packet taps, repeated TCP
segments, neighbour discovery meant for others, local messages) share one line.

--json writes an object for each interval, of format pelt/drops/1: at (its end),
interval_s, packets, total_packets, drops (each with layer, reason, function, interface,
namespace, protocol, from, to, pps, packets, ...), and sites_lost and missed, which the
watch could not see. The last object has "sum": true and holds the whole watch.

Ctrl-C is exit code 0, or 130 where it cuts --time short.`,
		Example: "  pelt drops\n  pelt drops --port 5201 --time 10s\n  pelt drops --all --json - | jq .",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return f.run(c)
		},
	}
	c.Flags().StringSliceVar(&f.ports, "port", nil, "only TCP and UDP from or to this port; up to 16, as 5201,7359")
	c.Flags().BoolVar(&f.all, "all", false, "list ordinary drops, too")
	c.Flags().StringVar(&f.json, "json", "", "write one JSON object an interval to FILE, or - for standard output")
	c.Flags().StringVar(&f.time, "time", "", "end after this long: 10s (default: at Ctrl-C)")
	c.Flags().StringVar(&f.interval, "interval", "1s", "time between readings: 100ms to 1h")
	c.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "if the kernel refuses the watch, print all it said")
	return c
}

// mostPorts is what one watch can tell apart.
const mostPorts = 16

func (f *dropsFlags) parse() (ports []uint16, length, interval time.Duration, err error) {
	for _, text := range f.ports {
		n, err := strconv.ParseUint(strings.TrimSpace(text), 10, 16)
		if err != nil || n == 0 {
			return nil, 0, 0, usagef("--port: want 1 to 65535, not %q", text)
		}
		if !slices.Contains(ports, uint16(n)) {
			ports = append(ports, uint16(n))
		}
	}
	if len(ports) > mostPorts {
		return nil, 0, 0, usagef("--port: want at most %d, not %d", mostPorts, len(ports))
	}
	interval, err = unit.ParseDuration(f.interval)
	if err != nil || interval < 100*time.Millisecond || interval > time.Hour {
		return nil, 0, 0, usagef("--interval: want 100ms to 1h, not %q", f.interval)
	}
	if f.time != "" {
		if length, err = positive(f.time); err != nil {
			return nil, 0, 0, usagef("--time: %v", err)
		}
	}
	return ports, length, interval, nil
}

func (f *dropsFlags) run(c *cobra.Command) error {
	ports, length, interval, err := f.parse()
	if err != nil {
		return err
	}
	switch f.json {
	case "":
		return f.watch(c, ports, length, interval, c.OutOrStdout(), nil)
	case "-":
		return f.watch(c, ports, length, interval, nil, c.OutOrStdout())
	}
	if err := outfile.Check(f.json); err != nil {
		return fmt.Errorf("--json: %w", err)
	}
	// The exit code of a watch that was cut short is no reason to lose its file.
	var ended error
	err = outfile.Write(f.json, func(w io.Writer) error {
		ended = f.watch(c, ports, length, interval, c.OutOrStdout(), w)
		var code exitCode
		if errors.As(ended, &code) {
			return nil
		}
		return ended
	})
	return cmp.Or(err, ended)
}

// watch reads at each interval until it is over, and then the whole. It writes for
// people to out and JSON to record, one of which may be nil.
func (f *dropsFlags) watch(c *cobra.Command, ports []uint16, length, interval time.Duration, out, record io.Writer) error {
	ctx := c.Context()
	w, err := run.WatchDrops(ports)
	if err != nil {
		if f.verbose {
			fmt.Fprintf(c.ErrOrStderr(), "%+v\n", err)
		}
		return err
	}
	v := f.newView(c, ports, out, record)
	if length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, length)
		defer cancel()
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
			var d model.LiveDrops
			if d, err = w.Next(); err == nil {
				err = v.show(d)
			}
			if err != nil {
				return errors.Join(err, w.Close())
			}
		}
	}
	sum, err := w.Sum()
	if err == nil {
		err = v.end(sum)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return err
	}
	if length > 0 && c.Context().Err() != nil {
		return exitCode(exitInterrupted)
	}
	return nil
}

// dropsView is how a watch is shown: a table that is redrawn, or lines, and JSON.
type dropsView struct {
	watch       *view.Drops
	filter      string
	all         bool
	out, record io.Writer // for people, and for JSON; one may be nil
	live        bool      // out is a terminal
	drawn       int       // lines of the table on the screen
}

func (f *dropsFlags) newView(c *cobra.Command, ports []uint16, out, record io.Writer) *dropsView {
	filter := ""
	if len(ports) > 0 {
		var list []string
		for _, p := range ports {
			list = append(list, strconv.Itoa(int(p)))
		}
		filter = "port " + strings.Join(list, ", ")
	}
	file, _ := out.(*os.File)
	v := &dropsView{filter: filter, all: f.all, out: out, record: record, live: file != nil && isTerminal(file)}
	v.watch = view.NewDrops(filter, f.all)
	if out != nil && !v.live {
		fmt.Fprintf(c.ErrOrStderr(), "watching %s; Ctrl-C ends it\n", cmp.Or(filter, "all traffic"))
	}
	return v
}

func (v *dropsView) show(d model.LiveDrops) error {
	if v.record != nil {
		if err := json.NewEncoder(v.record).Encode(model.Finite(d)); err != nil || v.out == nil {
			return err
		}
	}
	v.watch.Add(d)
	if !v.live {
		for _, line := range view.DropLines(d, v.all) {
			if _, err := fmt.Fprintln(v.out, line); err != nil {
				return err
			}
		}
		return nil
	}
	var text strings.Builder
	width, color := terminal(os.Stdout)
	if err := render.Text(&text, v.watch.Page(), render.Terminal{Width: width, Color: color, All: true}); err != nil {
		return err
	}
	lines := strings.SplitAfter(text.String(), "\n")
	lines = lines[:min(len(lines), terminalRows(os.Stdout)-1)]
	_, err := io.WriteString(v.out, v.clear()+strings.Join(lines, ""))
	v.drawn = strings.Count(strings.Join(lines, ""), "\n")
	return err
}

// clear takes the table off the screen: up its lines, and erase from there
// (ECMA-48 CUU and ED).
func (v *dropsView) clear() string {
	if v.drawn == 0 {
		return ""
	}
	return fmt.Sprintf("\r\x1b[%dA\x1b[J", v.drawn)
}

func (v *dropsView) end(sum model.LiveDrops) error {
	if v.record != nil {
		if err := json.NewEncoder(v.record).Encode(model.Finite(sum)); err != nil || v.out == nil {
			return err
		}
	}
	if v.live {
		if _, err := io.WriteString(v.out, v.clear()); err != nil {
			return err
		}
	}
	width, color := terminal(os.Stdout)
	at := render.Terminal{Width: width, Color: color, All: true}
	return render.Text(v.out, view.DropsTotal(sum, v.filter, v.all), at)
}
