// Package export turns a record into what other tools read: rows of CSV, or a capture
// that Wireshark opens.
//
// A record comes in, one of these goes out, packet after packet: a record of any
// length takes the same memory. Trials that were not kept are exported as well; what
// tells them apart is their number.
package export

import "pelt/record"

// each calls f for every block of packets with its flow and trial; packets of no known flow
// are left out.
func each(r *record.Reader, f func(*record.Trial, *record.Flow, *record.Packets) error) error {
	return r.Each(func(b record.Block) error {
		if p, is := b.(*record.Packets); is {
			if trial, flow := r.Flow(p); flow != nil {
				return f(trial, flow, p)
			}
		}
		return nil
	})
}
