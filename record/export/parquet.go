package export

import (
	"io"

	"github.com/parquet-go/parquet-go"

	"pelt/record"
)

// parquetRow has the columns of CSV, in its order.
type parquetRow struct {
	Trial    int64  `parquet:"trial,delta"`
	Flow     string `parquet:"flow,dict"`
	Stream   int64  `parquet:"stream,delta"`
	Sequence int64  `parquet:"sequence,delta"`
	Send     int64  `parquet:"send_ns,delta"`
	Receive  int64  `parquet:"receive_ns,delta"`
	Delay    *int64 `parquet:"delay_ns,optional"`
}

const (
	rowsAtOnce = 1024
	// rowGroup is how many rows are gathered before they are written: some 8 MB.
	rowGroup = 1 << 17
)

// Parquet writes the columns of CSV: integers as differences, flow as text. delay_ns
// is null where the clocks are two.
func Parquet(w io.Writer, s Source) error {
	h := s.Header()
	out := parquet.NewGenericWriter[parquetRow](w, parquet.MaxRowsPerRowGroup(rowGroup), parquet.Compression(&parquet.Zstd),
		parquet.CreatedBy("pelt", h.Tool.Version, ""), parquet.KeyValueMetadata("format", h.Format), parquet.KeyValueMetadata("run", h.Run), parquet.KeyValueMetadata("target", h.Target))
	rows, delays := make([]parquetRow, 0, rowsAtOnce), make([]int64, rowsAtOnce)
	put := func() error {
		_, err := out.Write(rows)
		rows = rows[:0]
		return err
	}
	err := s.each(func(f *flow, p *record.Packets) error {
		for i := range p.List {
			x := &p.List[i]
			row := parquetRow{Trial: int64(p.Trial), Flow: f.Name, Stream: int64(p.Stream), Sequence: int64(x.Sequence), Send: int64(x.SendNanos), Receive: x.ReceiveNanos}
			if f.OneClock {
				delays[len(rows)] = delay(x)
				row.Delay = &delays[len(rows)]
			}
			if rows = append(rows, row); len(rows) == rowsAtOnce {
				if err := put(); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if e := put(); e != nil {
		return e
	}
	if e := out.Close(); e != nil {
		return e
	}
	return err
}
