package fleet

import (
	"strings"
	"testing"

	"pelt/engine"
	"pelt/model"
)

// coresFor is the load of a host: each core is less busy than the one before.
func coresFor(seconds, cores int) []model.Series {
	add := func(metric string, core *int, value float64) model.Series {
		s := model.Series{Metric: metric, Core: core, StepSeconds: 1}
		for range seconds {
			s.Values = append(s.Values, value)
		}
		return s
	}
	list := []model.Series{add("cpu_busy_ratio", nil, 0.5)}
	for core := range cores {
		list = append(list, add("cpu_softirq_ratio", &core, 0.01), add("cpu_idle_ratio", &core, float64(core+1)/100))
	}
	return list
}

// A soak of days on a host of many cores has a report all the same.
func TestReportOfManyCores(t *testing.T) {
	const limit = 1 << 20
	r := sessionReport{Ends: map[int]engine.Report{1: {Role: engine.Receive, Receive: &engine.ReceiveReport{}}}, Watch: &Watched{Series: coresFor(10_000, 32)}}
	for name, c := range map[string]struct {
		report sessionReport
		cores  int
	}{
		"too many": {r, 10},
		"few":      {sessionReport{Ends: r.Ends, Watch: &Watched{Series: coresFor(10_000, 3)}}, 3},
	} {
		data, err := c.report.encode(limit)
		if err != nil || len(data) > limit {
			t.Fatalf("%s: %d bytes, %v", name, len(data), err)
		}
		told, err := decode[sessionReport](data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all, kept := len(c.report.Watch.Series)/2, len(told.Watch.Series)/2
		if told.Watch.Series[0].Core != nil || kept < c.cores || *told.Watch.Series[2*kept].Core != kept-1 {
			t.Errorf("%s: %d cores of %d; want the %d busiest at least", name, kept, all, c.cores)
		}
		if said := strings.Contains(strings.Join(told.Ends[1].Warnings, ""), "found no room"); said != (kept < all) {
			t.Errorf("%s: %d of %d cores, and it says %q", name, kept, all, told.Ends[1].Warnings)
		}
	}
	if len(r.Ends[1].Warnings) != 0 || len(r.Watch.Series) != 65 {
		t.Error("the session's own account was changed")
	}
	data, err := deviceWatched{model.RouterWatch{}, coresFor(10_000, 32)}.encode(limit)
	if told, _ := decode[deviceWatched](data); err != nil || len(data) > limit || len(told.Series) < 21 || len(told.Watch.Gaps) != 1 {
		t.Errorf("a router's: %v, %d bytes, %d series, %v", err, len(data), len(told.Series), told.Watch.Gaps)
	}
}
