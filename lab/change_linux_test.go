package lab

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"pelt/internal/testenv"
	"pelt/model"
)

// probeTrial is the number of a trial that probes are said to be of.
const probeTrial = 7

// foreign is how many frames a node's kernel may send of its own: IPv6's reports.
const foreign = 10

// identifyProbe reads what through sends.
func identifyProbe(payload []byte) (trial uint16, sequence uint64, warmup, ok bool) {
	if len(payload) != 200 {
		return 0, 0, false, false
	}
	return probeTrial, uint64(binary.BigEndian.Uint32(payload)), false, true
}

func setLinks(t *testing.T, l *Lab, o SetOptions, node, text string) []LinkChanged {
	t.Helper()
	list, err := l.SetLinks([]model.Link{change(t, node, text)}, o)
	must(t, err)
	return list
}

// A client asks what a lab is while another one changes its links; the race detector looks on.
func TestDescribedWhileChanged(t *testing.T) {
	h := &holder{lab: &Lab{links: []*Link{{}}}}
	var changes sync.WaitGroup
	changes.Go(func() {
		for mtu := range 1000 {
			h.lab.mu.Lock()
			h.lab.links[0].plan.MTU = mtu
			h.lab.mu.Unlock()
		}
	})
	for range 1000 {
		if told := h.describe(); len(told.Links) != 1 {
			t.Errorf("%+v", told)
		}
	}
	changes.Wait()
}

// arrives expects so many of some datagrams to get through.
func arrives(t *testing.T, l *Lab, p probe, after string, least, most int) {
	t.Helper()
	t.Run("after "+after, func(t *testing.T) {
		list := through(t, l, p)
		if len(list) > 0 && p.frame > 0 { // what leaves while they are sent makes room
			first, last := list[0].sent, list[0].sent
			for _, a := range list {
				first, last = min(first, a.sent), max(last, a.sent)
			}
			most += int((last - first) / int64(p.frame))
		}
		if got := len(list); got < least || got > most {
			t.Errorf("%d of %d arrived, want %d to %d", got, p.count, least, most)
		}
	})
}

// sender ── user space ── receiver
func TestSetTakesEffect(t *testing.T) {
	l := openLab(t, "direct", "delay=1ms,seed=3")
	p := probe{count: 200, bytes: 200, interval: 50 * time.Microsecond, wait: 100 * time.Millisecond}
	for _, step := range []struct {
		set  string
		want int
	}{{"delay=2ms", p.count}, {"loss=100%", 0}, {"loss=0", p.count}} {
		list := setLinks(t, l, SetOptions{}, "receiver", step.set+",toward=receiver")
		if len(list) != 1 || list[0].From != "sender" || list[0].Before == list[0].Now {
			t.Errorf("set %s: %+v", step.set, list)
		}
		arrives(t, l, p, step.set, step.want, step.want)
	}
	if list, err := l.SetLinks([]model.Link{change(t, "", "loss=5%")}, SetOptions{Dry: true}); err != nil ||
		len(list) != 2 {
		t.Errorf("a dry change: %+v, %v", list, err)
	}
	if _, err := l.SetLinks([]model.Link{change(t, "", "delay=9ms"), change(t, "", "jitter=10ms")},
		SetOptions{}); err == nil {
		t.Error("a jitter beyond the delay was taken")
	}
	ways, err := l.Links()
	if err != nil || len(ways) != 2 {
		t.Fatalf("%+v, %v", ways, err)
	}
	w := ways[0]
	if w.Settings.Words() != "delay=2ms,seed=3" || w.Backend != model.BackendUser || w.Seed != 3 ||
		*w.Done.Lost < uint64(p.count) || *w.Done.Lost > uint64(p.count)+foreign ||
		*w.Done.Passed < 2*uint64(p.count) || w.Done.LateNS.Max == 0 {
		t.Errorf("after it all: %+v, %+v", w, w.Done)
	}
	if told := l.Facts().Links[0]; told.Settings.Words() != "delay=2ms,seed=3" || told.Backend != model.BackendUser {
		t.Errorf("the report would say %+v", told)
	}
}

// The same settings, set again and again, do not bring the same draws again.
func TestSetDrawsAnew(t *testing.T) {
	l := openLab(t, "direct", "loss=50%,seed=3")
	before := l.links[0].ways[0].settings.Seed
	seeds := []uint64{before}
	for i := range 6 {
		setLinks(t, l, SetOptions{}, "", fmt.Sprintf("loss=%d%%", 40+10*(i%2)))
		if now := l.links[0].ways[0].settings.Seed; slices.Contains(seeds, now) {
			t.Errorf("change %d has a seed of before", i)
		} else {
			seeds = append(seeds, now)
		}
	}
}

// sender ── hidden relay with tbf ── receiver
func TestSetChangesTBF(t *testing.T) {
	l := openLab(t, "direct", "rate=5mbit,queue=20")
	p := probe{count: 150, bytes: 1000, frame: 1042 * 8 * time.Second / 5e6, wait: 100 * time.Millisecond}
	for _, step := range []struct {
		set         string
		least, most int
	}{
		{"", 20, 40}, // the queue and the burst, and what leaves meanwhile
		{"queue=70", 70, 90},
		{"queue=31260B", 30, 50},
		{"rate=400mbit,queue=200", p.count, p.count},
		{"rate=5mbit,queue=20", 20, 40},
	} {
		if step.set != "" {
			setLinks(t, l, SetOptions{}, "", step.set)
		}
		arrives(t, l, p, step.set, step.least, step.most)
	}
	if told := l.Facts().Links[0]; told.Settings.Words() != "rate=5mbit,queue=20" || told.Backend != ByTBF ||
		told.At != "" {
		t.Errorf("the report would say %+v", told)
	}
	ways, err := l.Links()
	if err != nil || ways[0].Backend != ByTBF || ways[0].Done == nil || *ways[0].Done.QueueFull == 0 ||
		ways[0].Done.Lost != nil {
		t.Errorf("%+v, %v", ways, err)
	}
}

// Another process's links are watched, changed for good, and changed for as long
// as it is there.
func TestHeldLinks(t *testing.T) {
	hold(t, "far", "direct", "loss=20%,seed=5")
	l, err := Attach("far")
	must(t, err)
	closed := false
	defer func() {
		if !closed {
			_ = l.Close()
		}
	}()
	if e := l.Emulated(); len(e) != 1 || e[0].Ends != [2]string{"sender", "receiver"} {
		t.Fatalf("its emulated links are %+v", e)
	}
	p := probe{count: 500, bytes: 200, interval: 20 * time.Microsecond, wait: 100 * time.Millisecond}
	t.Run("unwatched", func(t *testing.T) { through(t, l, p) })
	watch, err := l.WatchLinks(probeTrial, 1, nil)
	must(t, err)
	if _, err := l.WatchLinks(probeTrial, 1, nil); err == nil {
		t.Error("it watches two trials for one client")
	}
	var came []arrival
	t.Run("watched", func(t *testing.T) { came = through(t, l, p) })
	accounts, err := watch.Collect()
	if err != nil || len(accounts) != 1 {
		t.Fatalf("%+v, %v", accounts, err)
	}
	gone, arrived := lostOf(came, p.count), map[uint64]bool{}
	for _, v := range accounts[0].Verdicts {
		if arrived[v.Sequence] || v.Sequence >= uint64(p.count) || !gone[v.Sequence] {
			t.Errorf("a verdict on %d, which arrived or had one", v.Sequence)
		}
		arrived[v.Sequence] = true
	}
	if n := number(gone); n != len(accounts[0].Verdicts) || n == 0 {
		t.Errorf("%d verdicts on %d lost", len(accounts[0].Verdicts), n)
	}
	frames, lost := uint64(p.count), uint64(len(accounts[0].Verdicts))
	if r := accounts[0].Results[0]; r.Lost == nil || r.Frames < frames || r.Frames > frames+foreign ||
		*r.Lost < lost || *r.Lost > lost+foreign || r.AskedRatio != 0.2 {
		t.Errorf("its account is %+v", r)
	}
	if _, err := watch.Collect(); err == nil {
		t.Error("collected twice")
	}
	setLinks(t, l, SetOptions{}, "", "delay=3ms")
	setLinks(t, l, SetOptions{Temporary: true}, "", "loss=1%")
	setLinks(t, l, SetOptions{Temporary: true}, "receiver", "loss=2%,toward=receiver")
	if _, err := l.SetLinks([]model.Link{change(t, "", "jitter=9ms")}, SetOptions{}); !errors.As(err,
		new(*UsageError)) {
		t.Errorf("nonsense: %v", err)
	}
	if got := settingsHeld(t, "far"); !slices.Equal(got, []string{"delay=3ms,loss=2%,seed=5", "delay=3ms,loss=1%,seed=5"}) {
		t.Errorf("the links are %q", got)
	}
	closed = true
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	want := []string{"delay=3ms,loss=20%,seed=5", "delay=3ms,loss=20%,seed=5"}
	testenv.Await(t, fmt.Sprintf("%q to be put back", want), func() bool { return slices.Equal(settingsHeld(t, "far"), want) })
}

// settingsHeld are the settings of a held lab's links.
func settingsHeld(t *testing.T, name string) (list []string) {
	t.Helper()
	l, err := Attach(name)
	must(t, err)
	defer l.Close()
	ways, err := l.Links()
	must(t, err)
	for _, w := range ways {
		list = append(list, w.Settings.Words())
	}
	return list
}

// A seed that is set draws as that of a lab made with it, however often it changes.
func TestSetSeed(t *testing.T) {
	p := probe{count: 200, interval: quick, bytes: 64, wait: 100 * time.Millisecond}
	draws := func(l *Lab) []int { return fates(through(t, l, p), p.count) }
	made := draws(openLab(t, "direct", "sender:mtu=1200,loss=20%,seed=7"))
	l := openLab(t, "direct", "sender:mtu=1200,loss=20%,seed=5")
	first := draws(l)
	for range 2 {
		setLinks(t, l, SetOptions{}, "", "seed=7")
		if got := draws(l); !slices.Equal(got, made) || l.links[0].ways[0].seed != 7 {
			t.Errorf("the seed 7 draws %v, a lab made with it %v; seed %d", got, made, l.links[0].ways[0].seed)
		}
		setLinks(t, l, SetOptions{}, "", "seed=5")
		if got := draws(l); !slices.Equal(got, first) {
			t.Error("the seed 5 draws otherwise than at first")
		}
	}
	// Trials that are to meet the same draws, whatever their links were before.
	for _, loss := range []string{"1%", "20%"} {
		setLinks(t, l, SetOptions{}, "", "loss="+loss)
	}
	l.RestartDraws(5)
	if got := draws(l); !slices.Equal(got, first) {
		t.Error("after changes, and begun anew, the seed 5 draws otherwise than at first")
	}
}

// fates are how often each packet came.
func fates(list []arrival, count int) []int {
	n := make([]int, count)
	for _, a := range list {
		n[a.sequence]++
	}
	return n
}

const quick = 100 * time.Microsecond
