package record

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"pelt/internal/testenv"
	"pelt/test/golden"
)

// A file that was once written stays readable: testdata/version2.rec is never written anew. It has a block of every
// kind, and packets of steady, reordered, batched and wild flows. What was written stands in version2.txt.
func TestVersion2(t *testing.T) {
	file, err := os.ReadFile("testdata/version2.rec")
	testenv.Must(t, err)
	blocks, err := readAll(file)
	if !errors.Is(err, io.EOF) {
		t.Errorf("read %d blocks, %v", len(blocks), err)
	}
	var out strings.Builder
	for _, b := range blocks {
		text, err := json.Marshal(b)
		testenv.Must(t, err)
		out.WriteString(strings.ReplaceAll(string(text), "},{", "},\n{") + "\n")
	}
	golden.File(t, "testdata/version2.txt", out.String())
}
