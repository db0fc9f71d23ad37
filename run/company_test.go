package run

import (
	"math"
	"testing"

	"pelt/model"
)

func took(share float64) model.Result {
	return model.Result{State: model.Valid, Flows: []model.FlowResult{{SenderCPU: model.CPU{HostRatio: share}}}}
}

func TestCompanyRoom(t *testing.T) {
	fast := math.Inf(1)
	for _, c := range []struct {
		name    string
		cores   int
		learn   map[float64]float64 // packets a second: share of all cores
		sending []float64
		next    float64
		want    bool
	}{
		{"nobody sends", 2, nil, nil, fast, true},
		{"nothing is known", 2, nil, []float64{10}, 10, false},
		{"one for every two cores", 8, nil, []float64{fast, fast, fast}, fast, true},
		{"no more of them", 8, nil, []float64{fast, fast, fast, fast}, 10, false},
		{"two that take a quarter each", 2, map[float64]float64{1000: 0.25, 2000: 0.5}, []float64{1000}, 1000, true},
		{"three of them", 2, map[float64]float64{1000: 0.25, 2000: 0.5}, []float64{1000, 1000}, 1000, false},
		{"more than was seen, by its packets", 2, map[float64]float64{1000: 0.1}, []float64{4000}, 1000, true},
		{"too many of them", 2, map[float64]float64{1000: 0.1}, []float64{4000}, 2000, false},
		{"never less than fewer packets take", 2, map[float64]float64{3000: 0.6}, []float64{100}, 100, false},
		{"as fast as it can", 2, map[float64]float64{1000: 0.01}, []float64{1000}, fast, false},
		{"beside one as fast as it can", 2, map[float64]float64{1000: 0.01}, []float64{fast}, 1000, false},
	} {
		with := newCompany(c.cores)
		for packets, share := range c.learn {
			with.learn(packets, took(share))
		}
		if got := with.room(c.sending, c.next); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestCompanyLearns(t *testing.T) {
	with := newCompany(2)
	for _, r := range []model.Result{{State: model.Valid}, took(0), {State: model.Invalid, Flows: took(0.5).Flows}} {
		with.learn(1000, r)
	}
	with.learn(math.Inf(1), took(0.9))
	with.learn(0, took(0.9))
	if len(with.known) > 0 {
		t.Errorf("learnt %v of what tells nothing", with.known)
	}
	for _, packets := range []float64{3000, 1000, 2000, 1000} {
		with.learn(packets, took(packets/10_000))
	}
	with.learn(1000, took(0.3))
	if want := []demand{{1000, 0.4}, {2000, 0.4}, {3000, 0.6}}; len(with.known) != 3 || with.known[0] != want[0] || with.known[1] != want[1] || with.known[2] != want[2] {
		t.Errorf("learnt %v, want %v", with.known, want)
	}
}

// What was too fast in company is tried there again, once much else went well.
func TestCompanyForgives(t *testing.T) {
	with := newCompany(2)
	if with.alone(math.Inf(1)) {
		t.Error("alone from the start")
	}
	with.spoilt(math.Inf(1))
	if !with.alone(math.Inf(1)) || with.alone(1e9) {
		t.Error("a flood was too much; it runs alone now, and what has a rate does not")
	}
	with.spoilt(1000)
	for range wellInCompany - 1 {
		with.went()
	}
	if !with.alone(1000) || !with.alone(1999) || with.alone(999) {
		t.Error("1000 a second were too fast")
	}
	with.went()
	if with.alone(1000) || !with.alone(2000) {
		t.Errorf("after %d that went well only 2000 a second are too fast", wellInCompany)
	}
}
