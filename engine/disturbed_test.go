package engine

import (
	"net"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"pelt/model"
)

// What the host does to a measurement is told at its end.
func TestDisturbances(t *testing.T) {
	was := []net.Interface{{Name: "va", Index: 7, MTU: 1500}}
	for _, c := range []struct {
		name  string
		slept time.Duration
		now   []net.Interface
		want  model.Reasons
	}{
		{"nothing", 0, append([]net.Interface{{Name: "lo", Index: 1, MTU: 65536}}, was...), nil},
		{"two clocks", 40 * time.Millisecond, was, nil},
		{"sleep", 3200 * time.Millisecond, was, model.Reasons{{Code: model.HostSlept,
			Numbers: map[string]float64{"slept_s": 3.2}}}},
		{"another MTU", 0, []net.Interface{{Name: "va", Index: 7, MTU: 1400}},
			model.Reasons{{Code: model.InterfaceMTU, Name: "va",
				Numbers: map[string]float64{"before_bytes": 1500, "after_bytes": 1400}}}},
		{"gone, and another has its name", 0, []net.Interface{{Name: "va", Index: 8, MTU: 1500}},
			model.Reasons{{Code: model.InterfaceGone, Name: "va"}}},
	} {
		if got := disturbed(was, c.now, c.slept); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

type here struct{}

func (here) Do(f func() error) error { return f() }

// The interface of a stream is found by its address.
func TestInterfaceOfStream(t *testing.T) {
	d := watchHost(here{}, []Stream{{Local: netip.MustParseAddrPort("127.0.0.1:7")},
		{Local: netip.MustParseAddrPort("[::1]:7")}})
	if len(d.before) != 1 || d.before[0].Flags&net.FlagLoopback == 0 {
		t.Errorf("interfaces %+v, want the loopback", d.before)
	}
	d.slept = asleep()
	if list := d.all(); list != nil {
		t.Errorf("nothing happened, yet %v", list)
	}
	d.before = append(d.before, net.Interface{Name: "none", Index: 1 << 30})
	if list := d.all(); len(list) != 1 || list[0].Name != "none" {
		t.Errorf("an interface that is not there: %v", list)
	}
}

// A report of another host says no more of disturbances than there can be.
func TestDisturbancesAreClamped(t *testing.T) {
	r := Report{Disturbed: model.Reasons{{Code: model.Interrupted},
		{Code: model.HostSlept, Text: "x", Flow: "y", Numbers: map[string]float64{"slept_s": 2}}}}
	r.Clamp(model.Timing{})
	if len(r.Disturbed) != 1 || r.Disturbed[0].Code != model.HostSlept || r.Disturbed[0].Text != "" ||
		r.Disturbed[0].Flow != "" {
		t.Errorf("got %+v", r.Disturbed)
	}
}
