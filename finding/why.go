package finding

import (
	"maps"
	"slices"
	"strings"

	"pelt/model"
)

// Clause says one reason, without its flow where all reasons of a trial may be of that flow.
func Clause(r model.Reason) string {
	f := Finding{Code: "why." + r.Code, Words: map[string]string{"flow": r.Flow, "node": r.Node, "link": r.Link,
		"name": r.Name, "text": r.Text, "code": r.Code}}
	for _, name := range slices.Sorted(maps.Keys(r.Numbers)) {
		f = f.number(name, "", r.Numbers[name])
	}
	if sentences[f.Code] == "" {
		f.Code = "why.other"
	}
	return f.Text()
}

// mostOfACode is how many reasons of one code are printed.
const mostOfACode = 3

// Why says why a trial is not valid. The flow of a reason is named only if the reasons are about several flows; of many
// with one code the first are printed, and the rest are counted.
func Why(reasons model.Reasons) string {
	flows, count, printed := map[string]bool{}, map[string]int{}, map[string]int{}
	for _, r := range reasons {
		if r.Flow != "" {
			flows[r.Flow] = true
		}
		count[r.Code]++
	}
	var clauses []string
	for _, r := range reasons {
		text := Clause(r)
		if r.Flow != "" && len(flows) > 1 {
			text = say("why.flow", Fact).word("flow", r.Flow).word("why", text).Text()
		}
		if printed[r.Code]++; printed[r.Code] <= mostOfACode {
			clauses = append(clauses, text)
		}
		if more := count[r.Code] - mostOfACode; more > 0 && printed[r.Code] == count[r.Code] {
			clauses = append(clauses, say("why.more", Fact).number("reasons_count", "", float64(more)).Text())
		}
	}
	return strings.Join(clauses, "; ")
}

// Warnings are the doubts of a run: its own, and those of its trials, each once with the number of its trials.
func Warnings(d *model.Document) (list []string) {
	for _, r := range d.Warnings {
		list = append(list, Clause(r))
	}
	count, own := map[string]int{}, len(list)
	for _, trial := range d.Results {
		for _, r := range trial.Warnings {
			text := Clause(r)
			if count[text]++; count[text] == 1 {
				list = append(list, text)
			}
		}
	}
	for i, text := range list[own:] {
		list[own+i] = say("why.trials", Doubt).word("why", text).number("trials_count", "with", float64(count[text])).
			number("trials_count", "", float64(len(d.Results))).Text()
	}
	return list
}
