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
	type named struct {
		name string
		at   stage
	}
	rows, shared := map[named]bool{}, map[string]int{}
	for i := range causes {
		c := &causes[i]
		if c.Words == "" || strings.HasSuffix(c.Words, ".") {
			t.Errorf("row %d, %s: words %q", i, c.Name, c.Words)
		}
		for text := range strings.FieldsSeq(c.seen) {
			// The same verdict may mean two things only if a fact tells which.
			if before, known := shared[text]; known && causes[before].when == nil {
				t.Errorf("row %d, %s: place %s is of row %d, %s, too", i, c.Name, text, before, causes[before].Name)
			}
			shared[text] = i
		}
		if key := (named{c.Name, c.at}); c.Name != "" && rows[key] && c.when == nil {
			t.Errorf("row %d: two rows of one stage are called %s", i, c.Name)
		} else {
			rows[key] = true
		}
		if c.Name == "" && c.seen == "" && c.rest == "" || c.at == stageNone && c.count.names != "" {
			t.Errorf("row %d, %q: nothing leads to it", i, c.Words)
		}
	}
	for _, layer := range model.Layers() {
		if rest := Of(layer, "BRAND_NEW"); !slices.Contains(strings.Fields(rest.rest), layer) {
			t.Errorf("layer %s has no words for what nobody foresaw", layer)
		}
	}
}

// Each row of the table decides one of the verdicts of the file, or a reason of the newest kernel.
func TestEveryPlaceDecides(t *testing.T) {
	decides := map[*Cause]bool{}
	known := []facts{{}, {passing: true}}
	for _, questions := range []string{"testdata/verdicts.txt", "testdata/reasons.txt"} {
		for _, line := range lines(t, questions) {
			reason, function, _ := strings.Cut(line, " ")
			for _, f := range known {
				c, _ := find(strings.TrimPrefix(reason, "-"), function, f)
				decides[c] = true
			}
		}
	}
	for i := range causes {
		if c := &causes[i]; c.seen != "" && !decides[c] && (c.when == nil || c.when(facts{passing: true})) {
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
