package live

import (
	"encoding/json"
	"fmt"
	"io"
)

// WriteLines writes the events of a reader to w, a line of JSON each, until the last one.
func WriteLines(w io.Writer, past []Event, r *Reader) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, e := range past {
		if err := enc.Encode(e); err != nil {
			return fmt.Errorf("write events: %w", err)
		}
	}
	for e := range r.C {
		if err := enc.Encode(e); err != nil {
			return fmt.Errorf("write events: %w", err)
		}
	}
	if r.Slow() {
		return fmt.Errorf("write events: the reader of the lines fell behind by %d events; no more were written",
			mostBehind)
	}
	return nil
}
