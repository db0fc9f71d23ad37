package export

import (
	"bufio"
	"errors"
	"io"
	"strconv"
	"strings"

	"pelt/record"
)

// CSV writes a row for each packet, in the order they came: trial, flow, stream,
// sequence, send_ns and receive_ns of the two hosts' monotonic clocks, and delay_ns,
// which is empty where these are not one.
func CSV(w io.Writer, r *record.Reader) error {
	out := bufio.NewWriterSize(w, 256<<10)
	if _, err := out.WriteString("trial,flow,stream,sequence,send_ns,receive_ns,delay_ns\n"); err != nil {
		return err
	}
	var row []byte
	err := each(r, func(_ *record.Trial, f *record.Flow, p *record.Packets) error {
		for i := range p.List {
			x := &p.List[i]
			row = strconv.AppendUint(row[:0], uint64(p.Trial), 10)
			row = append(append(append(row, ','), field(f.Name)...), ',')
			row = append(strconv.AppendUint(row, uint64(p.Stream), 10), ',')
			row = append(strconv.AppendUint(row, x.Sequence, 10), ',')
			row = append(strconv.AppendUint(row, x.SendNanos, 10), ',')
			row = append(strconv.AppendInt(row, x.ReceiveNanos, 10), ',')
			if f.OneClock {
				row = strconv.AppendInt(row, delay(x), 10)
			}
			if _, err := out.Write(append(row, '\n')); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, out.Flush())
}

// delay is from send to receive, of which the one wraps at 2^48.
func delay(x *record.Packet) int64 { return int64((uint64(x.ReceiveNanos)-x.SendNanos)<<16) >> 16 }

// field quotes a name where CSV wants it (RFC 4180 section 2), and keeps a spreadsheet from taking it for a formula.
func field(s string) string {
	if s != "" && strings.ContainsRune("=+-@", rune(s[0])) {
		s = "'" + s
	}
	if !strings.ContainsAny(s, ",\"") {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}
