package foreign

import (
	"math"
	"net"
	"strconv"
	"strings"
	"time"

	"pelt/model"
	"pelt/unit"
	"pelt/words"
)

// iperfTest is one test as iperf3 -J writes it, or --json-stream in lines. What a version does not write is nil.
type iperfTest struct {
	start     iperfStart
	intervals []iperfInterval
	end       iperfEnd
	fault     string // iperf3's own words
	ended     bool   // it has an end
}

type iperfStart struct {
	Version    string `json:"version"`
	SystemInfo string `json:"system_info"`
	Timestamp  struct {
		Seconds *float64 `json:"timesecs"`
	} `json:"timestamp"`
	Connected []struct {
		LocalHost  string `json:"local_host"`
		RemoteHost string `json:"remote_host"`
	} `json:"connected"`
	ConnectingTo struct {
		Host string   `json:"host"`
		Port *float64 `json:"port"`
	} `json:"connecting_to"`
	Accepted *struct { // of a server's file
		Host string `json:"host"`
	} `json:"accepted_connection"`
	TargetBitrate *float64 `json:"target_bitrate"`
	Test          struct {
		Protocol      string   `json:"protocol"`
		Streams       *float64 `json:"num_streams"`
		Block         *float64 `json:"blksize"`
		Reverse       *float64 `json:"reverse"`
		TargetBitrate *float64 `json:"target_bitrate"`
	} `json:"test_start"`
}

// iperfSum is the figures of one direction, or of one stream: over the test, or in an interval.
type iperfSum struct {
	Start       *float64 `json:"start"`
	End         *float64 `json:"end"`
	Seconds     *float64 `json:"seconds"`
	Bytes       *float64 `json:"bytes"`
	Bits        *float64 `json:"bits_per_second"`
	JitterMS    *float64 `json:"jitter_ms"`
	Lost        *float64 `json:"lost_packets"`
	Packets     *float64 `json:"packets"`
	OutOfOrder  *float64 `json:"out_of_order"`
	Retransmits *float64 `json:"retransmits"`
	RTT         *float64 `json:"rtt"` // µs
	Omitted     bool     `json:"omitted"`
	Sender      *bool    `json:"sender"`
}

type iperfInterval struct {
	Streams []iperfSum `json:"streams"`
	Sum     *iperfSum  `json:"sum"`
	Back    *iperfSum  `json:"sum_bidir_reverse"`
}

type iperfEnd struct {
	Streams []struct {
		UDP *iperfSum `json:"udp"`
	} `json:"streams"`
	Sum          *iperfSum `json:"sum"` // of UDP; old versions have no other
	Sent         *iperfSum `json:"sum_sent"`
	Received     *iperfSum `json:"sum_received"`
	BackSent     *iperfSum `json:"sum_sent_bidir_reverse"`
	BackReceived *iperfSum `json:"sum_received_bidir_reverse"`
	Control      string    `json:"sender_tcp_congestion"`
}

// readIperf3 reads the tests of a file, each of which becomes a trial.
func readIperf3(r *reader) (*model.Document, error) {
	var tests []*iperfTest
	var open *iperfTest // that is read line by line
	var err error
	for !cut(err) && r.more() {
		var t *iperfTest
		var event string
		if t, event, err = r.iperfObject(open); err != nil && !cut(err) {
			return nil, r.wrong(err)
		}
		if t == open || t.empty() {
			continue
		}
		if tests, open = append(tests, t), nil; event != "" {
			open = t
		}
		if len(tests) > mostTests {
			return nil, r.wrong(words.Errorf("holds more than %d tests", mostTests))
		}
	}
	d := document(Iperf3, "")
	for _, t := range tests {
		t.into(d)
	}
	switch {
	case len(tests) == 0 && cut(err):
		return nil, r.wrong(err)
	case len(tests) == 0:
		return nil, r.wrong(words.Errorf("holds no test of %s", Iperf3))
	}
	return d, nil
}

// iperfObject reads one JSON value: a whole test, or an event, which is added to the test that is read line by line.
func (r *reader) iperfObject(streamed *iperfTest) (t *iperfTest, event string, err error) {
	t = &iperfTest{}
	err = r.object(func(key string) error {
		switch key {
		case "start", "end", "error":
			return r.event(t, key)
		case "intervals":
			return r.list(func() error { return r.event(t, "interval") })
		case "event":
			return r.decode(&event)
		case "data":
			if event != "start" && streamed != nil {
				t = streamed
			}
			return r.event(t, event)
		}
		return r.skip()
	})
	return t, event, err
}

// event reads what a test holds of one kind.
func (r *reader) event(t *iperfTest, event string) error {
	switch event {
	case "start":
		return r.decode(&t.start)
	case "interval":
		var one iperfInterval
		err := r.decode(&one)
		if err == nil {
			t.intervals = append(t.intervals, one)
		}
		return err
	case "end":
		err := r.decode(&t.end)
		t.ended = err == nil
		return err
	case "error":
		return r.decode(&t.fault)
	}
	return r.skip()
}

func (t *iperfTest) empty() bool {
	return t.start.Version == "" && len(t.intervals) == 0 && t.fault == "" && t.end.Sum == nil && t.end.Sent == nil &&
		t.end.Received == nil
}

// into adds the test to a document as a trial.
func (t *iperfTest) into(d *model.Document) {
	s := t.start
	if len(d.Results) == 0 {
		d.Tool.Version = clip(strings.TrimPrefix(s.Version, "iperf "))
		t.hosts(d)
	}
	trial := model.Result{State: model.Valid, Engine: Iperf3, Cell: model.Cell{}}
	if v, ok := known(s.Timestamp.Seconds); ok && v < maxUnix {
		trial.Started = time.Unix(int64(v), 0).UTC()
	}
	if d.Started.IsZero() {
		d.Started = trial.Started
	}
	switch {
	case t.fault != "":
		trial.State = model.Aborted
		text := clip(strings.TrimPrefix(t.fault, "error - "))
		trial.Why = model.Reasons{{Code: model.ToolStopped, Name: Iperf3, Text: text}}
	case !t.ended:
		trial.State = model.Aborted
		trial.Why = model.Reasons{{Code: model.FileCut, Name: Iperf3}}
	}
	t.settings(trial.Cell)
	reverse, _ := known(s.Test.Reverse)
	both := t.end.BackSent != nil || t.end.BackReceived != nil
	for _, one := range t.intervals {
		both = both || one.Back != nil
	}
	e, name, direction := t.end, "up", "up"
	switch {
	case both:
		direction = "both"
	case reverse > 0:
		name, direction = "down", "down"
	}
	trial.Cell["direction"] = model.Word(direction)
	t.flow(&trial, name, e.Sent, e.Received, func(i iperfInterval) *iperfSum { return i.Sum })
	if both {
		t.flow(&trial, "down", e.BackSent, e.BackReceived, func(i iperfInterval) *iperfSum { return i.Back })
	}
	add(d, trial)
}

// maxUnix is where years have five digits, which RFC 3339 has not.
const maxUnix = 253402300800

// hosts takes from the first test who took part.
func (t *iperfTest) hosts(d *model.Document) {
	s := t.start
	var local, remote string
	if len(s.Connected) > 0 {
		local, remote = clip(s.Connected[0].LocalHost), clip(s.Connected[0].RemoteHost)
	}
	near, far := model.Sender, model.Receiver // the client sends but for -R; it is where the test was started
	if s.Accepted != nil {
		near, far = far, near
		d.Plan.Target = local
	} else if d.Plan.Target = remote; s.ConnectingTo.Host != "" {
		d.Plan.Target = clip(s.ConnectingTo.Host)
	}
	if port, ok := known(s.ConnectingTo.Port); ok && port != iperfPort && d.Plan.Target != "" {
		d.Plan.Target = net.JoinHostPort(d.Plan.Target, strconv.Itoa(int(min(port, math.MaxUint16))))
	}
	if local != "" {
		d.Host = append(d.Host, model.Host{Node: near, Address: local, Kernel: clip(s.SystemInfo)})
	}
	if remote != "" {
		d.Host = append(d.Host, model.Host{Node: far, Address: remote})
	}
}

const iperfPort = 5201

// settings are what two tests must share to be repeats of each other.
func (t *iperfTest) settings(cell model.Cell) {
	s := t.start.Test
	if p := t.protocol(); p != "" {
		cell["protocol"] = model.Word(string(p))
	}
	if n, ok := count(s.Block); ok && n > 0 {
		cell["payload_bytes"] = model.Number(float64(n))
	}
	streams, ok := count(s.Streams)
	if ok && streams > 0 {
		cell["streams"] = model.Number(float64(streams))
	}
	target, ok := count(s.TargetBitrate)
	if !ok {
		target, ok = count(t.start.TargetBitrate)
	}
	if ok && target > 0 && target < mostBits {
		// iperf3's rate is of each stream, pelt's of all.
		if rate, err := unit.ParseRate(strconv.FormatUint(target*max(min(streams, 1000), 1), 10) + "bit"); err == nil {
			cell["rate_pps"] = model.Word(rate.String())
		}
	} else if ok && target == 0 {
		cell["rate_pps"] = model.Word("max")
	}
	if t.end.Control != "" && t.protocol() == model.TCP {
		cell["control"] = model.Word(clip(t.end.Control))
	}
}

// mostBits bounds an asked rate that is taken from a file, in bit/s.
const mostBits = 1e13

func (t *iperfTest) protocol() model.Protocol {
	switch p := model.Protocol(strings.ToLower(t.start.Test.Protocol)); p {
	case model.UDP, model.TCP:
		return p
	}
	return ""
}
