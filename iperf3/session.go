package iperf3

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"regexp"
	"sync"
	"time"

	"pelt/engine"
	"pelt/engine/tcp"
	"pelt/finding"
	"pelt/model"
)

const (
	farewell = 2 * time.Second
	vanished = 9 * time.Second // until the kernel gives up a client that answers nothing
	mostTrip = time.Second
)

// Session is one client and its test.
type Session struct {
	Peer  netip.Addr
	Local netip.AddrPort // where the client called

	server   *Server
	control  *control
	cookie   [cookieBytes]byte
	number   uint64 // of its connection, in the order in which they came
	remote   netip.AddrPort
	trip     time.Duration // to the client and back, at most mostTrip
	reads    bool          // states of the control connection are read
	asked    asked
	up, down *direction // nil: no such flow

	opened chan struct{} // closed when its streams are not being opened any more
	mu     sync.Mutex
	freed  bool
	count  int        // streams that were opened over UDP
	joined []*Session // of a test over TCP: its connections, each of which began as a client's
	taken  chan error // one for each stream; nil before they are opened

	beginning sync.Once
	ending    chan struct{} // closed when the client has all that it waited for, or is gone
	led       chan struct{} // closed when what follows is set
	theirs    *results      // the client's
	ended     error         // what ended the test early
	duration  time.Duration
	stopped   context.Context // its cause is a *Denial
	stop      context.CancelCauseFunc
}

func newSession(s *Server, c *net.TCPConn, number uint64) *Session {
	unmapped := func(a net.Addr) netip.AddrPort {
		p := a.(*net.TCPAddr).AddrPort()
		return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
	}
	remote := unmapped(c.RemoteAddr())
	x := &Session{server: s, control: newControl(c), number: number, remote: remote, Peer: remote.Addr(),
		Local: unmapped(c.LocalAddr()), opened: make(chan struct{}), ending: make(chan struct{}),
		led: make(chan struct{})}
	x.stopped, x.stop = context.WithCancelCause(context.Background())
	tcp.LimitSilence(c, vanished)
	return x
}

func (x *Session) Flows() (list []model.Flow) {
	for _, d := range x.directions() {
		list = append(list, d.flow)
	}
	return list
}

// Orders are those of this host's ends.
func (x *Session) Orders() (list []engine.Order) {
	for _, d := range x.directions() {
		list = append(list, d.order())
	}
	return list
}

// Streams are those of all flows.
func (x *Session) Streams() int { return len(x.directions()) * x.asked.streams }

// Wide reports whether the client's packets have sequences of 64 bits.
func (x *Session) Wide() bool { return x.asked.wide }

// Timing is that of the test. An iperf3 client has no warm-up that can be told from the test, so what it omits counts.
func (x *Session) Timing() model.Timing {
	return model.Timing{MeasureSeconds: cmp.Or(float64(x.asked.seconds), x.server.config.Longest.Seconds()),
		DrainSeconds: 3}
}

// errNothing says that a client went away before it said what it wants.
var errNothing = errors.New("the client said nothing")

// greet reads the cookie, which says whether the connection is a stream of a test that waits for it.
func (x *Session) greet() error {
	if err := x.server.config.Welcome(x.Peer); err != nil {
		return &Denial{codeStranger, err}
	}
	_ = x.control.conn.SetReadDeadline(time.Now().Add(patience))
	if _, err := io.ReadFull(x.control.conn, x.cookie[:]); err != nil {
		return errNothing
	}
	return nil
}

func (x *Session) ask() error {
	k, begun := x.control, time.Now()
	_ = k.send(paramExchange) // an error shows when its answer is read
	b, err := k.readJSON(mostParams)
	x.trip = min(time.Since(begun), mostTrip)
	var left net.Error
	switch {
	case errors.Is(err, errClosed) || errors.As(err, &left):
		return errNothing
	case err != nil:
		return &Denial{codeParams, err}
	}
	_ = k.conn.SetReadDeadline(time.Time{})
	if x.asked, err = readAsked(b); err != nil {
		return err
	}
	flows, err := x.asked.flows()
	for _, f := range flows {
		d := &direction{session: x, flow: f, accounted: make(chan struct{})}
		if d.sends() {
			x.down = d
		} else {
			x.up = d
		}
	}
	return err
}

// test is the test of a client that has a place.
func (x *Session) test(ctx context.Context) error {
	x.reads = true
	go x.control.read()
	err := x.open(ctx)
	defer x.free()
	if err != nil {
		return err
	}
	text, err := x.server.config.Run(ctx, x)
	why := deny(codeResults, model.IperfNotRun)
	if err != nil {
		why.err = finding.Because(err, model.IperfNotRun)
	}
	x.beginning.Do(func() { x.ended = why; close(x.led) })
	x.stop(why)
	<-x.led
	switch {
	case x.ended != nil:
		return x.ended
	case err != nil:
		return why
	}
	for _, d := range x.directions() {
		if !d.told() {
			return deny(codeResults, model.IperfNoAccount)
		}
	}
	return x.tell(text)
}

// left says why a client in a test is served no more.
func (e event) left() error {
	var late net.Error
	switch {
	case errors.As(e.err, &late) && late.Timeout():
		return finding.NewFault(model.IperfVanished, "after_s", vanished.Seconds())
	case e.err != nil:
		return finding.NewFault(model.IperfLeft)
	case e.state == clientTerminate:
		return finding.NewFault(model.IperfEndedEarly)
	}
	return deny(codeUnknown, model.IperfState, "state", fmt.Sprint(int(e.state)), "client", "yes")
}

// begin tells the client that the test runs, and follows it until it is over. Calls after the first do nothing.
func (x *Session) begin() {
	x.beginning.Do(func() {
		err := x.control.write([]byte{byte(testStart), byte(testRunning)})
		go func() {
			defer close(x.led)
			if err == nil {
				err = x.await()
			}
			close(x.ending)
			if err == nil {
				err = x.exchange()
			}
			x.ended = err
		}()
	})
}

// await returns when the client says that it is done.
func (x *Session) await() error {
	begun, sends := time.Now(), sending{asked: x.asked}
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		select {
		case e := <-x.control.events:
			if e.err != nil || e.state != testEnd {
				return e.left()
			}
			x.duration = time.Since(begun)
			return nil
		case now := <-look.C:
			if x.up == nil {
				continue
			}
			if err := sends.problem(x.up.sockets.Count().Heard, now.Sub(begun)); err != nil {
				return err
			}
		case <-x.stopped.Done():
			return context.Cause(x.stopped)
		}
	}
}

func (x *Session) exchange() error {
	if err := x.control.send(exchangeResults); err != nil {
		return err
	}
	b, err := x.control.readJSON(mostResults)
	var r results
	if err == nil {
		r, err = readResults(b, x.Streams())
	}
	if err != nil {
		return &Denial{codeResults, err}
	}
	if x.up != nil && !x.asked.udp {
		x.up.arrive(x.up.of(r.Streams))
	}
	x.theirs = &r
	return nil
}

// said are the client's results; nil if it has not told them.
func (x *Session) said() *results {
	select {
	case <-x.led:
		return x.theirs
	default:
		return nil
	}
}

// errLong stops a test that does not end.
var errLong = deny(codeRanLong, model.IperfOverlong)

// longestSilence of a client that should send is that of iperf3's own server.
const longestSilence = 2 * time.Minute

// sending is how a client sends.
type sending struct {
	asked asked
	heard uint64        // packets over UDP, bytes over TCP
	at    time.Duration // of its test, when they were as many
}

// problem says what is wrong with what was heard so long after the begin of the test. iperf3 sends in bursts, after -O
// those of so many seconds at once.
func (s *sending) problem(heard uint64, after time.Duration) error {
	if heard != s.heard {
		s.heard, s.at = heard, after
	}
	if s.asked.udp {
		heard *= uint64(s.asked.payload)
	}
	const burst = 2 * time.Second
	perSecond, streams := float64(s.asked.bandwidth)/8, float64(s.asked.streams)
	switch {
	case after-s.at >= longestSilence:
		return deny(codeNoData, model.IperfSentNothing, "after_s", longestSilence.Seconds())
	case perSecond > 0 && float64(heard) > 2*streams*(perSecond*(after+burst).Seconds()+float64(s.asked.payload)):
		return deny(codeRate, model.IperfOverRate)
	}
	return nil
}

var versionText = regexp.MustCompile(`^[0-9A-Za-z.+~-]{1,24}$`)

// program names the client.
func (x *Session) program() string {
	if versionText.MatchString(x.asked.version) {
		return "iperf3 " + x.asked.version
	}
	return "iperf3"
}

// tell gives the client this side's figures, those of the run.
func (x *Session) tell(text string) error {
	r := results{HasRetransmits: -1}
	if x.asked.output {
		r.Output = text
	}
	for _, d := range x.directions() {
		r.CPU = max(r.CPU, 100*d.report.CPU.ThreadRatio)
		if d.sends() {
			r.HasRetransmits = 0
		}
		if tcp := d.report.Send; tcp != nil && tcp.TCP != nil {
			r.HasRetransmits, r.Congestion = 1, tcp.TCP.Control
		}
		r.Streams = append(r.Streams, d.own()...)
	}
	r.complete(x.duration.Seconds())
	if err := x.control.sendJSON(r); err != nil {
		return err
	}
	return x.control.send(displayResults)
}

// end says why the client is not served, if it is not, and closes its connection.
func (x *Session) end(err error) {
	k, denied := x.control, (*Denial)(nil)
	switch {
	case err == nil || errors.Is(err, errNothing):
	case errors.Is(err, errFull):
		_ = k.send(accessDenied)
	case errors.As(err, &denied):
		b := binary.BigEndian.AppendUint32([]byte{0xFE}, uint32(denied.Code))
		_ = k.write(binary.BigEndian.AppendUint32(b, 0)) // and no errno
	default:
		_ = k.send(serverTerminate)
	}
	_ = k.conn.CloseWrite()
	_ = k.conn.SetReadDeadline(time.Now().Add(farewell))
	_, _ = io.Copy(io.Discard, io.LimitReader(k.conn, mostResults)) // else a reset would overtake the last word
	if !x.reads {
		close(k.events)
	}
	_ = k.close()
}
