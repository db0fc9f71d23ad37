package finding

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pelt/model"
	"pelt/words"
)

func TestReasonWords(t *testing.T) {
	late := func(flow string, kept float64) model.Reason {
		return model.Reason{Code: model.SenderStarved, Flow: flow,
			Numbers: map[string]float64{"run_ratio": 0.3, "kept_pps": kept, "asked_pps": 30e3}}
	}
	for name, c := range map[string]struct {
		list model.Reasons
		want string
	}{
		"none": {nil, ""},
		"one": {model.Reasons{late("up", 25.7e3)},
			"the sender was starved of CPU (its thread ran 30 % of the time that it was late): it kept 25.7 kpps of 30 kpps"},
		"of one flow": {model.Reasons{{Code: model.NothingSent, Flow: "up"}, {Code: model.AccountMissing, Flow: "up"}},
			"nothing was sent; the account of one end is missing"},
		"of two flows": {model.Reasons{{Code: model.NothingSent, Flow: "up"}, {Code: model.NothingSent, Flow: "down"}},
			"flow up: nothing was sent; flow down: nothing was sent"},
		"many": {model.Reasons{{Code: model.NothingSent}, {Code: model.NothingSent},
			{Code: model.NothingSent}, {Code: model.NothingSent},
			{Code: model.NothingSent}, {Code: model.Interrupted}},
			"nothing was sent; nothing was sent; nothing was sent; and 2 more of the kind; interrupted"},
		"a drop event": {model.Reasons{{Code: model.CounterMoved, Name: "verdict QDISC_DROP",
			Numbers: map[string]float64{"packets": 5}}}, "drop event QDISC_DROP +5"},
		"a code to come": {model.Reasons{{Code: "sender-asleep"}}, "sender-asleep"},
	} {
		if got := Why(c.list); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A drop event has the name that words has Chinese for; no counter of a rule is called one.
func TestCounterName(t *testing.T) {
	for counter, want := range map[string]string{
		"verdict QDISC_DROP":                    "丢包事件 QDISC_DROP",
		"no verdict on either end":              "两端都没有丢包事件",
		"nft.inet.filter.verdict.input.packets": "nft.inet.filter.verdict.input.packets",
	} {
		if got := words.Chinese.Say(CounterName(counter)); got != want {
			t.Errorf("%s: %q, want %q", counter, got, want)
		}
	}
}

// Every code of a reason has words, and no words are of another code. What they refer to is a part of a reason.
func TestReasonCodesHaveWords(t *testing.T) {
	codes := map[string]bool{"other": true, "flow": true, "more": true, "trials": true}
	for _, name := range []string{"../model/reason.go", "../model/faultcodes.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if value, ok := n.(*ast.ValueSpec); ok && len(value.Values) == 1 {
				if text, ok := value.Values[0].(*ast.BasicLit); ok && text.Kind == token.STRING {
					code, _ := strconv.Unquote(text.Value)
					if codes[code] {
						t.Errorf("%s is there twice", code)
					}
					codes[code] = true
				}
			}
			return true
		})
	}
	var worded []string
	for code := range sentences {
		code, isReason := strings.CutPrefix(code, "why.")
		if !isReason {
			continue
		}
		worded = append(worded, code)
	}
	slices.Sort(worded)
	if want := slices.Sorted(maps.Keys(codes)); !slices.Equal(worded, want) {
		t.Errorf("words for %q\nwant %q", worded, want)
	}
}

// A reason that ends as a sentence ends the one around it, in each language; what another program said stays as it is.
func TestOneEndOfASentence(t *testing.T) {
	for _, c := range []struct{ text, why, want string }{
		{"No host was reached: {why}.", "is it on?", "No host was reached: is it on?"},
		{"No host was reached[: {why}].\nTry again.", "is it on?", "No host was reached: is it on?\nTry again."},
		{"没有连上：{why}。", "开机了吗？", "没有连上：开机了吗？"},
		{"It failed: {why}.", "no nftables.", "It failed: no nftables."},
		{"失败：{why}。", "no nftables.", "失败：no nftables."},
		{"It says {why}, and ends.", "what?.so", "It says what?.so, and ends."},
		{"It says {why}.", "a ? b", "It says a ? b."},
	} {
		if got := say("", Fact, "why", c.why).fill(c.text); got != c.want {
			t.Errorf("%q with %q: %q, want %q", c.text, c.why, got, c.want)
		}
	}
}

// TestWarnings: doubts of trials that differ only in figures are one, and count the trials that have any of them.
func TestWarnings(t *testing.T) {
	strange := func(node string, packets float64) model.Reason {
		return model.NewReason(model.StrangeSequences, "node", node, "packets", packets)
	}
	d := &model.Document{Results: []model.Result{
		{Warnings: model.Doubts{strange("receiver", 3), strange("receiver", 1)}},
		{Warnings: model.Doubts{strange("receiver", 9), strange("sender", 7)}},
		{Warnings: model.Doubts{strange("sender", 7)}}, {}}}
	list := Warnings(d)
	if len(list) != 2 || !strings.HasPrefix(list[0], "receiver: 3 packets") ||
		!strings.HasSuffix(list[0], "(2 of 4 trials; figures of the first)") ||
		!strings.HasSuffix(list[1], "(2 of 4 trials)") {
		t.Errorf("%q", list)
	}
}
