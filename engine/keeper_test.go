package engine

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pelt/model"
	"pelt/unit"
)

// keeping is a sender over a path: it asks at its own pace, and what path returns is heard.
type keeping struct {
	*ConsentKeeper
	order Order
	now   int64
	asked int
	last  [3]ConsentMessage // of each stream
	late  []lateAnswer
	wakes time.Duration // this late
}

type lateAnswer struct {
	at     int64
	stream int
	text   []byte
}

func newKeeping(rate string, streams int) *keeping {
	r, err := unit.ParseRate(rate)
	if err != nil {
		panic(err)
	}
	o := Order{Trial: 7, Tag: 3, Key: testKey().Key, Flow: model.Flow{Streams: streams, PayloadBytes: 1472, Rate: r}}
	return &keeping{ConsentKeeper: NewConsentKeeper(o, 0), order: o}
}

// for so long, each check goes to answer, and what that returns is heard after a delay. It tells when
// consent was lost, 0 if it was not.
func (k *keeping) run(length, delay time.Duration, answer func(stream int, check []byte) []byte) (lost time.Duration) {
	for end := k.now + int64(length); k.now < end; {
		for len(k.late) > 0 && k.late[0].at <= k.now {
			k.Hear(k.late[0].stream, k.late[0].text)
			k.late = k.late[1:]
		}
		if k.Lost(k.now) != nil {
			return time.Duration(k.now)
		}
		for i := range k.streams {
			for m, due := k.Ask(i, k.now); due; m, due = k.Ask(i, k.now) {
				k.asked++
				k.last[i] = m
				if text := answer(i, m[:]); text != nil {
					k.late = append(k.late, lateAnswer{k.now + int64(delay), i, text})
				}
			}
		}
		k.now += max(int64(k.Wait(k.now)), int64(k.wakes))
	}
	return 0
}

// agrees answers as the receiver does.
func (k *keeping) agrees(stream int, check []byte) []byte {
	m, ok := k.order.StreamKey(stream).Agree(check)
	if !ok {
		return nil
	}
	return m[:]
}

func silent(int, []byte) []byte { return nil }

// A receiver that is silent for less than 5 s, or that hears next to nothing, keeps its sender.
func TestConsentIsKept(t *testing.T) {
	for name, c := range map[string]struct {
		rate    string
		loss    float64
		delay   time.Duration
		mostPPS float64 // checks
		wakes   time.Duration
	}{
		"a good path":            {"max", 0, time.Millisecond, 4.5, 0},
		"far away":               {"max", 0, 2 * time.Second, 400, 0},
		"97 % lost":              {"100kpps", 0.97, 50 * time.Millisecond, 200, 0},
		"97 % lost, far away":    {"100kpps", 0.97, 2 * time.Second, 600, 0},
		"99 % lost, a busy host": {"20kpps", 0.99, 50 * time.Millisecond, 600, 20 * time.Millisecond},
		"99.8 % lost":            {"max", 0.998, 50 * time.Millisecond, 1000, 0},
		"a slow flow, 80 % lost": {"100pps", 0.8, 50 * time.Millisecond, 25, 0},
	} {
		r := rand.New(rand.NewPCG(1, 2))
		k := newKeeping(c.rate, 1)
		k.wakes = c.wakes
		const length = time.Minute
		lost := k.run(length, c.delay, func(i int, check []byte) []byte {
			if r.Float64() < c.loss {
				return nil
			}
			return k.agrees(i, check)
		})
		if pps := float64(k.asked) / length.Seconds(); lost != 0 || pps > c.mostPPS {
			t.Errorf("%s: lost after %v; %.1f checks a second, want %v at most", name, lost, pps, c.mostPPS)
		}
	}
	k := newKeeping("max", 1)
	for range 20 {
		lost := k.run(4600*time.Millisecond, time.Millisecond, silent) + k.run(time.Second, time.Millisecond, k.agrees)
		if lost != 0 {
			t.Fatalf("lost after %v by silences of 4.6 s", lost)
		}
	}
}

// A silent receiver, and whoever is not the one that got the check and has its key, loses the
// sender after 5 s. Nothing brings it back.
func TestConsentIsLost(t *testing.T) {
	first := map[int][]byte{}
	for name, answer := range map[string]func(k *keeping, stream int, check []byte) []byte{
		"silent":  func(*keeping, int, []byte) []byte { return nil },
		"an echo": func(_ *keeping, _ int, check []byte) []byte { return check },
		"another key": func(k *keeping, i int, check []byte) []byte {
			m, _ := parseConsent(check)
			m.StreamKey, m.kind = k.order.StreamKey(i), agree
			m.Key = make([]byte, KeyBytes)
			b := m.message()
			return b[:]
		},
		"a guessed id": func(k *keeping, i int, check []byte) []byte {
			m, _ := parseConsent(check)
			m.StreamKey, m.kind, m.listener = k.order.StreamKey(i), agree, newNonce()
			b := m.message()
			return b[:]
		},
		"another time": func(k *keeping, i int, check []byte) []byte {
			m, _ := parseConsent(check)
			m.StreamKey, m.kind = k.order.StreamKey(i), agree
			m.dialer[0]++
			b := m.message()
			return b[:]
		},
		"a repeated answer": func(k *keeping, i int, check []byte) []byte {
			if first[i] == nil {
				first[i] = k.agrees(i, check)
			}
			return first[i]
		},
		"the other stream's": func(k *keeping, i int, check []byte) []byte { return k.agrees(1-i, check) },
		"a handshake's message": func(k *keeping, i int, check []byte) []byte {
			m, _ := parseConsent(check)
			m.StreamKey, m.kind = k.order.StreamKey(i), ready
			b := m.message()
			return b[:]
		},
	} {
		k := newKeeping("max", 2)
		lost := k.run(20*time.Second, time.Millisecond, func(i int, check []byte) []byte { return answer(k, i, check) })
		want := ConsentLasts
		if name == "a repeated answer" {
			want += time.Duration(checkEvery) // from the check that it was for
		}
		if lost < want || lost > want+20*time.Millisecond {
			t.Errorf("%s: lost after %v, want %v", name, lost, want)
		}
		for i := range 2 {
			k.Hear(i, k.agrees(i, k.last[i][:]))
		}
		if err := k.Lost(k.now); err == nil || !strings.Contains(err.Error(), "did not answer for 5s") {
			t.Errorf("%s: revived: %v", name, err)
		}
	}
}

// One silent stream of many ends the flow, also where the others answer.
func TestConsentOfEachStream(t *testing.T) {
	k := newKeeping("max", 3)
	if lost := k.run(20*time.Second, 0, func(i int, check []byte) []byte {
		if i == 2 {
			return nil
		}
		return k.agrees(i, check)
	}); lost == 0 || !strings.Contains(k.gone.Error(), "stream 2") {
		t.Errorf("lost after %v: %v", lost, k.gone)
	}
}

// A keeper that got no core cannot say that the receiver was silent.
func TestKeeperWithoutACore(t *testing.T) {
	k := newKeeping("max", 2)
	k.run(time.Second, 0, k.agrees)
	until := k.Until()
	k.now += int64(30 * time.Second)
	if err := k.Lost(k.now); until > k.now || err == nil || !strings.Contains(err.Error(), "too busy to ask the receiver for 30.") {
		t.Errorf("consent until %d, at %d lost with %v", until, k.now, err)
	}
}
