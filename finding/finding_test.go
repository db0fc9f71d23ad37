package finding

import (
	"testing"

	"pelt/table"
)

// TestOneNumberOfRepeats: a page asks once for more repeats, and for the most that a rule wants.
func TestOneNumberOfRepeats(t *testing.T) {
	wants := func(repeats int) Rule { return func([]table.Row) []Finding { return []Finding{runAgain(repeats)} } }
	found := applied(nil, wants(3), wants(4), wants(2))
	if len(found) != 1 || repeatsOf(found[0]) != 4 {
		t.Errorf("%+v", found)
	}
}
