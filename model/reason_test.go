package model

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
)

func TestKindOfReasons(t *testing.T) {
	late := func(flow string, kept float64) Reasons {
		return Reasons{{Code: SenderStarved, Flow: flow, Numbers: map[string]float64{"kept_pps": kept}}}
	}
	if a, b := late("up", 1).Kind(), late("down", 2).Kind(); a != b {
		t.Errorf("reasons that differ in numbers are of kinds %q and %q", a, b)
	}
}

// Sentences that documents of older versions hold are kept as texts.
func TestDoubtsOfOlderVersions(t *testing.T) {
	for text, want := range map[string]Doubts{
		`[]`: {}, `["the sender was late"]`: {{Text: "the sender was late"}},
		`"no root"`: {{Text: "no root"}}, `""`: {}, "[\n {\"code\": \"paused\", \"flow\": \"up\"}\n]": {{Code: Paused, Flow: "up"}},
	} {
		var got Doubts
		if err := json.Unmarshal([]byte(text), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %v, want %v", text, got, err, want)
		}
	}
	var got Doubts
	if err := json.Unmarshal([]byte(`[{"code": 7}]`), &got); err == nil {
		t.Errorf("a code that is no text: %v", got)
	}
}

// TestReasonsAreExplained: the page of the ledger says what each code of an invalid or aborted trial means.
func TestReasonsAreExplained(t *testing.T) {
	page, err := os.ReadFile("../docs/ledger.md")
	if err != nil {
		t.Fatal(err)
	}
	for state, codes := range reasonStates {
		for _, code := range codes {
			if !strings.Contains(string(page), "`"+code+"`") {
				t.Errorf("docs/ledger.md lacks `%s`, of a trial that is %s", code, state)
			}
		}
	}
}

func TestStateOfReasons(t *testing.T) {
	for name, c := range map[string]struct {
		list Reasons
		want State
	}{
		"none":                {nil, Valid},
		"the generator":       {Reasons{{Code: SenderLate}}, Invalid},
		"a cut beats a doubt": {Reasons{{Code: SenderLate}, {Code: TrialCut}, {Code: LinkBehind}}, Aborted},
	} {
		if got := c.list.State(); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
