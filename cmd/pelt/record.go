package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"pelt/engine"
	"pelt/internal/outfile"
	"pelt/record"
	"pelt/record/export"
	"pelt/record/stats"
)

func newRecord() *cobra.Command {
	c := &cobra.Command{
		Use:   "record",
		Short: "Read what --record took down: every packet that came",
		Long: `record reads the files that test commands write with --record FILE: sequence, send
time and receive time of every packet that a UDP receiver saw in the measured part
of each trial. A file whose writer was killed reads up to where it ends.`,
		Example: "  pelt curve lab:direct --payload 512 --rate 40kpps --record packets.rec\n  pelt record show packets.rec\n  pelt record export packets.rec --csv packets.csv",
		Args:    noSubcommand,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newRecordShow(), newRecordStats(), newRecordExport())
	return c
}

func newRecordShow() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "show FILE",
		Short:   "Say what a record holds, and whether it is whole",
		Long:    "show lists the trials and flows of a record, and the first runs of lost packets.",
		Example: "  pelt record show packets.rec",
		Args:    cobra.ExactArgs(1),
		RunE:    func(c *cobra.Command, args []string) error { return showRecord(c, args[0], asJSON, stats.Show) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "as one JSON document")
	return c
}

func newRecordStats() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "stats FILE",
		Short: "Compute loss, order, delay, jitter and gaps again from a record",
		Long: `stats computes from the packets themselves: loss and the lengths of its runs,
duplicates, reordering (RFC 4737), delay where both ends read one clock, jitter
(RFC 3550), and the gaps between packets when they were sent and when they came; and
says whether the trial's own figures are the same.`,
		Example: "  pelt record stats packets.rec\n  pelt record stats packets.rec --json",
		Args:    cobra.ExactArgs(1),
		RunE:    func(c *cobra.Command, args []string) error { return showRecord(c, args[0], asJSON, stats.Text) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "as one JSON document, with histograms")
	return c
}

func showRecord(c *cobra.Command, path string, asJSON bool, text func(io.Writer, stats.Document) error) error {
	r, done, err := openRecord(c, path)
	if err != nil {
		return err
	}
	d, err := stats.Read(r.Reader, r.Progress)
	if errors.Is(err, stats.ErrTooMany) {
		err = usagef("%v", err)
	}
	if err := errors.Join(err, done()); err != nil {
		return fmt.Errorf("record %s: %w", path, err)
	}
	if !asJSON {
		return text(c.OutOrStdout(), d)
	}
	e := json.NewEncoder(c.OutOrStdout())
	e.SetIndent("", "  ")
	return e.Encode(d)
}

func newRecordExport() *cobra.Command {
	var csv, pcap, parquet string
	c := &cobra.Command{
		Use:   "export FILE",
		Short: "Turn a record into CSV, a capture for Wireshark, or Parquet",
		Long: `export writes a row or a packet for each one of a record. The capture has headers
that are made up, with the test header behind them, and is cut there; the length of
each packet is its own.`,
		Example: "  pelt record export packets.rec --csv -\n  pelt record export packets.rec --pcap-like packets.pcap",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if empty := emptyFlag(c); empty != "" {
				return usagef("--%s: is empty; want a file, or - for standard output", empty)
			}
			var flag, to string
			var write func(io.Writer, export.Source) error
			for _, x := range []struct {
				flag, to string
				write    func(io.Writer, export.Source) error
			}{
				{"csv", csv, export.CSV}, {"parquet", parquet, export.Parquet},
				{"pcap-like", pcap, func(w io.Writer, s export.Source) error { return export.Pcap(w, s, testHeader) }},
			} {
				switch {
				case x.to == "":
				case flag != "":
					return usagef("give one of --csv, --pcap-like and --parquet")
				default:
					flag, to, write = x.flag, x.to, x.write
				}
			}
			if flag == "" {
				return usagef("give one of --csv, --pcap-like and --parquet, with a file or -")
			}
			return exportRecord(c, args[0], flag, to, write)
		},
	}
	c.Flags().StringVar(&csv, "csv", "", "a row for each packet to FILE, or - for standard output")
	c.Flags().StringVar(&pcap, "pcap-like", "", "a capture with time stamps in nanoseconds to FILE, or -")
	c.Flags().StringVar(&parquet, "parquet", "", "columns of whole numbers to FILE, or -")
	return c
}

func testHeader(b []byte, trial uint16, sequence, sendNanos uint64) {
	engine.PutHeader(b, engine.Header{Trial: trial, Sequence: sequence, SendNanos: sendNanos})
}

// exportRecord writes a file whole or not at all. What a cut record holds is
// exported, and told.
func exportRecord(c *cobra.Command, path, flag, to string, write func(io.Writer, export.Source) error) error {
	if to != "-" {
		from, missing := os.Stat(path)
		over, fresh := os.Stat(to)
		if missing == nil && fresh == nil && os.SameFile(from, over) {
			return usagef("--%s: %s is the record itself", flag, to)
		}
		if err := outfile.Check(to); err != nil {
			return fmt.Errorf("--%s: %w", flag, err)
		}
	}
	r, done, err := openRecord(c, path)
	if err != nil {
		return err
	}
	var cut export.Cut
	all := func(w io.Writer) error {
		if err := write(w, r); !errors.As(err, &cut) {
			return err
		}
		return nil
	}
	if to == "-" {
		err = all(c.OutOrStdout())
	} else {
		err = outfile.Write(to, all)
	}
	if err = errors.Join(err, done()); err != nil {
		return fmt.Errorf("record %s: %w", path, err)
	}
	if cut.CutError != nil {
		fmt.Fprintf(c.ErrOrStderr(), "pelt: the record is not whole: %v; what is before is exported\n", cut.CutError)
	}
	if to != "-" {
		fmt.Fprintf(c.ErrOrStderr(), "wrote %s\n", to)
	}
	return nil
}

// openRecord opens a file for reading; done closes it. What takes longer than two
// seconds says how far it is.
func openRecord(c *cobra.Command, path string) (s export.Source, done func() error, err error) {
	f, err := os.Open(path)
	if err != nil {
		return s, nil, usageError{err}
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = usagef("%s is a directory; want a record's file", path)
	}
	if err == nil {
		s.Reader, err = record.NewReader(f)
	}
	if err != nil {
		var version *record.VersionError
		var cut *record.CutError
		if errors.Is(err, record.ErrNone) || errors.As(err, &version) || errors.As(err, &cut) {
			err = usagef("%s: %v", path, err)
		}
		return s, nil, errors.Join(err, f.Close())
	}
	const patience, again = 2 * time.Second, time.Second
	next, told := time.Now().Add(patience), false
	screen := isTerminal(os.Stderr)
	s.Progress = func(bytes int64) {
		now := time.Now()
		if now.Before(next) || info.Size() == 0 {
			return
		}
		next, told = now.Add(again), true
		end := "\n"
		if screen {
			end = "\r"
		}
		fmt.Fprintf(c.ErrOrStderr(), "reading %s: %.0f %%%s", path, 100*float64(bytes)/float64(info.Size()), end)
	}
	return s, func() error {
		if told && screen {
			fmt.Fprintln(c.ErrOrStderr())
		}
		return f.Close()
	}, nil
}
