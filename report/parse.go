package report

import (
	"fmt"
	"io"

	"pelt/model"
)

// MaxDocumentBytes bounds what ReadJSON takes into memory: a week's series of
// a hundred flows stays below it.
const MaxDocumentBytes = 1 << 29

// ReadJSON reads a document that JSON wrote; name is the source's, for the
// errors, which are one line with line and field: see model.DecodeDocument.
func ReadJSON(r io.Reader, name string) (model.Document, error) {
	b, err := io.ReadAll(io.LimitReader(r, MaxDocumentBytes+1))
	if err != nil {
		return model.Document{}, fmt.Errorf("reading %s: %w", name, err)
	}
	if len(b) > MaxDocumentBytes {
		return model.Document{}, fmt.Errorf("%s: is larger than a run document can be (%d MiB)", name, MaxDocumentBytes>>20)
	}
	return model.DecodeDocument(b, name)
}
