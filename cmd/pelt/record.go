package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"pelt/engine"
	"pelt/internal/outfile"
	"pelt/record"
	"pelt/record/contents"
	"pelt/record/export"
	"pelt/view"
)

func newRecord() *cobra.Command {
	c := &cobra.Command{
		Use:   "record",
		Short: "Read what --record wrote: every packet that came",
		Long: `record reads the files of --record: sequence, send time and receive time of every packet
of a UDP receiver. A file that was cut is read up to the cut.`,
		Example: `  pelt curve lab:direct --payload 512 --rate 40kpps --record packets.rec`,
		Args:    noSubcommand,
		RunE:    showHelp,
	}
	c.AddCommand(newRecordShow(), newRecordExport())
	return c
}

func newRecordShow() *cobra.Command {
	var asJSON jsonFlag
	c := &cobra.Command{
		Use:     "show FILE",
		Short:   "Say what a record holds, and whether it is whole",
		Long:    "show lists the trials and flows of a record, and the first series of lost packets.",
		Example: "  pelt record show packets.rec",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			r, done, err := openRecord(args[0])
			if err != nil {
				return err
			}
			d, err := contents.Read(r)
			if err := done(err); err != nil {
				return err
			}
			return asJSON.print(c, d, func(w io.Writer) error {
				return printPage(w, view.Record(spoken(), d), true, moreInJSON)
			})
		},
	}
	asJSON.register(c.Flags())
	return c
}

func newRecordExport() *cobra.Command {
	var csv, pcap string
	c := &cobra.Command{
		Use:   "export FILE",
		Short: "Turn a record into CSV or a capture for Wireshark",
		Long: `export writes each packet as a row of CSV, or as a packet of a capture. There the headers are
made up, and packets are cut after the test header; their lengths are real.`,
		Example: "  pelt record export packets.rec --pcap-like packets.pcap",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case (csv == "") == (pcap == ""):
				return usagef("give either --csv or --pcap-like, with a file or -")
			case csv != "":
				return exportRecord(c, args[0], "csv", csv, export.CSV)
			}
			asPcap := func(w io.Writer, r *record.Reader) error { return export.Pcap(w, r, testHeader) }
			return exportRecord(c, args[0], "pcap-like", pcap, asPcap)
		},
	}
	c.Flags().StringVar(&csv, "csv", "", "a row for each packet to `FILE`, or -")
	c.Flags().StringVar(&pcap, "pcap-like", "", "a capture with time stamps in nanoseconds to `FILE`, or -")
	return c
}

func testHeader(b []byte, trial uint16, sequence, sendNanos uint64) {
	engine.PutHeader(b, engine.Header{Trial: trial, Sequence: sequence, SendNanos: sendNanos})
}

// exportRecord writes a file whole or not at all. What a cut record holds is exported, and told.
func exportRecord(c *cobra.Command, path, flag, to string, write func(io.Writer, *record.Reader) error) error {
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
	r, done, err := openRecord(path)
	if err != nil {
		return err
	}
	if err := done(writeTo(c, to, func(w io.Writer) error { return write(w, r) })); err != nil {
		return err
	}
	if cut := r.Cut(); cut != nil {
		tellf(c, "pelt: the record is not whole: %v; what is before is exported", cut)
	}
	if to != "-" {
		tellf(c, "wrote %s", to)
	}
	return nil
}

// openRecord opens a file for reading; done closes it, and adds its name to the error of what was done with it.
func openRecord(path string) (r *record.Reader, done func(error) error, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, usageError{err}
	}
	info, err := f.Stat()
	if err == nil && info.IsDir() {
		err = usagef("%s is a directory; want a record's file", path)
	}
	if err == nil {
		r, err = record.NewReader(f)
	}
	if err != nil {
		var version *record.VersionError
		var cut *record.CutError
		if errors.Is(err, record.ErrNone) || errors.As(err, &version) || errors.As(err, &cut) {
			err = usagef("%s: %v", path, err)
		}
		return nil, nil, errors.Join(err, f.Close())
	}
	return r, func(err error) error {
		if errors.Is(err, record.ErrTooMany) {
			err = usagef("%v", err)
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("record %s: %w", path, err)
		}
		return nil
	}, nil
}
