// Package export turns a record into what other tools read: rows of CSV, a capture
// that Wireshark opens, and Parquet.
//
// A record comes in, one of these goes out, packet after packet: a record of any
// length takes the same memory. Trials that were not kept are exported as well; what
// tells them apart is their number.
package export

import (
	"errors"
	"io"

	"pelt/record"
)

// Source is a record that is being exported.
type Source struct {
	*record.Reader
	// Progress, if not nil, is told how many bytes are read.
	Progress func(bytes int64)
}

// Cut is what an export ends with whose record is cut: all before it is exported.
type Cut struct{ *record.CutError }

func (c Cut) Unwrap() error { return c.CutError }

// flows remembers the contexts of what comes.
type flows map[key]*flow

type key struct {
	trial uint32
	flow  uint16
}

type flow struct {
	record.Flow
	trial *record.Trial
}

// each calls f for every block of packets with its context; packets of no known flow
// have none.
func (s Source) each(f func(*flow, *record.Packets) error) error {
	known := flows{}
	for {
		b, err := s.Next()
		var cut *record.CutError
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.As(err, &cut):
			return Cut{cut}
		case err != nil:
			return err
		}
		if s.Progress != nil {
			s.Progress(s.Offset())
		}
		switch b := b.(type) {
		case *record.Trial:
			for _, x := range b.Flows {
				known[key{b.Trial, x.Flow}] = &flow{x, b}
			}
		case *record.Packets:
			if x := known[key{b.Trial, b.Flow}]; x != nil {
				if err := f(x, b); err != nil {
					return err
				}
			}
		case *record.Closed:
			for _, x := range b.Flows {
				delete(known, key{b.Trial, x.Flow})
			}
		}
	}
}
