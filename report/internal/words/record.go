package words

import (
	"fmt"
	"slices"
	"time"

	"pelt/model"
	"pelt/unit"
)

// Record says what became of the record of a run's packets; "" of a run without one.
func Record(doc model.Document) string {
	var sum model.RecordFacts
	type part struct { // of a run that was gone on with, in a file of its own
		file  string
		trial uint32
	}
	seen := map[part]bool{} // the cost is the file's
	var files []string
	for _, r := range doc.Results {
		for _, f := range r.Flows {
			x := f.Record
			if x == nil {
				continue
			}
			if name := Plain(x.File); !slices.Contains(files, name) {
				files = append(files, name)
			}
			sum.SyncMaxS = max(sum.SyncMaxS, x.SyncMaxS)
			sum.Packets, sum.Dropped, sum.Bytes = sum.Packets+x.Packets, sum.Dropped+x.Dropped, sum.Bytes+x.Bytes
			if !seen[part{x.File, x.Trial}] {
				sum.Syncs += x.Syncs
			}
			seen[part{x.File, x.Trial}] = true
		}
	}
	if len(seen) == 0 {
		return ""
	}
	text := fmt.Sprintf("recorded in %s: %s packets", And(files), unit.FormatCount(sum.Packets))
	if sum.Packets > 0 {
		text += fmt.Sprintf(", %.2f B each", float64(sum.Bytes)/float64(sum.Packets))
	}
	if sum.Dropped == 0 {
		text += ", none left out"
	} else {
		text += fmt.Sprintf(", %s that came left out", unit.FormatCount(sum.Dropped))
	}
	if sum.Syncs > 0 {
		text += fmt.Sprintf("; synced to disk %d times, in %s at the longest", sum.Syncs, unit.FormatNanos(sum.SyncMaxS*float64(time.Second)))
	}
	return text
}
