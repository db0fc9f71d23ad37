package main

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
)

// TestVersion: a packager's version stands in all forms of the answer. A constant could not be set by -ldflags -X.
func TestVersion(t *testing.T) {
	before := release
	release = "1.2.3"
	t.Cleanup(func() { release = before })
	var text, document bytes.Buffer
	if code := execute([]string{"version"}, &text, io.Discard); code != exitOK {
		t.Fatalf("exit code %d", code)
	}
	if !strings.HasPrefix(text.String(), "pelt 1.2.3") {
		t.Errorf("text: %q", text.String())
	}
	if code := execute([]string{"version", "--json"}, &document, io.Discard); code != exitOK {
		t.Fatalf("exit code %d", code)
	}
	var got buildInfo
	if err := json.Unmarshal(document.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := built()
	if got != want || got.Release != "1.2.3" || "pelt "+got.Version+"\n" != text.String() {
		t.Errorf("got %+v, want %+v as in %q", got, want, text.String())
	}
}
