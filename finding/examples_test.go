package finding

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pelt/model"
	"pelt/table"
	"pelt/test/golden"
)

// example is a run and what is told of it.
type example struct {
	name string
	told []Finding
}

// TestExamples: testdata has what is told of each example, a line a finding: its level, code, sentence and command.
func TestExamples(t *testing.T) {
	levels := []string{"answer", "fact", "doubt", "next", "set-up"}
	for name, examples := range map[string]func(*testing.T) []example{
		"curve": curveExamples, "control": controlExamples, "lossfree": lossFreeExamples, "router": routerExamples,
		"soak": soakExamples, "sweep": sweepExamples, "mesh": meshExamples, "latency": latencyExamples,
		"compare": compareExamples, "nothing": nothingExamples, "setup": setupExamples, "times": timesExamples,
		"foreign": foreignExamples,
	} {
		var out strings.Builder
		for _, e := range examples(t) {
			fmt.Fprintf(&out, "%s:\n", e.name)
			for _, f := range e.told {
				fmt.Fprintf(&out, "\t%s %s: %s\n", levels[f.Level], f.Code, strings.TrimSpace(f.Text()+" "+f.Command()))
			}
		}
		golden.File(t, "testdata/"+name+".txt", out.String())
	}
}

// examplesOf are what rules tell of documents, in the order of their names.
func examplesOf(documents map[string]*model.Document, rules ...Rule) (out []example) {
	for _, name := range slices.Sorted(maps.Keys(documents)) {
		out = append(out, example{name, applied(table.Rows(documents[name]), rules...)})
	}
	return out
}
