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
		{"nor where more took less", 2, map[float64]float64{1000: 0.6, 2000: 0.4}, []float64{750}, 750, false},
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

// What had too little of the machine gets less company, and so do faster ones; it gets
// more again once enough went well with what it has.
func TestCompanyForgives(t *testing.T) {
	with, flood := newCompany(6), math.Inf(1)
	want := func(when string, packets float64, beside int) {
		t.Helper()
		if got := with.beside(packets); got != beside {
			t.Errorf("%s: %d beside one of %v packets a second, want %d", when, got, packets, beside)
		}
	}
	want("at first", flood, 3)
	with.spoilt(flood, 3)
	want("a flood had too little", flood, 2)
	want("a flood had too little", 1e9, 3)
	with.spoilt(1000, 1)
	for _, packets := range []float64{1000, 2000, 1e9, flood} {
		want("1000 a second had too little", packets, 0)
	}
	want("1000 a second had too little", 700, 3)
	for range wellInCompany - 1 {
		with.went(1000, 0)
	}
	with.spoilt(5000, 2)
	want("not yet well enough", 1000, 0)
	with.went(1000, 0)
	want("well enough", 1000, 1)
	for range wellInCompany {
		with.went(1000, 0)
	}
	want("with less company than it may have", 1000, 1)
	want("others of them", 2000, 0)
	with.spoilt(1, 0)
	want("spoilt after it had sent", 1, 0)
}

func TestCompanyBears(t *testing.T) {
	with := newCompany(8)
	with.spoilt(1000, 2) // one beside it
	ended, sends, slow := &current{packets: 1000, sent: true}, &current{packets: 1000}, &current{packets: 10}
	for _, c := range []struct {
		name    string
		running []*current
		next    float64
		want    bool
	}{
		{"nobody", nil, 1000, true},
		{"one beside it", []*current{ended}, 1000, true},
		{"two beside it", []*current{ended, ended}, 1000, false},
		{"two beside a slow one", []*current{ended, ended}, 10, true},
		{"a slow one beside one that has none", []*current{sends}, 10, true},
		{"a slow one beside one that has its one", []*current{sends, slow}, 10, false},
	} {
		if got := with.bears(c.running, c.next); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
