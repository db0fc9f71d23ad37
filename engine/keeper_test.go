package engine

import (
	"math/rand/v2"
	"testing"
	"time"

	"pelt/model"
)

// keeping is a sender over a path: it asks at its own pace, and what path returns is heard.
type keeping struct {
	*ConsentKeeper
	order Order
	now   int64
	asked int
	last  [3]ConsentMessage // of each stream
	late  [3][]lateAnswer
	wakes time.Duration // this late
}

type lateAnswer struct {
	at   int64
	text []byte
}

func newKeeping(t testing.TB, streams int) *keeping {
	o := Order{Trial: 7, Tag: 3, Key: testKey().Key, Flow: model.Flow{Streams: streams, PayloadBytes: 1472}}
	k := &keeping{ConsentKeeper: NewConsentKeeper(o, 0), order: o}
	t.Cleanup(k.Close)
	return k
}

// for so long, each check goes to answer, and what that returns is heard after a delay. It tells when
// each stream lost its consent, 0 if it did not.
func (k *keeping) run(length, delay time.Duration,
	answer func(stream int, check []byte) []byte) (lost []time.Duration) {
	lost = make([]time.Duration, len(k.streams))
	for end := k.now + int64(length); k.now < end; {
		for i := range k.streams {
			if !k.Due(i, k.now) {
				continue
			}
			for len(k.late[i]) > 0 && k.late[i][0].at <= k.now {
				k.Hear(i, k.late[i][0].text, k.now)
				k.late[i] = k.late[i][1:]
			}
			if k.Lost(i, k.now) {
				lost[i] = time.Duration(k.now)
				continue
			}
			m := k.Ask(i, k.now)
			k.asked++
			k.last[i] = m
			if text := answer(i, m[:]); text != nil {
				k.late[i] = append(k.late[i], lateAnswer{k.now + int64(delay), text})
			}
		}
		k.now += max(int64(k.Wait(k.now)), int64(k.wakes), 1)
	}
	return lost
}

// agrees answers as the receiver does.
func (k *keeping) agrees(stream int, check []byte) []byte {
	m, _, ok := k.order.StreamKey(stream).AnswerCheck(check)
	if !ok {
		return nil
	}
	return m[:]
}

// All senders of a host wake at the same times, however late each of them was.
func TestKeepersWakeTogether(t *testing.T) {
	k := newKeeping(t, 3)
	for range 100 {
		for i := range k.streams {
			if k.Due(i, k.now) {
				k.Ask(i, k.now)
			}
		}
		wait := int64(k.Wait(k.now))
		if wait == 0 || (k.now+wait)%checkGrid != 0 {
			t.Fatalf("at %d ns it waits for %d ns", k.now, wait)
		}
		k.now += wait + 123_457
	}
}

// A receiver that hears next to nothing, or whose answers wait in a long queue, keeps its sender.
func TestConsentIsKept(t *testing.T) {
	for name, c := range map[string]struct {
		loss  float64
		delay time.Duration
		most  float64 // checks a second
		wakes time.Duration
	}{
		"a good path":             {0, time.Millisecond, 4.5, 0},
		"far away":                {0, 2 * time.Second, 8, 0},
		"a queue of 25 s":         {0, 25 * time.Second, 35, 0},
		"97 % lost":               {0.97, 50 * time.Millisecond, 22, 0},
		"99 % lost":               {0.99, 50 * time.Millisecond, 35, 0},
		"99 % lost, a busy host":  {0.99, 50 * time.Millisecond, 35, 20 * time.Millisecond},
		"90 % lost, a 10 s queue": {0.9, 10 * time.Second, 25, 0},
	} {
		r := rand.New(rand.NewPCG(1, 2))
		k := newKeeping(t, 1)
		k.wakes = c.wakes
		const length = 3 * time.Minute
		lost := k.run(length, c.delay, func(i int, check []byte) []byte {
			if r.Float64() < c.loss {
				return nil
			}
			return k.agrees(i, check)
		})
		if pps := float64(k.asked) / length.Seconds(); lost[0] != 0 || pps > c.most {
			t.Errorf("%s: lost after %v; %.1f checks a second, want %v at most", name, lost, pps, c.most)
		}
	}
}

// Checks come faster the longer no answer does.
func TestCheckRates(t *testing.T) {
	k := newKeeping(t, 1)
	var at []time.Duration
	k.run(10*time.Second, 0, func(int, []byte) []byte { at = append(at, time.Duration(k.now)); return nil })
	for _, c := range []struct {
		from, to time.Duration
		pps      float64
	}{{0, time.Second, 4}, {time.Second, 4 * time.Second, 16}, {4 * time.Second, 10 * time.Second, 64}} {
		n := 0.0
		for _, x := range at {
			if x >= c.from && x < c.to {
				n++
			}
		}
		if got := n / (c.to - c.from).Seconds(); got < 0.7*c.pps || got > 1.3*c.pps {
			t.Errorf("%.1f checks a second from %v to %v without an answer, want %v", got, c.from, c.to, c.pps)
		}
	}
}

// A hundred streams without an answer send 6400 checks a second in all, and so do a thousand.
func TestChecksOfAHost(t *testing.T) {
	var all []*keeping
	for range 1000 {
		all = append(all, newKeeping(t, 1))
	}
	asked := 0
	for _, k := range all {
		k.run(20*time.Second, 0, func(int, []byte) []byte {
			if k.now > int64(10*time.Second) {
				asked++
			}
			return nil
		})
	}
	if pps := float64(asked) / 10; pps < 5500 || pps > 6500 {
		t.Errorf("%.0f checks a second, want 6400", pps)
	}
}

// A silent receiver, and whoever is not the one that got the check and has its key, loses the
// stream after 30 s. Nothing brings it back.
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
		k := newKeeping(t, 2)
		lost := k.run(40*time.Second, time.Millisecond, func(i int, check []byte) []byte { return answer(k, i, check) })
		for i, at := range lost {
			most := ConsentLasts
			if name == "a repeated answer" { // consent lasts from when its check was sent
				most += time.Second * 3 / 10
			}
			if at < ConsentLasts || at > most+time.Millisecond {
				t.Errorf("%s: stream %d lost after %v, want %v", name, i, at, ConsentLasts)
			}
			if k.Hear(i, k.agrees(i, k.last[i][:]), k.now); k.Due(i, k.now) {
				t.Errorf("%s: stream %d is checked again", name, i)
			}
		}
	}
}

// A silent stream of many is lost alone.
func TestConsentOfEachStream(t *testing.T) {
	k := newKeeping(t, 3)
	lost := k.run(time.Minute, 0, func(i int, check []byte) []byte {
		if i == 2 {
			return nil
		}
		return k.agrees(i, check)
	})
	if lost[0] != 0 || lost[1] != 0 || lost[2] != ConsentLasts {
		t.Errorf("lost after %v", lost)
	}
}
