//go:build amd64 || arm64

package xdp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"pelt/engine"
	"pelt/engine/enginetest"
	"pelt/internal/checksum"
	"pelt/internal/kernelclock"
	"pelt/internal/kerneltypes"
	"pelt/internal/testenv"
	"pelt/measure"
	"pelt/model"
	"pelt/unit"
)

// inject sends frames into the cable from near, as some other host would.
func (b *bed) inject(frames ...[]byte) {
	b.T.Helper()
	to := &unix.SockaddrLinklayer{Ifindex: b.near.Index("va"), Halen: 6}
	b.near.Must(func() error {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		for _, f := range frames {
			if err := unix.Sendto(fd, f, 0, to); err != nil {
				return err
			}
		}
		return nil
	})
}

// frame is a test packet of the trial's only stream with a right checksum.
func (b *bed) frame(from, to netip.AddrPort, h engine.Header, payload int) []byte {
	b.T.Helper()
	s := shape{from: from, to: to, payloadBytes: payload}
	copy(s.target[:], b.far.Hardware("vb"))
	f := s.layOut()
	udp := f[s.headerBytes()-udpBytes : s.headerBytes()+payload]
	engine.PutHeader(udp[udpBytes:], h)
	pseudo := append(append(from.Addr().AsSlice(), to.Addr().AsSlice()...), 0, protocolUDP, byte(len(udp)>>8),
		byte(len(udp)))
	binary.BigEndian.PutUint16(udp[6:], ^checksum.Fold(checksum.Words(pseudo)+checksum.Words(udp)))
	return f
}

// What an honest sender does not send: repeated, overtaken, damaged, foreign.
func TestOddPackets(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	var ends [2]netip.AddrPort
	var sender *enginetest.End
	const sizes = 40         // of packets that have another size than the flow's
	var before, after uint64 // packets of the flow's own by when the odd ones came
	c := trial{engines: [2]string{"udp", "xdp"}, packets: 50,
		flow: model.Flow{PayloadBytes: 64, Rate: unit.PacketRate(200)}}
	c.connected = func(p *enginetest.Pair) {
		sender = p.Sender
		streams := p.Sender.Met.Streams
		ends = [2]netip.AddrPort{streams[0].Local, streams[0].Remote}
	}
	now := func() uint64 { return kernelclock.Now() & (1<<48 - 1) }
	c.during = func(*enginetest.Pair) {
		testenv.Await(t, "packets", func() bool { return sender.Snapshot().Packets >= 20 })
		packet := func(sequence uint64) []byte {
			return b.frame(ends[0], ends[1], engine.Header{Trial: 77, Sequence: sequence, SendNanos: now()}, 64)
		}
		damaged := packet(1_001)
		damaged[len(damaged)-1] ^= 1
		stranger := b.frame(netip.AddrPortFrom(ends[0].Addr(), ends[0].Port()^1), ends[1],
			engine.Header{Trial: 77, Sequence: 4}, 64)
		otherTrial := b.frame(ends[0], ends[1], engine.Header{Trial: 78, Sequence: 5}, 64)
		long := b.frame(ends[0], ends[1], engine.Header{Trial: 77, Sequence: 6, SendNanos: now()}, 65)
		fragment := packet(7)
		fragment[ethernetBytes+6] |= 0x20 // more fragments
		ahead := packet(1 << 40)
		before = sender.Snapshot().Packets
		b.inject(packet(0), packet(0), packet(1_003), packet(1_000), packet(1_002), damaged, stranger, otherTrial,
			long, fragment, ahead)
		counted := sender.Snapshot().Packets // without what has just left, which may be counted only with what comes next
		testenv.Await(t, "a further packet", func() bool { after = sender.Snapshot().Packets; return after > counted })
		for size := 18; size < 18+sizes; size++ { // without padding; each number of odd bytes behind the words
			whole := b.frame(ends[0], ends[1], engine.Header{Trial: 77, Sequence: 8, SendNanos: now()}, size)
			last, inside := slices.Clone(whole), slices.Clone(whole)
			last[len(last)-1] ^= 1
			inside[len(inside)-1-size%16] ^= 1
			b.inject(whole, last, inside)
		}
	}
	out, err := b.run(t, c)
	testenv.Must(t, err)
	r := out.receive.Receive
	got := []uint64{r.Tally.Received, r.Tally.Duplicates, r.Broken, r.Tally.WrongLength, r.Tally.Strangers}
	// Its own and 1000, 1002, 1003; 0 twice more; 2^40.
	want := []uint64{out.send.Send.Attempted + 3, 2, 1 + 2*sizes, 1 + sizes, 1}
	for i, name := range []string{"received", "duplicates", "broken", "wrong length", "strangers"} {
		if got[i] != want[i] {
			t.Errorf("%s: %d, want %d", name, got[i], want[i])
		}
	}
	// 1000 and 1002 came after 1003, and so did all of the flow's own since;
	// one may be on its way while it is counted.
	least, most := out.send.Send.Attempted-after+2, out.send.Send.Attempted-before+2+1
	if r.Tally.Reordered < least || r.Tally.Reordered > most || before == 0 {
		t.Errorf("%d reordered, want %d to %d of %d", r.Tally.Reordered, least, most, out.send.Send.Attempted)
	}
}

// Everything else that comes through the interface goes on as before.
func TestOthersGoOn(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	var l net.Listener
	b.far.Must(func() (err error) { l, err = net.Listen("tcp", "10.77.0.2:0"); return err })
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				io.Copy(struct{ io.Writer }{c}, c) // between two connections Go would keep a pipe open for the next copy
				c.Close()
			}()
		}
	}()
	var talk net.Conn
	b.near.Must(func() (err error) { talk, err = net.Dial("tcp", l.Addr().String()); return err })
	defer talk.Close()
	answers, slowest := 0, time.Duration(0)
	speak := func(*enginetest.Pair) {
		for until := time.Now().Add(800 * time.Millisecond); answers < 10 || time.Now().Before(until); answers++ {
			began := time.Now()
			talk.SetDeadline(began.Add(testenv.Patience))
			line := make([]byte, 9000)
			if _, err := talk.Write(line); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(talk, line); err != nil {
				t.Fatal(err)
			}
			slowest = max(slowest, time.Since(began))
		}
	}
	out, err := b.run(t, trial{packets: 1, flow: model.Flow{Rate: unit.PacketRate(50_000)}, during: speak})
	testenv.Must(t, err)
	t.Logf("%d answers of 9000 B beside %d packets, the slowest after %v", answers,
		out.receive.Receive.Tally.Received, slowest)
	if lost, unsent := out.balanced(t), out.unsent(); lost != unsent {
		t.Errorf("%d lost, %d not taken by the device", lost, unsent)
	}
}

// An interface that another's program holds is left alone, and said so.
func TestTakenInterface(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	other := New(nil)
	defer other.Close()
	testenv.Must(t, other.Ready(b.far, "vb"))
	c := trial{measure: 50 * time.Millisecond, flow: model.Flow{Rate: unit.PacketRate(1000)}}
	var refusal *engine.Refusal
	if _, err := b.run(t, c); !errors.As(err, &refusal) || refusal.Why.Code != model.ProgramThere {
		t.Errorf("got %v", err)
	}
	c.fallback = true
	out, err := b.run(t, c)
	if err != nil || out.receive.Engine != "udp" || len(out.receive.Why) != 1 ||
		out.receive.Why[0].Code != model.ProgramThere || out.receive.Why[0].Name != "vb" ||
		out.balanced(t) > out.Backlog {
		t.Errorf("with sockets allowed: %v, %+v", err, out.receive)
	}
}

// Packets that come past the program, here as fragments, are noticed.
func TestStrays(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	var ends [2]netip.AddrPort
	c := trial{engines: [2]string{"udp", "xdp"}, packets: 50,
		flow: model.Flow{PayloadBytes: 64, Rate: unit.PacketRate(1000)}}
	c.connected = func(p *enginetest.Pair) {
		streams := p.Sender.Met.Streams
		ends = [2]netip.AddrPort{streams[0].Local, streams[0].Remote}
	}
	c.during = func(*enginetest.Pair) {
		whole := b.frame(ends[0], ends[1], engine.Header{Trial: 77, Sequence: 100_000}, 64)
		ip, payload := whole[:ethernetBytes+ip4Bytes], whole[ethernetBytes+ip4Bytes:ethernetBytes+ip4Bytes+udpBytes+64]
		fragment := func(at, to, flags int) []byte {
			f := append(append([]byte{}, ip...), payload[at:to]...)
			h := f[ethernetBytes:]
			binary.BigEndian.PutUint16(h[2:], uint16(len(h)))
			binary.BigEndian.PutUint16(h[6:], uint16(flags<<13|at/8))
			binary.BigEndian.PutUint16(h[10:], 0)
			binary.BigEndian.PutUint16(h[10:], ^checksum.Fold(checksum.Words(h[:ip4Bytes])))
			return f
		}
		b.inject(fragment(0, 40, 1), fragment(40, 72, 0))
	}
	out, err := b.run(t, c)
	testenv.Must(t, err)
	if r := out.receive.Receive; r.Strays != 1 || r.Tally.Received != out.send.Send.Attempted {
		t.Errorf("%d strays and %d received of %d; want 1 and all", r.Strays, r.Tally.Received, out.send.Send.Attempted)
	}
}

// The program is gone with the engine, and so is whatever it was attached with.
func TestNothingStays(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	if _, err := b.run(t, trial{measure: 100 * time.Millisecond,
		flow: model.Flow{Rate: unit.PacketRate(1000)}}); err != nil {
		t.Fatal(err)
	}
	if !b.far.HasProgram("vb") {
		t.Error("the program left its interface with the flow; the next one would have to attach it again")
	}
	testenv.Must(t, b.engines[b.far].xdp.Close())
	if b.far.HasProgram("vb") {
		t.Error("the program is still on its interface")
	}
}

// What cannot be carried with frames says so in one line. What a receiver wants of its sockets
// leaves the sender its frames: they find the cable ready.
func TestRefusals(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	for _, c := range []struct {
		name    string
		flow    model.Flow
		want    string
		engines [2]string // of sender and receiver, where sockets are allowed
	}{
		{"segments", model.Flow{PayloadBytes: 64, Segments: 4}, model.FramesSegments,
			[2]string{"udp", "udp"}},
		{"sender's buffer", model.Flow{PayloadBytes: 64, SendBuffer: 65536},
			model.FramesBuffer, [2]string{"udp", "xdp"}},
		{"page", model.Flow{PayloadBytes: 4000}, model.FramesLong, [2]string{"udp", "udp"}},
		{"MTU", model.Flow{PayloadBytes: 1473},
			model.NeedsFragments,
			[2]string{"udp", "udp"}},
		{"receiver's buffer", model.Flow{PayloadBytes: 64, ReceiveBuffer: 1 << 20},
			model.FramesBuffer, [2]string{"xdp", "udp"}},
		{"joined", model.Flow{PayloadBytes: 64, Joined: true}, model.FramesJoined,
			[2]string{"xdp", "udp"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.flow.Rate = unit.PacketRate(1000)
			_, err := b.run(t, trial{measure: 50 * time.Millisecond, flow: c.flow})
			if refusal := (*engine.Refusal)(nil); !errors.As(err, &refusal) || refusal.Why.Code != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
			out, err := b.run(t, trial{measure: 50 * time.Millisecond, flow: c.flow, fallback: true})
			testenv.Must(t, err)
			refused := out.send
			if c.engines[0] == "xdp" {
				refused = out.receive
			}
			if got := [2]string{out.send.Engine, out.receive.Engine}; got != c.engines ||
				refused.Why[0].Code != c.want {
				t.Errorf("with sockets allowed: %v because %v; want %v", got, refused.Why, c.engines)
			}
			if lost := out.balanced(t); lost > out.receive.Receive.Unread+out.Backlog {
				t.Errorf("%d lost, %d unread, the backlog dropped %d", lost, out.receive.Receive.Unread, out.Backlog)
			}
		})
	}
}

func TestOneRuleOfLeaps(t *testing.T) {
	if sendLimitsMOST_STEP != measure.MostStep || sendLimitsAGREEING != measure.Agreeing {
		t.Error("the program's rule is another than that of package measure")
	}
	// Fewer than agreeing steps stay within half of the smallest window.
	if least := int(sendLimitsFLOW_WORDS) * 64 / int(sendLimitsOUTS); measure.MostStep*(measure.Agreeing-1) >= least/2 {
		t.Errorf("%d steps leave half a window of %d", measure.Agreeing-1, least)
	}
}

// Packets that somebody forges count as foreign, unless as many agree as a leap
// takes: then it goes on there, as it does after a pause of the path.
func TestForgedLeap(t *testing.T) {
	t.Parallel()
	const far = 1 << 20 // in the windows
	b := newBed(t)
	for _, kind := range []string{"udp", "xdp"} {
		for _, c := range []struct{ foreign, received, strangers uint64 }{
			{1, 0, 1}, {measure.Agreeing - 1, 0, measure.Agreeing - 1}, {measure.Agreeing + 10, measure.Agreeing + 10,
				0}} {
			t.Run(fmt.Sprintf("%s, %d", kind, c.foreign), func(t *testing.T) {
				var sender *enginetest.End
				var from, to netip.AddrPort
				run := trial{engines: [2]string{"udp", kind}, packets: 60,
					flow: model.Flow{PayloadBytes: 64, Rate: unit.PacketRate(2000)}}
				run.connected = func(p *enginetest.Pair) {
					streams := p.Sender.Met.Streams
					sender, from, to = p.Sender, streams[0].Local, streams[0].Remote
				}
				run.during = func(*enginetest.Pair) {
					testenv.Await(t, "packets", func() bool { return sender.Snapshot().Packets >= 10 })
					var frames [][]byte
					for n := range c.foreign {
						frames = append(frames,
							b.frame(from, to,
								engine.Header{Trial: 77, Sequence: far + n, SendNanos: kernelclock.Now() & (1<<48 - 1)},
								64))
					}
					b.inject(frames...)
				}
				out, err := b.run(t, run)
				testenv.Must(t, err)
				r, sent := out.receive.Receive.Tally, out.send.Send.Accepted
				if whole := sent + c.received; r.Received > whole || r.Received+out.Backlog < whole ||
					r.Strangers != c.strangers || r.Late != 0 || c.received == 0 && r.Reordered != 0 {
					t.Errorf("of %d sent and %d forged, of which the backlog dropped %d: %+v", sent, c.foreign,
						out.Backlog, r)
				}
				if sum := enginetest.Total(slices.Values(r.PerStep)); sum != r.Received {
					t.Errorf("received in all seconds: %d, want %d", sum, r.Received)
				}
			})
		}
	}
}

// Whatever comes, the seconds of a stream add up to its distinct packets, and each packet is counted once. The kernel
// runs the program on each packet.
func TestSecondsAddUp(t *testing.T) {
	testenv.Root(t)
	spec, err := loadReceive()
	testenv.Must(t, err)
	p := &port{engine: &Engine{}}
	if p.set, p.memory, err = newSet(spec); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.close() })
	p.share()
	stream := engine.Stream{Local: netip.MustParseAddrPort("10.77.0.2:2"),
		Remote: netip.MustParseAddrPort("10.77.0.1:1")}
	form := shape{from: stream.Remote, to: stream.Local, payloadBytes: 64}
	frame := form.layOut() // without a checksum, which IPv4 allows
	rapid.Check(t, func(t *rapid.T) {
		var o engine.Order
		o.Trial, o.Flow = 77, model.Flow{PayloadBytes: form.payloadBytes, Rate: unit.PacketRate(1000)} // each is timed
		streams := make([]engine.Stream, rapid.SampledFrom([]int{1, int(sendLimitsOUTS)}).Draw(t, "streams"))
		for i := range streams {
			streams[i] = engine.Stream{Local: stream.Local, Remote: netip.AddrPortFrom(stream.Remote.Addr(), uint16(1+i))}
		}
		r := &receiver{end: &transport{order: o}, port: p}
		if why := p.admit(r, streams); why.Code != "" {
			t.Fatal(why)
		}
		defer p.free(r)
		defer p.dismiss(r)
		in := &p.ins[r.slots[0]]
		var next, came, fresh uint64
		seconds, over := []uint64{0}, false
		for range rapid.IntRange(1, 30).Draw(t, "bursts") {
			at := next
			switch rapid.IntRange(0, 9).Draw(t, "before it") {
			case 0, 1:
				at += rapid.Uint64Range(measure.MostStep-40, 3*measure.MostStep).Draw(t, "lost")
			case 2:
				at += rapid.Uint64Range(0, 3*r.windows[0].span()).Draw(t, "lost for long")
			case 3:
				at -= min(at, rapid.Uint64Range(1, 50).Draw(t, "repeated"))
			case 4:
				at = rapid.Uint64Range(0, 1<<47).Draw(t, "forged")
			case 5:
				r.round()
			}
			if in.First != 0 && rapid.Bool().Draw(t, "a second is over") {
				over = true
			}
			for range rapid.IntRange(1, 2*measure.Agreeing).Draw(t, "packets") {
				engine.PutHeader(frame[form.headerBytes():], engine.Header{Trial: o.Trial, Sequence: at})
				if in.StepTo = math.MaxUint64; over { // a process that has to wait ends no second
					in.StepTo = kernelclock.Now()
				}
				if _, err := p.set.Programs[receiveProgReceive].Run(&ebpf.RunOptions{Data: frame}); err != nil {
					t.Fatal(err)
				}
				came, at = came+1, at+1
				if in.Fresh == fresh {
					continue
				}
				if over {
					seconds, over = append(seconds, 0), false
				}
				seconds[len(seconds)-1]++
				fresh++
			}
			if at < 1<<40 {
				next = max(next, at)
			}
		}
		r.round()
		distinct := r.finish(0, rapid.SampledFrom([]uint64{0, next}).Draw(t, "attempted"))
		if n := taken(in); n != came || distinct > fresh {
			t.Errorf("%d came, %d are counted, %d of %d as distinct", came, n, distinct, fresh)
		}
		if sum := enginetest.Total(slices.Values(r.steps.counts)); sum != distinct {
			t.Errorf("received in all seconds %v: %d, want %d", r.steps.counts, sum, distinct)
		}
		if got := r.steps.counts; distinct == fresh && fresh > 0 && !slices.Equal(got, seconds) {
			t.Errorf("seconds %v, want %v", got, seconds)
		}
	})
}

// The kernel checks the programs anew at each end: by this many steps, of some 2 µs.
func TestVerifierSteps(t *testing.T) {
	testenv.Root(t)
	for _, load := range []func() (*ebpf.CollectionSpec, error){loadSend, loadReceive} {
		spec, err := load()
		testenv.Must(t, err)
		set, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Cache: kerneltypes.Cache(),
			Programs: ebpf.ProgramOptions{LogLevel: ebpf.LogLevelStats}})
		testenv.Must(t, err)
		for name, p := range set.Programs {
			_, after, _ := strings.Cut(p.VerifierLog, "processed ")
			steps := 0
			if _, err := fmt.Sscan(after, &steps); err != nil || steps > 30_000 {
				t.Errorf("%s: %d steps, %v", name, steps, err)
			}
			t.Logf("%s: %d steps", name, steps)
		}
		set.Close()
	}
}
