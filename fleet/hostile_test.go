package fleet

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"pelt/engine"
	"pelt/internal/testenv"
	"pelt/model"
)

// allocated is how many bytes f takes in all, freed ones too.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestHeavyMessages: a text takes no more memory than some times its length, whatever its lists would be.
func TestHeavyMessages(t *testing.T) {
	const length = 256 << 10
	orders := func(text string) error { _, err := decode[makeOrder]([]byte(text)); return err }
	observe := func(text string) error { _, err := decode[doOrder]([]byte(text)); return err }
	report := func(text string) error { _, err := decode[sessionReport]([]byte(text)); return err }
	for _, c := range []struct {
		begin, element, end string
		read                func(string) error
		want                error
	}{
		{`{"ends":[`, `{}`, `]}`, orders, errHeavy},
		{`{"ENDS":[`, `null`, `]}`, orders, errHeavy},
		{`{"\u0065nds":[`, `0`, `]}`, orders, errShape},
		{`{"ends":[`, `[]`, `]}`, orders, errShape},
		{`{"ends":{"a":[`, `{}`, `]}}`, orders, errShape},
		{`{"flows":[`, `{}`, `]}`, observe, errHeavy},
		{`{"load":{"Series":[`, `{}`, `]}}`, report, errHeavy},
		{`{"observed":{"drops":{"sites":[`, `null`, `]}}}`, report, errHeavy},
		{`{"ends":{"1":{"send":{"tcp":{"per_stream":[`, `{}`, `]}}}}}`, report, errHeavy},
		{`{"load":{"Series":[{"values":[`, `0`, `]}]}}`, report, nil},
		{`{"ends":{"1":{"warnings":[`, `{}`, `]}}}`, report, errHeavy},
		{`{"ends":{"1":{"send":{"streams":[`, `123`, `]}}}}`, report, nil},
	} {
		text := c.begin + strings.Repeat(c.element+",", length/(len(c.element)+1)) + c.element + c.end
		var err error
		took := allocated(func() { err = c.read(text) })
		if took > 80*length || c.want == nil && err != nil || c.want != nil &&
			(err == nil || err.Error() != c.want.Error()) {
			t.Errorf("%s%s,... of %d B took %d B: %v, want %v", c.begin, c.element, len(text), took, err, c.want)
		}
	}
}

// TestFullMessages: the largest that are meant are let through.
func TestFullMessages(t *testing.T) {
	t.Parallel()
	observe := doOrder{sessionOrder: sessionOrder{aSession}, Ends: map[int]engine.Known{}}
	report := sessionReport{Ends: map[int]engine.Report{},
		Observed: &model.Observation{Counters: make([]model.Counter, 16384)}}
	answer := doAnswer{Ends: map[int]endLearned{}}
	for i := range maxEnds {
		tuples := make([]model.Tuple, 60)
		observe.Flows = append(observe.Flows, engine.WatchedFlow{Name: "f", Tuples: tuples})
		observe.Ends[i] = engine.Known{Sent: engine.Sent{Streams: make([]uint64, 60)}}
		answer.Ends[i] = endLearned{Met: &meetingAnswer{Ports: tuples, Sent: make([]uint64, 60),
			Heard: make([]uint64, 60)}}
		report.Ends[i] = engine.Report{Send: &engine.SendReport{Streams: make([]uint64, model.MaxStreams),
			Refused: make([]model.Marks, model.MaxStreams),
			TCP:     &model.TCPFacts{PerStream: make([]model.TCPStream, model.MaxStreams)}}}
	}
	for _, err := range []error{again(observe), again(report), again(answer)} {
		if err != nil {
			t.Error(err)
		}
	}
}

func again[T any](v T) error {
	data, err := json.Marshal(v)
	if err == nil {
		_, err = decode[T](data)
	}
	if err != nil {
		return fmt.Errorf("%T of %d B: %w", v, len(data), err)
	}
	return nil
}

// TestBusyForOthers: one client's orders leave room for those of another, and one host's for another's.
func TestBusyForOthers(t *testing.T) {
	a := quietAgent(t, newWire(), Limits{})
	order := func(client, host string, want bool) {
		t.Helper()
		if a.begin(client, host) != want {
			t.Errorf("an order of %s at %s: want %v beside %v", client, host, want, a.busyOf)
		}
	}
	for range maxBusyOfClient {
		order("a", "A", true)
		order("b", "A", true)
	}
	order("c", "A", false)
	order("d", "B", true)
	a.done("a", "A")
	order("b", "A", false)
	order("c", "A", true)
	for client, n := range map[string]int{"a": maxBusyOfClient - 1, "b": maxBusyOfClient, "c": 1} {
		for range n {
			a.done(client, "A")
		}
	}
	if a.done("d", "B"); len(a.busyOf) > 0 {
		t.Errorf("%v are left", a.busyOf)
	}
}

// TestRefusalsAreTold: orders of one moment are one short line for whoever serves.
func TestRefusalsAreTold(t *testing.T) {
	a := quietAgent(t, newWire(), Limits{})
	var told []string
	a.cfg.events = func(_ string, said error) { told = append(told, said.Error()) }
	p := goodOrder()
	p.Ends[0].Engine = strings.Repeat("ä", 100_000)
	for range 3 {
		if err := orderOf(t, a, verbMake, p); err == nil {
			t.Error("no error")
		}
		a.refusals = time.Now().Add(time.Hour) // so that no second passes
	}
	if len(told) != 1 || len(told[0]) > 300 || !strings.HasPrefix(told[0], `refused: engine "ää`) {
		t.Errorf("%d lines: %.400q", len(told), told)
	}
	a.refusals = time.Now().Add(-time.Second)
	if _ = orderOf(t, a, verbMake, p); len(told) != 2 {
		t.Errorf("%d lines after a second, want 2", len(told))
	}
	p = goodOrder()
	for i := range 20 {
		p.Ends = append(p.Ends, p.Ends[0])
		p.Ends[i+1].End += i + 1
	}
	if err := orderOf(t, a, verbMake, p); err != nil || len(told) != 3 || len(told[2]) > 300 {
		t.Errorf("%v; %.400q", err, told)
	}
}

// TestForeignNATS: what is no NATS of a hub, or longer than its messages, ends the connection.
func TestForeignNATS(t *testing.T) {
	message := strings.Repeat("MSG x 1 5000000\r\n", 100)
	good := fmt.Sprintf("INFO {}\r\nPONG\r\n+OK\r\nMSG x 1 %d\r\n%s\r\nHMSG x 1 y 12 12\r\nNATS/1.0\r\n\r\n\r\nmsg x 1 0\r\n\r\nPING\r\n", len(message), message)
	for text, want := range map[string]bool{
		good:                                     true,
		good + "MSG x 1 1048577\r\n":             false,
		good + "MSG x 1 9223372036854775807\r\n": false,
		good + "hMSG x 1 12 18446744073709551621\r\n": false,
		"MSG x 1 -5\r\n":                                 false,
		"MSG\r\n":                                        false,
		"MSG x 1 99999999999\r5\r\n":                     false,
		"MSG x 1 5\n":                                    false,
		"-ERR \nMSG x 1 5\r\n":                           false,
		"MSG x 1 1\r\nab\r\n":                            false,
		"MSG x 1 1\r\na\rMSG x 1 5\r\n":                  false,
		"MSG x 1 1\r\na\n":                               false,
		"INFO " + strings.Repeat("x", maxOperation):      false,
		strings.Repeat("PING\r\n", maxOperation) + "MSG": true,
	} {
		if c := (&incoming{}); c.follow([]byte(text)) != want {
			t.Errorf("%.60q... at once: want %v", text, want)
		}
		c, ok := &incoming{}, true
		for i := range len(text) {
			ok = ok && c.follow([]byte(text[i:i+1]))
		}
		if ok != want {
			t.Errorf("%.60q... byte by byte: want %v", text, want)
		}
	}
}

// TestHostileServer: a server's message of any length ends the client's connection, not its process.
func TestHostileServer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testenv.Must(t, err)
	defer l.Close()
	config, err := serverTLS()
	testenv.Must(t, err)
	h, err := StartHub(HubConfig{DontListen: true})
	testenv.Must(t, err)
	h.admission.code = []byte(testCode)
	defer h.Close()
	go func() {
		raw, err := l.Accept()
		if err != nil {
			return
		}
		defer raw.Close()
		c := tls.Server(raw, config)
		if _, _, err := h.admission.greet(c, netip.MustParseAddr("127.0.0.1")); err != nil {
			return
		}
		fmt.Fprint(c,
			"INFO {\"server_id\":\"x\",\"version\":\"2.15.2\",\"proto\":1,\"headers\":true,\"max_payload\":1048576}\r\n")
		for in := bufio.NewScanner(c); in.Scan(); {
			if in.Text() == "PING" {
				fmt.Fprint(c, "PONG\r\nMSG x 1 9223372036854775807\r\nabc")
			}
		}
	}()
	k, err := dialHub(t.Context(), l.Addr().(*net.TCPAddr).AddrPort(), []byte(testCode))
	if err != nil { // all of it came at once
		if !errors.Is(err, errForeign) {
			t.Error(err)
		}
		return
	}
	defer k.close()
	testenv.Receive(t, "the end of the connection", k.lost)
}

// TestLongTexts: what another host says of itself, or of an error, is cut before it is shown.
func TestLongTexts(t *testing.T) {
	long := strings.Repeat("ä", 5000)
	if _, err := open(encodeReply(nil, errors.New(long))); err == nil || len(err.Error()) > 3*255 {
		t.Errorf("a fault of %d B", len(err.Error()))
	}
	hello, err := json.Marshal(AgentInfo{ID: "a", Version: long, Protocol: protocolVersion, Engines: []string{long},
		Host: model.Host{Kernel: long}})
	testenv.Must(t, err)
	info, err := (&Controller{}).decodeHello(hello, "")
	if err != nil || max(len(info.Version), len(info.Engines[0]), len(info.Host.Kernel)) > 255 {
		t.Errorf("%v, %.300s", err, info.Version)
	}
	other := fmt.Appendf(nil, `{"version":%q,"protocol":1}`, long)
	if _, err := (&Controller{}).decodeHello(other, ""); !Refuses(err) || len(err.Error()) > 3*255 {
		t.Errorf("another version is told in %d B", len(err.Error()))
	}
}

// TestDeepMessage: reasons that follow from one another end, so that no stack grows with a message.
func TestDeepMessage(t *testing.T) {
	const head = `{"why":[`
	for levels, want := range map[int]error{8: nil, 100_000: errDeep} {
		text := head + strings.Repeat(`{"of":[`, levels) + strings.Repeat("]}", levels) + "]}"
		padded := text + strings.Repeat(" ", max(0, lightBytes+1-len(text), 136*levels/weightRatio-len(text)))
		if err := weigh([]byte(padded), reflect.TypeFor[engine.Report]()); !errors.Is(err, want) {
			t.Errorf("%d levels: %v, want %v", levels, err, want)
		}
	}
}
