package plan

import (
	"slices"
	"strings"
	"testing"

	"pelt/model"
)

func TestLatency(t *testing.T) {
	p, err := Latency.Of("nas")
	if err != nil {
		t.Fatal(err)
	}
	s := p.Design.Search
	if s == nil || !slices.Equal(s.Loads, loads) || len(p.Factors) != 2 || len(p.Factors[0].Levels) != 3 || p.Timing.LeadSeconds != 0 ||
		s.Goals[0].WidthRatio != loadWidth {
		t.Fatalf("%+v, search %+v", p, s)
	}
	cell := model.Cell{"direction": model.Word("both"), "payload_bytes": model.Number(1472)}
	if trial, err := p.Trial(cell, 0); err != nil || trial.Timing.LeadSeconds != 0 {
		t.Errorf("a flood: %+v, %v: want no lead", trial.Timing, err)
	}
	cell["load_ratio"], cell["rate_pps"] = model.Number(0.5), model.Number(1000)
	if trial, err := p.Trial(cell, 0); err != nil || !(trial.Timing.LeadSeconds > 0) || len(trial.Flows) != 2 {
		t.Errorf("a load: %+v, %v: want a lead", trial.Timing, err)
	}
	for _, c := range []struct{ target, settings, want string }{
		{"nas", "payload=64,1472", "--payload, --frame: want one size"},
		{"nas", "frame=64,1518", "--payload, --frame: want one size"},
		{"lab:star", "", "TARGET: a star has many paths"},
		{"nas", "goal=slow", "--goal: "},
	} {
		_, err := Latency.Of(c.target, strings.Fields(c.settings)...)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s %s: %v, want %s", c.target, c.settings, err, c.want)
		}
	}
}
