package table

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func TestParseLimit(t *testing.T) {
	for _, c := range []struct{ text, names string }{
		{"goodput < -5%", "goodput_bps"},
		{" Goodput<-5 %", "goodput_bps"},
		{"goodput_bps < -5%", "goodput_bps"},
		{"pps < -1%", "receive_pps"},
		{"loss > 0.1%", "loss_ratio retransmit_ratio"},
		{"delay_p99 > 10%", "delay_p99_ns round_trip_p99_ns"},
		{"Delay, 99 % > 10%", "delay_p99_ns"},
		{"cpu > 5%", "router_busy_ratio"},
		{"softirq > 5%", "router_softirq_ratio"},
		{"goodput_per_cpu < -5%", "goodput_per_core_bps"},
		{"goodput < 0%", "goodput_bps"},
	} {
		l, err := ParseLimit(c.text)
		var names []string
		for _, m := range l.Metrics {
			names = append(names, m.Name)
		}
		if got := strings.Join(names, " "); err != nil || got != c.names {
			t.Errorf("%q: %v, names %q; want %q", c.text, err, got, c.names)
		}
	}
	for _, c := range []struct{ text, want string }{
		{"goodput", "want METRIC"},
		{"speed < -5%", `no metric "speed"; want one of pps, loss_free, goodput`},
		{"goodput < -5", "a number of percent"},
		{"goodput < NaN%", "a number of percent"},
		{"goodput < 5%", "would fail where nothing changed"},
		{"loss > -1%", "would fail where nothing changed"},
		{"goodput < -100%", "nothing falls"},
	} {
		_, err := ParseLimit(c.text)
		var limit *LimitError
		if !errors.As(err, &limit) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v; want %q", c.text, err, c.want)
		}
	}
}

func TestJudge(t *testing.T) {
	l, err := ParseLimit("goodput < -5%")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		e    Effect
		want Outcome
	}{
		{"far below", Effect{Change: -0.1, Low: -0.11, High: -0.09, P: 0.001}, Failed},
		{"told, the interval reaches above", Effect{Change: -0.06, Low: -0.09, High: -0.03, P: 0.001}, Failed},
		{"perhaps below", Effect{Change: -0.1, Low: -0.3, High: 0.1, P: 0.4}, Undecided},
		{"the interval reaches below", Effect{Change: 0, Low: -0.06, High: 0.06, P: 1}, Undecided},
		{"told, but small", Effect{Change: -0.01, Low: -0.02, High: -0.001, P: 0.001}, Passed},
		{"too few", Effect{Change: 0, Low: math.NaN(), High: math.NaN(), P: 1}, Undecided},
		{"better", Effect{Change: 0.2, Low: 0.1, High: 0.3, P: 0.001}, Passed},
	} {
		if got := l.Judge(c.e); got != c.want {
			t.Errorf("%s: %s; want %s", c.name, got, c.want)
		}
	}
}
