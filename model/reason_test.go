package model

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// A host tells no tree of reasons that grows: each is cut in depth, in width and in all.
func TestClipReasons(t *testing.T) {
	long := strings.Repeat("x", 2*maxTextLength)
	wide := func(of []Reason) []Reason { return slices.Repeat([]Reason{{Code: Several, Text: long, Of: of}}, 20) }
	list := Reasons{{Code: Several, Of: wide(wide(wide(wide(wide(nil)))))}, {Code: AtHost, Of: []Reason{{Code: OfFlow,
		Of: []Reason{{Code: ConnectFailed, Of: []Reason{{Code: StrangerAnswers}}}}}}}}
	list.Clip()
	var count func(of []Reason, deep int) int
	count = func(of []Reason, deep int) (n int) {
		if len(of) > mostOf || deep > mostDeep && len(of) > 0 {
			t.Errorf("%d reasons at depth %d", len(of), deep)
		}
		for _, r := range of {
			if len(r.Text) > maxTextLength {
				t.Errorf("a text of %d letters", len(r.Text))
			}
			n += 1 + count(r.Of, deep+1)
		}
		return n
	}
	if n := count(list[0].Of, 1); n != mostIn {
		t.Errorf("%d reasons stay, want %d", n, mostIn)
	}
	if got := list[1].Of[0].Of[0].Of[0].Code; got != StrangerAnswers {
		t.Errorf("an ordinary reason ends with %q", got)
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
