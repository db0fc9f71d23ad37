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
BTF. A network card's own drops pass no kernel function: see ip -s link.

Without --all, drops that healthy hosts make all the time share one line.

--json writes an object for each interval, of format pelt/drops/1; the last one has
"sum": true and holds the whole watch.

Ctrl-C is exit code 0, or 130 where it cuts --time short.`,
		Example: "  pelt drops\n  pelt drops --port 5201 --time 10s\n  pelt drops --all --json - | jq .",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return f.run(c)
		},
	}
	c.Flags().StringSliceVar(&f.ports, "port", nil, "only TCP and UDP from or to this `PORT`; up to 16, as 5201,7359")
	c.Flags().BoolVar(&f.all, "all", false, "list ordinary drops, too")
	c.Flags().StringVar(&f.json, "json", "", "write one JSON object an interval to `FILE`, or - for standard output")
	c.Flags().StringVar(&f.time, "time", "", "end after this `TIME`: 10s (default: at Ctrl-C)")
	c.Flags().StringVar(&f.interval, "interval", "1s", "`TIME` between readings: 100ms to 1h")
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
	v := &dropsView{all: f.all, out: c.OutOrStdout()}
	if len(ports) > 0 {
		v.filter = "port " + strings.Trim(strings.ReplaceAll(fmt.Sprint(ports), " ", ", "), "[]")
	}
	v.watch = view.NewDrops(v.filter, f.all)
	if file, ok := v.out.(*os.File); ok && f.json != "-" {
		v.live = isTerminal(file)
	}
	watch := func() error { return v.run(c, ports, length, interval, f.verbose) }
	switch f.json {
	case "":
		return watch()
	case "-":
		v.out, v.record = nil, c.OutOrStdout()
		return watch()
	}
	if err := outfile.Check(f.json); err != nil {
		return fmt.Errorf("--json: %w", err)
	}
	// The exit code of a watch that was cut short is no reason to lose its file.
	var ended error
	err = outfile.Write(f.json, func(w io.Writer) error {
		v.record, ended = w, nil
		ended = watch()
		var code exitCode
		if errors.As(ended, &code) {
			return nil
		}
		return ended
	})
	return cmp.Or(err, ended)
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

// run reads at each interval until it is over, and then the whole.
func (v *dropsView) run(c *cobra.Command, ports []uint16, length, interval time.Duration, verbose bool) error {
	ctx := c.Context()
	w, err := run.WatchDrops(ports)
	if err != nil {
		if verbose {
			fmt.Fprintf(c.ErrOrStderr(), "%+v\n", err)
		}
		return err
	}
	if v.out != nil && !v.live {
		fmt.Fprintf(c.ErrOrStderr(), "watching %s; Ctrl-C ends it\n", cmp.Or(v.filter, "all traffic"))
	}
	if length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, length)
		defer cancel()
	}
	err = v.follow(ctx, w, interval)
	if err = errors.Join(err, w.Close()); err == nil && length > 0 && c.Context().Err() != nil {
		return exitCode(exitInterrupted)
	}
	return err
}

func (v *dropsView) follow(ctx context.Context, w *run.Drops, interval time.Duration) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			sum, err := w.Sum()
			if err != nil {
				return err
			}
			return v.show(sum, func(w io.Writer) error {
				return render.Text(w, view.DropsTotal(sum, v.filter, v.all), screenOf())
			})
		case <-tick.C:
			d, err := w.Next()
			if err != nil {
				return err
			}
			if err := v.show(d, func(w io.Writer) error { return v.interval(w, d) }); err != nil {
				return err
			}
		}
	}
}

// show writes figures as JSON, and then for people.
func (v *dropsView) show(d model.LiveDrops, text func(io.Writer) error) error {
	if v.record != nil {
		if err := json.NewEncoder(v.record).Encode(model.Finite(d)); err != nil {
			return err
		}
	}
	if v.out == nil {
		return nil
	}
	var b strings.Builder // one write does not flicker
	if v.drawn > 0 {
		fmt.Fprintf(&b, "\r\x1b[%dA\x1b[J", v.drawn) // up the table's lines, and erase from there (ECMA-48 CUU and ED)
	}
	if err := text(&b); err != nil {
		return err
	}
	_, err := io.WriteString(v.out, b.String())
	return err
}

// interval writes lines, or on a terminal the table.
func (v *dropsView) interval(w io.Writer, d model.LiveDrops) error {
	v.watch.Add(d)
	lines := view.DropLines(d, v.all)
	if v.live {
		var text strings.Builder
		if err := render.Text(&text, v.watch.Page(), screenOf()); err != nil {
			return err
		}
		lines = strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
		lines = lines[:min(len(lines), terminalRows(os.Stdout)-1)]
		v.drawn = len(lines)
	}
	for _, line := range lines {
		fmt.Fprintln(w, line)
	}
	return nil
}

// screenOf is the terminal for a whole page.
func screenOf() render.Terminal {
	width, color := terminal(os.Stdout)
	return render.Terminal{Width: width, Color: color, All: true}
}
