package ledger

import (
	"os"
	"slices"
	"strings"
	"testing"

	"pelt/model"
)

// Every row has words, and can speak: no row before it takes all that it is for.
func TestCauses(t *testing.T) {
	shared := map[string]*Cause{}
	for i := range causes {
		c := &causes[i]
		if c.Words == "" || strings.HasSuffix(c.Words, ".") || c.Name == "" && c.seen == "" && c.rest == "" {
			t.Errorf("row %d, %s: words %q, seen %q", i, c.Name, c.Words, c.seen)
		}
		for text := range strings.FieldsSeq(c.seen) {
			// The same verdict may mean two things only if a fact tells which.
			if o := shared[text]; o != nil && o.when == nil && (!strings.HasSuffix(text, "!") || o.counts == c.counts) {
				t.Errorf("row %d, %s: %s means %s, too", i, c.Name, text, o.Name)
			}
			shared[text] = c
		}
		if c.Name == "" || c.at == stageNone {
			continue
		}
		sent, received := Of(layers[c.at].sender, c.Name), Of(layers[c.at].receiver, c.Name)
		if sent.Words != c.Words && received.Words != c.Words {
			t.Errorf("row %d, %s: a line of it reads %q, or %q", i, c.Name, sent.Words, received.Words)
		}
	}
	for _, layer := range model.Layers() {
		if rest := Of(layer, "BRAND_NEW"); !slices.Contains(strings.Fields(rest.rest), layer) {
			t.Errorf("layer %s has no words for what nobody foresaw", layer)
		}
	}
}

// Each row decides one of the verdicts of the file, or a reason of the newest kernel.
func TestEveryRowDecides(t *testing.T) {
	verdicts := append(lines(t, "testdata/verdicts.txt"), lines(t, "testdata/reasons.txt")...)
	for i := range causes {
		c := &causes[i]
		moved := func(counters string) uint64 {
			if counters == c.counts {
				return 1
			}
			return 0
		}
		decides := func(verdict string) bool {
			reason, function, _ := strings.Cut(strings.TrimPrefix(verdict, "-"), " ")
			return slices.ContainsFunc([]facts{{}, {passing: true}, {read: moved}, {passing: true, read: moved}},
				func(known facts) bool {
					of, _ := find(reason, function, known)
					return of == c
				})
		}
		known := c.when == nil || c.when(facts{passing: true})
		if c.seen != "" && known && !slices.ContainsFunc(verdicts, decides) {
			t.Errorf("row %d, %s %s: no verdict of the files means it", i, c.Name, c.seen)
		}
	}
}

// Every reason that a kernel may give has a row of its own.
func TestEveryReasonHasARow(t *testing.T) {
	for _, reason := range lines(t, "testdata/reasons.txt") {
		if c, name := find(reason, "", facts{}); c == &causes[lastResort] {
			t.Errorf("%s: no row", reason)
		} else if layer := layerOf(c.at, SideReceiver, true); layer != "" {
			if of := Of(layer, name); of.Words != c.Words && of.Name != c.Name {
				t.Errorf("%s: its line reads %q, its row %q", reason, of.Words, c.Words)
			}
		}
	}
}

// lines returns the lines of a file that are neither empty, nor comments, nor answers.
func lines(t *testing.T, path string) (all []string) {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimRight(line, "\n"); line != "" && line[0] != '#' && line[0] != '\t' {
			all = append(all, line)
		}
	}
	return all
}
