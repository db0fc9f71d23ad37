package run

import (
	"reflect"
	"testing"

	"pelt/lab"
	"pelt/lab/userlink"
	"pelt/model"
)

// TestLinkLossesOfTCP: segments of TCP that an emulated link lost are counted by flow and cause, those of the warm-up apart, as
// their sequences do not tell which of several sendings was lost.
func TestLinkLossesOfTCP(t *testing.T) {
	up := model.Tuple{From: 40000, To: 7359}
	w := &linkWatch{measured: 100, streams: map[tuple]stream{{up, true}: {"up", 0, 1}, {up, false}: {"probe", 0, 1}}}
	lost := func(at uint64, cause userlink.Cause, of model.Tuple, tcp bool) userlink.Verdict {
		return userlink.Verdict{From: of.From, To: of.To, Sequence: at, Cause: cause, TCP: tcp}
	}
	w.accounts = []lab.LinkAccount{{Verdicts: []userlink.Verdict{lost(99, userlink.Lost, up, true), lost(100, userlink.Lost, up, true),
		lost(100, userlink.Lost, up, true), lost(101, userlink.QueueFull, up, true), lost(7, userlink.Lost, up, false),
		lost(200, userlink.Lost, model.Tuple{From: 22, To: 40000}, true)}}}
	o, why := w.observation(1)
	if why != nil {
		t.Fatal(why)
	}
	for _, f := range o.Drops.Flows {
		packets, warmup := map[string]uint64{}, uint64(0)
		for _, c := range f.Counts {
			packets[o.Drops.Sites[c.Site].Reason] = c.Packets
			warmup += c.Warmup
		}
		want, before, listed := map[string]uint64{model.CauseLinkLoss: 2, model.CauseLinkFragment: 0, model.CauseLinkQueue: 1,
			model.CauseLinkDamage: 0}, uint64(1), uint64(0)
		if f.Flow == "probe" {
			want, before, listed = map[string]uint64{model.CauseLinkLoss: 1, model.CauseLinkFragment: 0, model.CauseLinkQueue: 0,
				model.CauseLinkDamage: 0}, 0, 1
		}
		if !reflect.DeepEqual(packets, want) || warmup != before || len(f.Streams) != 1 || f.Streams[0].Packets != listed {
			t.Errorf("%s: %v, %d in the warm-up, %+v listed; want %v, %d and %d", f.Flow, packets, warmup, f.Streams, want, before,
				listed)
		}
	}
	if len(o.Drops.Flows) != 2 {
		t.Errorf("%d flows, want two", len(o.Drops.Flows))
	}
}
