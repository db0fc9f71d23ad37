package iperf3

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"pelt/engine"
	"pelt/finding"
	"pelt/model"
)

// DefaultPort is where an iperf3 server listens, with TCP and with UDP.
const DefaultPort = 5201

// state is the byte that says how far a test has come.
type state int8

// The states of tests over UDP.
const (
	testStart       state = 1
	testRunning     state = 2
	testEnd         state = 4
	paramExchange   state = 9
	createStreams   state = 10
	serverTerminate state = 11
	clientTerminate state = 12
	exchangeResults state = 13
	displayResults  state = 14
	iperfDone       state = 16
	accessDenied    state = -1
	serverError     state = -2
)

// Bounds of what the other side may send.
const (
	mostResults = 1 << 20
	mostParams  = 8 << 10
	mostStreams = 128
)

// cookieBytes is the length of the cookie that names a test: 36 characters and a NUL.
const cookieBytes = 37

func newCookie() (c [cookieBytes]byte) {
	const letters = "abcdefghijklmnopqrstuvwxyz234567"
	_, _ = rand.Read(c[:cookieBytes-1]) // never fails
	for i := range c[:cookieBytes-1] {
		c[i] = letters[int(c[i])%len(letters)]
	}
	return c
}

// params are what a client asks for. iperf3 takes the mere presence of a boolean as true, so false is left out.
type params struct {
	UDP       bool  `json:"udp,omitempty"`
	TCP       bool  `json:"tcp,omitempty"`
	Reverse   bool  `json:"reverse,omitempty"`
	Both      bool  `json:"bidirectional,omitempty"`
	NoDelay   bool  `json:"nodelay,omitempty"`
	Omit      int   `json:"omit"`       // s
	Time      int   `json:"time"`       // s
	Num       int   `json:"num"`        // bytes; 0: the time ends the test
	Blocks    int   `json:"blockcount"` // likewise
	Parallel  int   `json:"parallel"`
	Len       int   `json:"len"`                 // bytes of each datagram
	Bandwidth int64 `json:"bandwidth,omitempty"` // bit/s of payload of each stream; 0: no limit
	Window    int   `json:"window,omitempty"`    // bytes of the server's socket buffers; 0: as they are
	TOS       int   `json:"TOS,omitempty"`
	// Congestion is of the server's sockets; "": what it has, which may be that of the client before.
	Congestion string `json:"congestion,omitempty"`
	Client     string `json:"client_version"`
}

// streamResult is one stream in the results of either side.
type streamResult struct {
	ID          int     `json:"id"`
	Bytes       count   `json:"bytes"`
	Retransmits count   `json:"retransmits"`
	Jitter      float64 `json:"jitter"` // s
	Errors      count   `json:"errors"` // gaps between sequences, less what came out of order
	Packets     count   `json:"packets"`
	// OmittedErrors is nil up to 3.13.
	OmittedErrors  *count `json:"omitted_errors"`
	OmittedPackets *count `json:"omitted_packets"`
	// End is nil up to 3.1.
	Start float64  `json:"start_time"`
	End   *float64 `json:"end_time"` // s
}

// results are what either side measured.
type results struct {
	CPU            float64        `json:"cpu_util_total"` // percent of one core
	CPUUser        float64        `json:"cpu_util_user"`
	CPUSystem      float64        `json:"cpu_util_system"`
	HasRetransmits count          `json:"sender_has_retransmits"`
	Congestion     string         `json:"congestion_used,omitempty"`
	Streams        []streamResult `json:"streams"`
	Output         string         `json:"server_output_text,omitempty"` // of a server that is asked for it
	oldMinus       bool           // -1 was written as 2^64-1: 3.13 and older
}

// count is an integer that iperf3 up to 3.13 writes without a sign: -1 comes as 2^64-1.
type count int64

// UnmarshalJSON reads a whole number.
func (c *count) UnmarshalJSON(b []byte) error {
	var unsigned uint64
	if json.Unmarshal(b, &unsigned) == nil {
		*c = count(unsigned)
		return nil
	}
	var signed int64
	err := json.Unmarshal(b, &signed)
	*c = count(signed)
	return err
}

// readResults decodes the other side's results of so many streams. Keys of other versions are left out.
func readResults(b []byte, streams int) (r results, err error) {
	if len(b) > mostResults {
		return r, longDocument(len(b), mostResults)
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return r, finding.NewFault(model.IperfResultsUnread, "text", err)
	}
	const minus = "18446744073709551615"
	var raw struct {
		HasRetransmits json.Number `json:"sender_has_retransmits"`
		Streams        []struct {
			Retransmits json.Number `json:"retransmits"`
		} `json:"streams"`
	}
	_ = json.Unmarshal(b, &raw) // they are numbers by now
	r.oldMinus = raw.HasRetransmits == minus || len(raw.Streams) > 0 && raw.Streams[0].Retransmits == minus
	if len(r.Streams) != streams {
		return r, finding.NewFault(model.IperfResultStreams, "streams", float64(len(r.Streams)),
			"asked", float64(streams))
	}
	for i, id := range streamIDs(streams) {
		if s := r.Streams[i]; s.ID != id || s.Bytes < 0 || s.Packets < 0 || !(s.Jitter >= 0) {
			return r, finding.NewFault(model.IperfResultStream, "stream", float64(i+1))
		}
	}
	return r, nil
}

// streamIDs are 1, 3, 4, 5 and so on.
func streamIDs(n int) (ids []int) {
	for i := range n {
		if i > 0 {
			i++
		}
		ids = append(ids, i+1)
	}
	return ids
}

// request opens a UDP stream. The server answers with 4 bytes that depend on its version and byte order.
var request = [4]byte{0x39, 0x38, 0x37, 0x36}

// isReply reports whether a datagram answers a request.
func isReply(b []byte) bool { return len(b) == 4 }

// oldReply is what little-endian servers up to 3.11 answer.
var oldReply = [4]byte{0xB1, 0x68, 0xDE, 0x3A}

// headerBytes is the length of the header: seconds u32, microseconds u32, sequence u32 from 1, big endian.
const headerBytes = 12

// replyTo is what a client takes for the answer to its request: big-endian clients of 3.12 to 3.16 swap both words.
func replyTo(b []byte) [4]byte {
	if [4]byte(b) == [4]byte{0x36, 0x37, 0x38, 0x39} {
		return request
	}
	return [4]byte{0x36, 0x37, 0x38, 0x39}
}

// codec is the header of the datagrams. Those of an iperf3 peer name no trial: they are told by the stream's socket.
//
// What a peer makes of the time is the jitter, for which only differences count. So in what pelt sends the seconds hold
// its magic and trial, by which the near kernel knows the flow's packets, and the microseconds hold the time. They are
// 1 s at least: then a peer whose clock reads less than these "seconds" subtracts without a borrow. The magic is more
// than any clock shows before the year 2054.
type codec struct {
	trial uint16
	wide  bool // the sequence is a u64
}

func (c codec) Put(b []byte, h engine.Header) {
	const second = 1_000_000
	_ = b[headerBytes-1]
	binary.BigEndian.PutUint32(b, engine.Magic<<16|uint32(h.Trial))
	binary.BigEndian.PutUint32(b[4:], uint32(second+h.SendNanos/1000%(1<<32-second)))
	if c.wide {
		binary.BigEndian.PutUint64(b[8:], h.Sequence+1)
	} else {
		binary.BigEndian.PutUint32(b[8:], uint32(h.Sequence+1))
	}
}

func (c codec) Parse(b []byte) (h engine.Header, ok bool) {
	if len(b) < headerBytes || c.wide && len(b) < headerBytes+4 {
		return h, false
	}
	sequence := uint64(binary.BigEndian.Uint32(b[8:]))
	if c.wide {
		sequence = binary.BigEndian.Uint64(b[8:])
	}
	if sequence == 0 {
		return h, false
	}
	nanos := uint64(binary.BigEndian.Uint32(b))*1e9 + uint64(binary.BigEndian.Uint32(b[4:]))*1000
	return engine.Header{Trial: c.trial, Sequence: sequence - 1, SendNanos: nanos}, true
}

// refusals are what a server means by an error code.
var refusals = map[int32]string{
	5: model.IperfLength, 6: model.IperfManyStreams, 20: model.IperfPayloadRefused, 21: model.IperfDSCP,
	27: model.IperfRate, 37: model.IperfDuration, 119: model.IperfClientEnded, 120: model.IperfEnded,
	121: model.IperfBusy, 141: model.IperfBuffer, 142: model.IperfLogin, 144: model.IperfStarved,
	160: model.IperfRanLong,
}

// refusal is the error that a server's code means.
func refusal(code int32) error {
	if why := refusals[code]; why != "" {
		return finding.NewFault(why)
	}
	return finding.NewFault(model.IperfRefused, "error", fmt.Sprint(code))
}

// longDocument is of a document that is empty or longer than any of its kind.
func longDocument[N int | int64](bytes, most N) error {
	return finding.NewFault(model.IperfDocument, "document_bytes", float64(bytes), "most_bytes", float64(most))
}

// event is what came over the control connection.
type event struct {
	state state
	err   error
}

// control is a control connection. A goroutine reads states until one after which something else follows.
type control struct {
	conn   *net.TCPConn
	events chan event
}

// newControl leaves it to its caller to read.
func newControl(c *net.TCPConn) *control { return &control{conn: c, events: make(chan event, 16)} }

func (k *control) read() {
	defer close(k.events)
	for {
		e := k.next()
		k.events <- e // of the few states of a test the room holds all; a server that sends more waits
		if e.err != nil || e.state == exchangeResults || e.state == testEnd {
			return
		}
	}
}

func (k *control) next() (e event) {
	var b [1]byte
	if _, err := io.ReadFull(k.conn, b[:]); err != nil {
		return event{err: closedOr(err)}
	}
	switch e.state = state(int8(b[0])); e.state {
	case accessDenied:
		e.err = errBusy
	case serverTerminate:
		e.err = refusal(120)
	case serverError:
		e.err = k.code()
	}
	return e
}

var (
	errClosed error = finding.NewFault(model.IperfClosed)
	errBusy   error = finding.NewFault(model.IperfBusy)
)

func closedOr(err error) error {
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() || errors.Is(err, net.ErrClosed) {
		return err
	}
	return errClosed
}

// code reads what follows serverError: two numbers, of which servers up to 3.19 leave the second out of some.
func (k *control) code() error {
	_ = k.conn.SetReadDeadline(time.Now().Add(2 * time.Second))
	var b [8]byte
	if n, _ := io.ReadFull(k.conn, b[:]); n < 4 {
		return finding.NewFault(model.IperfUntold)
	}
	return refusal(int32(binary.BigEndian.Uint32(b[:])))
}

// expect waits for a state. A state before the wanted one is passed over only if it is listed.
func (k *control) expect(ctx context.Context, within time.Duration, want state, before ...state) error {
	silent := finding.NewFault(model.IperfSilent, "after_s", within.Seconds())
	ctx, cancel := context.WithTimeoutCause(ctx, within, silent)
	defer cancel()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case e, open := <-k.events:
			if !open {
				return errClosed
			}
			if err := e.problem(append(before, want)...); err != nil || e.state == want {
				return err
			}
		}
	}
}

// problem says what is wrong with an event where only some states are right.
func (e event) problem(right ...state) error {
	if e.err == nil && !slices.Contains(right, e.state) {
		return finding.NewFault(model.IperfState, "state", fmt.Sprint(int(e.state)))
	}
	return e.err
}

func (k *control) send(s state) error { return k.write([]byte{byte(s)}) }

func (k *control) write(b []byte) error {
	_ = k.conn.SetWriteDeadline(time.Now().Add(patience))
	_, err := k.conn.Write(b)
	return err
}

// sendJSON writes a document behind its length.
func (k *control) sendJSON(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return k.write(append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...))
}

// readJSON reads a document. Memory grows with what comes, not with the length that is announced.
func (k *control) readJSON(most int64) ([]byte, error) {
	_ = k.conn.SetReadDeadline(time.Now().Add(patience))
	var head [4]byte
	if _, err := io.ReadFull(k.conn, head[:]); err != nil {
		return nil, closedOr(err)
	}
	n := int64(binary.BigEndian.Uint32(head[:]))
	if n == 0 || n > most {
		return nil, longDocument(n, most)
	}
	b, err := io.ReadAll(io.LimitReader(k.conn, n))
	if err == nil && int64(len(b)) < n {
		err = errClosed
	}
	return b, err
}

// close resets what is left of the connection.
func (k *control) close() error {
	err := k.conn.Close()
	for range k.events { // the reader ends, also where nobody took what it read
	}
	return err
}
