package tcp

import (
	"errors"
	"io"
	"maps"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pelt/engine"
	"pelt/engine/enginetest"
	"pelt/internal/netbed"
	"pelt/internal/testenv"
	"pelt/model"
	"pelt/unit"
)

func connections(mode string, streams int) model.Flow {
	return model.Flow{Name: "up", Protocol: model.TCP, From: model.Sender, To: model.Receiver,
		PayloadBytes: model.ConnectionMessageBytes, Streams: streams, Connections: mode}
}

func TestClockConnectionRate(t *testing.T) {
	testenv.Clock(t)
	for _, c := range []struct {
		name    string
		address string
		change  func(*model.Flow)
	}{
		{"as many as it can", "127.0.0.1", func(*model.Flow) {}},
		{"IPv6", "::1", func(*model.Flow) {}},
		{"from many addresses", "127.0.0.1", func(f *model.Flow) {
			f.SourceAddresses = []netip.Addr{mustAddr("127.0.0.5"), mustAddr("127.0.0.6")}
		}},
		{"paced", "127.0.0.1", func(f *model.Flow) { f.Rate, f.Burst = unit.PacketRate(500), 500 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := connections(model.ConnectionRate, 2)
			c.change(&f)
			p := newPair(t, netbed.Namespace(t), c.address, false, f,
				timing(100*time.Millisecond, 400*time.Millisecond, time.Second))
			p.Connect()
			s, r := p.play()
			if share := p.sender.Account().CPU.ThreadRatio; share <= 0.001 || share > 1.05 {
				t.Errorf("the busiest thread took %v of a core", share)
			}
			x := s.Connections
			if x == nil || x.Mode != model.ConnectionRate || x.Established == 0 || x.Ended != "" {
				t.Fatalf("account: %+v", x)
			}
			if s.Attempted != x.Established || len(x.Failed) != 0 || s.Accepted != s.Attempted {
				t.Errorf("%d attempted, %d established, failed %v; want all", s.Attempted, x.Established, x.Failed)
			}
			if x.SetUp == nil || x.SetUp.Count != x.Established || !(x.SetUp.P50 > 0 && x.SetUp.Max < 2e9) {
				t.Errorf("set-up times: %+v", x.SetUp)
			}
			if enginetest.Total(slices.Values(x.PerSecond)) != x.Established || s.Streams[0] == 0 || s.Streams[1] == 0 {
				t.Errorf("each second %v, streams %v; want a sum of %d from both", x.PerSecond, s.Streams,
					x.Established)
			}
			// The two ends cut by clocks of their own, see doc.go.
			if n := float64(r.Tally.Received); p.shift < 20*time.Millisecond &&
				(n < 0.8*float64(x.Established) || n > 1.2*float64(x.Established)) {
				t.Errorf("the receiver took %v of %d, %v later", n, x.Established, p.shift)
			}
			if r.Tally.Bytes != r.Tally.Received*engine.ConsentBytes {
				t.Errorf("%d B in %d connections", r.Tally.Bytes, r.Tally.Received)
			}
			if f.Rate.IsMax() == (s.Planned == 200) || !f.Rate.IsMax() && (s.Attempted > 200 || s.Attempted < 100) {
				t.Errorf("planned %d, attempted %d of 500 a second for 0.4 s", s.Planned, s.Attempted)
			}
			t.Logf("%d in 0.4 s, at most %d open, set up in %.0f us", x.Established, x.OpenMax, x.SetUp.P50/1000)
			p.Close()
		})
	}
}

// TestSetUpTime: how long this program took to look does not count.
func TestSetUpTime(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testenv.Must(t, err)
	defer l.Close()
	for _, c := range []struct {
		name string
		call bool
	}{{"connected", true}, {"not connected", false}} {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		testenv.Must(t, err)
		if c.call {
			err = unix.Connect(fd, &unix.SockaddrInet4{Port: l.Addr().(*net.TCPAddr).Port, Addr: [4]byte{127, 0, 0, 1}})
		}
		if took := setUpTime(fd, time.Hour); err != nil || took <= 0 || c.call == (took == time.Hour) {
			t.Errorf("%s: %v, %v", c.name, took, err)
		}
		unix.Close(fd)
	}
}

// TestLateAttemptOfTheWarmup: what is due in the warm-up and begun after it counts as
// little as what was begun in time, or there would be more attempts than were planned.
func TestLateAttemptOfTheWarmup(t *testing.T) {
	const warmup = 100 * time.Millisecond
	f := connections(model.ConnectionRate, 1)
	f.Rate, f.Burst = unit.PacketRate(200), 200 // one every 5 ms
	p := newPair(t, netbed.Namespace(t), "127.0.0.1", false, f, timing(warmup, time.Second, time.Second))
	p.Connect()
	e := p.sender.t
	o := e.opener
	o.most, o.begun = model.MaxConnections, time.Now()
	c := &connector{o: o, s: e.streams[0], calls: map[int32]*attempt{}}
	var err error
	if c.way, c.family, err = engine.Sockaddr(e.peer(0)); err != nil {
		t.Fatal(err)
	}
	poll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	testenv.Must(t, err)
	c.poll = poll
	if err := e.host.Do(func() error {
		c.start(o.begun.Add(warmup+time.Millisecond), maxUnderWay)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if begun, counted := len(c.calls), o.attempted[0].Load(); begun != 21 || counted != 1 {
		t.Errorf("%d begun, %d of them counted; want 21, of which the last is of the measured part", begun, counted)
	}
	c.dropAll()
	unix.Close(poll)
}

// TestConnectionsKept: they stay open until the path lets no more through, and the
// account says how many were open and what stopped the next one.
func TestConnectionsKept(t *testing.T) {
	testenv.Tool(t, "nft")
	const most = 300
	for _, c := range []struct {
		name, rule string
		errno      string
	}{
		{"refused", "reject with tcp reset", "ECONNREFUSED"},
		{"dropped", "drop", "ETIMEDOUT"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ns := netbed.Namespace(t)
			p := newPair(t, ns, "127.0.0.1", false, connections(model.ConnectionKeep, 2),
				timing(50*time.Millisecond, time.Minute, time.Second))
			p.Connect()
			if err := ns.Do(func() error {
				out, err := exec.Command("nft",
					"table ip t { chain c { type filter hook output priority 0; tcp flags & (syn|ack) == syn ct state new limit rate over 1/day burst 300 packets "+c.rule+"; }; }").CombinedOutput()
				if err != nil {
					t.Logf("nft: %s", out)
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			s, r := p.play()
			x := s.Connections
			if took := time.Since(began); took > testenv.Patience {
				t.Errorf("ended after %v", took)
			}
			// The rule's bucket holds some packets more or less.
			if x.Established < most-1 || x.Established > most+1 || x.OpenMax != x.Established ||
				r.Tally.Received != x.Established {
				t.Errorf("%d established, %d open at most, %d taken; want %d", x.Established, x.OpenMax,
					r.Tally.Received, most)
			}
			if x.Failed[c.errno] == 0 || !strings.Contains(x.Ended, c.errno) || x.HostLimit ||
				s.Attempted != x.Established+enginetest.Total(maps.Values(x.Failed)) {
				t.Errorf("failed %v of %d attempts, ended because %q (this host's limit: %v)", x.Failed, s.Attempted,
					x.Ended, x.HostLimit)
			}
			p.Close()
		})
	}
}

// TestConnectionsOfTheHost: what this host cannot hold is not the path's limit.
func TestConnectionsOfTheHost(t *testing.T) {
	t.Run("files", func(t *testing.T) {
		var old unix.Rlimit
		testenv.Must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &old))
		open, err := os.ReadDir("/proc/self/fd")
		testenv.Must(t, err)
		p := newPair(t, netbed.Namespace(t), "127.0.0.1", false, connections(model.ConnectionKeep, 1),
			timing(0, 20*time.Second, time.Second))
		p.Connect()
		few := unix.Rlimit{Cur: uint64(len(open)) + spareFiles + 200, Max: old.Max}
		testenv.Must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &few))
		s, _ := p.play()
		testenv.Must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &old))
		x := s.Connections
		if x.OpenMax < 80 || x.OpenMax > 100 || !x.HostLimit || x.Ended != model.TurnedAway ||
			len(x.Failed) != 0 {
			t.Errorf("%+v, want some 100 open at most, by this host's limit", x)
		}
		p.Close()
	})
	t.Run("ports", func(t *testing.T) {
		ns := netbed.Namespace(t)
		p := newPair(t, ns, "127.0.0.1", false, connections(model.ConnectionKeep, 1),
			timing(0, 20*time.Second, time.Second))
		p.Connect()
		if err := ns.Do(func() error {
			return os.WriteFile("/proc/sys/net/ipv4/ip_local_port_range", []byte("40000 40099"), 0)
		}); err != nil {
			t.Fatal(err)
		}
		s, _ := p.play()
		x := s.Connections
		if x.OpenMax < 90 || x.OpenMax > 100 || !x.HostLimit || x.Failed["EADDRNOTAVAIL"] == 0 ||
			!strings.Contains(x.Ended, "more source addresses") {
			t.Errorf("%+v, want some 100 open at most, by this host's ports", x)
		}
		p.Close()
	})
}

// TestReceiverIsFull: the receiver's own limit is told as such.
func TestReceiverIsFull(t *testing.T) {
	p := newPair(t, netbed.Namespace(t), "127.0.0.1", false, connections(model.ConnectionKeep, 1),
		timing(0, 20*time.Second, time.Second))
	p.receiver.t.most = 70
	p.Connect()
	s, r := p.play()
	if x := s.Connections; x.OpenMax != 70 || x.Failed["closed"]+x.Failed["ECONNRESET"]+x.Failed["under way"] == 0 ||
		x.HostLimit || r.Tally.Received != 70 {
		t.Errorf("%+v, %d taken, want 70", x, r.Tally.Received)
	}
	w := p.receiver.Account().Warnings
	if i := slices.IndexFunc(w, func(r model.Reason) bool { return r.Code == model.TurnedAway }); i < 0 ||
		w[i].Numbers["files"] == 0 || w[i].Numbers["connections"] == 0 || w.Has(model.StrangersRefused) {
		t.Errorf("the receiver warns: %v", w)
	}
}

// TestConnectionsBroken: those that somebody else ends while they are kept are told.
func TestConnectionsBroken(t *testing.T) {
	p := newPair(t, netbed.Namespace(t), "127.0.0.1", false, connections(model.ConnectionKeep, 1),
		timing(0, time.Minute, time.Second))
	p.Connect()
	p.start(p.sender)
	e := p.receiver.t
	o := p.sender.t.opener
	testenv.Await(t, "100 kept", func() bool { return o.opened.Load() >= 100 })
	e.mu.Lock()
	for _, conn := range e.kept[:50] {
		conn.Close()
	}
	e.mu.Unlock()
	testenv.Await(t, "50 broken", func() bool { return o.broken.Load() == 50 })
	p.stop(p.sender)
	if r := p.sender.Account(); r.Send.Connections.Broken != 50 {
		t.Errorf("report: %+v of %+v", r, r.Send.Connections)
	}
}

// TestConnectionsNeedConsent: before both ends have consented nobody's connection is
// counted, nor one that another key has signed.
func TestConnectionsNeedConsent(t *testing.T) {
	p := newPair(t, enginetest.Here{}, "127.0.0.1", false, connections(model.ConnectionKeep, 1),
		timing(0, time.Second, time.Second))
	present := func(trial uint16, stream uint8, key []byte) (answer int) {
		t.Helper()
		c := call(t, p.receiver.Ports()[0])
		defer c.Close()
		hello := engine.NewConsentDialer(engine.StreamKey{Trial: trial, Tag: p.sender.Order.Tag, Stream: stream,
			Key: key}).Message()
		if _, err := c.Write(hello[:]); err != nil {
			t.Fatal(err)
		}
		c.SetReadDeadline(time.Now().Add(testenv.Patience))
		n, err := io.ReadFull(c, make([]byte, engine.ConsentBytes))
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatal("the caller is left to wait")
		}
		return n
	}
	right, wrong := p.sender.Order.Key, []byte(strings.Repeat("x", engine.KeyBytes))
	present(p.sender.Order.Trial, 0, right) // who asks for the stream's consent and goes away
	p.Connect()
	p.start(p.receiver)
	for _, c := range []struct {
		name   string
		trial  uint16
		stream uint8
		key    []byte
		want   int
	}{
		{"the right one", p.sender.Order.Trial, 0, right, engine.ConsentBytes},
		{"another key", p.sender.Order.Trial, 0, wrong, 0},
		{"another trial", p.sender.Order.Trial + 1, 0, right, 0},
		{"a stream too many", p.sender.Order.Trial, 1, right, 0},
	} {
		if n := present(c.trial, c.stream, c.key); n != c.want {
			t.Errorf("%s got %d B, want %d", c.name, n, c.want)
		}
	}
	p.stop(p.receiver)
	if n := p.receiver.Account().Receive.Tally.Received; n != 1 {
		t.Errorf("%d connections were taken, want 1", n)
	}
}
