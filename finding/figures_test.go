package finding

import (
	"testing"

	"pelt/model"
	"pelt/table"
	"pelt/words"
)

func TestFigures(t *testing.T) {
	fact := func(name, unit string, value uint64) model.Evidence {
		return model.Evidence{Counter: name, Unit: unit, Role: model.RoleFact, After: value}
	}
	of := func(e model.Evidence, of, iface string) model.Evidence {
		e.Of, e.Interface = of, iface
		return e
	}
	line := func(facts ...model.Evidence) *model.Line {
		return &model.Line{Interface: "wan", Evidence: append([]model.Evidence{{Counter: "qdisc.a.b.1:.drops"}}, facts...)}
	}
	for _, c := range []struct {
		of   *model.Line
		want string
	}{
		{line(), ""},
		{line(of(fact("qdisc.eth0.100.tbf.1:.limit", "B", 8192), "tbf", "eth0.100")), "tbf on eth0.100, 8192 B"},
		{line(of(fact("qdisc.wan.pfifo.1:.limit", "skb", 1000), "pfifo", "wan")), "pfifo on wan, 1 000 packets"},
		{line(of(fact("qdisc.wan.fq_codel.1:.early_drops", "skb", 9), "fq_codel", "wan")), "fq_codel on wan"},
		{line(of(fact("qdisc.wan.tbf.1:.burst", "B", 1000), "tbf", "wan"), fact("packet", "B", 1442)),
			"tbf on wan, packets of 1442 B, bucket of 1000 B"},
		{line(fact("net.netfilter.nf_conntrack_count", "connection", 16384),
			fact("net.netfilter.nf_conntrack_max", "connection", 16384)), "16 384 of 16 384"},
		{line(fact("net.netfilter.nf_conntrack_max", "connection", 16384)), ""},
		{line(fact("police.1.rate_bps", "bit/s", 20e6), fact("police.1.burst_bytes", "B", 16384)),
			"on wan, 20 Mbit/s, burst 16384 B"},
		{line(fact("dev.wan.mtu", "B", 1400)), "1400 B"},
		{line(of(fact("nfqueue.5.unheard", "skb", 7), "5", "")), "queue 5"},
		{line(of(fact("limit", "B", 409600), "/docker/ab", "")), "/docker/ab, 409 600 B"},
		{line(fact("police.1.rate_bps", "bit/s", 20e6)), ""},
	} {
		if got := figures(words.English, c.of); got != c.want {
			t.Errorf("%+v: %q, want %q", c.of.Evidence[1:], got, c.want)
		}
	}
	one := table.Row{Line: line(fact("dev.wan.mtu", "B", 1400))}
	other := table.Row{Line: line(fact("dev.wan.mtu", "B", 1300))}
	for want, rows := range map[string][]table.Row{"": {one, other}, " (1400 B)": {one, one}} {
		if got := figuresOf(rows); got != want {
			t.Errorf("of lines: %q, want %q", got, want)
		}
	}
}
