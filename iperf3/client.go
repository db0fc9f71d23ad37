package iperf3

import (
	"net/netip"
	"sync"
	"time"

	"pelt/engine"
	"pelt/engine/tcp"
	"pelt/engine/udp"
	"pelt/finding"
	"pelt/model"
)

// Client makes the ends of flows to and from one iperf3 server.
type Client struct {
	server netip.AddrPort
	device string
	udp    *udp.Engine
	tcp    *tcp.Engine

	mu   sync.Mutex
	legs map[string]*leg // of the tests under way, by the key that both ends of a flow share
}

// NewClient makes a client of a server, reached over a device if one is named. It sends nothing.
func NewClient(server netip.AddrPort, device string) *Client {
	return &Client{server: server, device: device, udp: udp.New(udp.Config{Device: device}),
		tcp: tcp.New(tcp.Config{Device: device}), legs: map[string]*leg{}}
}

// Near makes the ends at this host, of flows of a protocol.
func (c *Client) Near(p model.Protocol) engine.Engine { return maker{string(p), c.openNear} }

// Far makes ends that stand for the server.
func (c *Client) Far(p model.Protocol) engine.Engine { return maker{string(p), c.openFar} }

// test is one test of iperf3: the flows of one trial, one in each direction at most.
type test struct {
	client *Client
	legs   []*leg // up before down: in this order a server opens their streams

	meeting sync.Once
	met     chan struct{} // closed when what follows is set
	err     error
	control *control
	cookie  [cookieBytes]byte
	trip    time.Duration // to the server and back
	reply   [4]byte       // what the server answered to the first request; 0 where that was not seen

	running chan struct{} // closed when the server counts and sends
	over    chan struct{} // closed when the server has sent its results, or not
	results results

	mu   sync.Mutex
	ends int  // that are open
	told bool // the server has sent its results
}

// leg is one flow of a test. Its two ends share it.
type leg struct {
	test    *test
	order   engine.Order // of the end that stands for the server
	meeting engine.Meeting
	near    *nearEnd
	sent    []streamResult // up: of each stream, once the near end is over
	counts  *counter       // down, UDP: what came

	mu   sync.Mutex
	held func() error // down: has the server open the last stream; nil once the near end is closed
}

func (l *leg) down() bool { return l.order.Role == engine.Send }

// begin adds the flow of a far end's order to its test. The numbers of the flows of a trial follow each other, and no
// other trial's follow them.
func (c *Client) begin(o engine.Order) *leg {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := &leg{order: o}
	for _, other := range c.legs {
		if n := other.order.Trial; o.Trial == engine.NumberAfter(n, 1) || n == engine.NumberAfter(o.Trial, 1) {
			l.test = other.test
		}
	}
	if l.test == nil {
		l.test = &test{client: c, met: make(chan struct{}), running: make(chan struct{}), over: make(chan struct{})}
	}
	t := l.test
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ends++; l.down() {
		t.legs = append(t.legs, l)
	} else {
		t.legs = append([]*leg{l}, t.legs...)
	}
	c.legs[string(o.Key)] = l
	return l
}

// of finds the flow of a near end's order.
func (c *Client) of(o engine.Order) (*leg, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l := c.legs[string(o.Key)]; l != nil {
		return l, nil
	}
	return nil, finding.NewFault(model.IperfNoEnd)
}

// close is called by each end once. The last one ends the test: a server that is still in it is told.
func (l *leg) close() error {
	t := l.test
	t.client.mu.Lock()
	delete(t.client.legs, string(l.order.Key))
	t.client.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ends--; t.ends > 0 || t.control == nil {
		return nil
	}
	if !t.told {
		_ = t.control.send(clientTerminate)
	}
	return t.control.close()
}

// last is the flow whose last stream is opened when the server is to send; nil if it only receives.
func (t *test) last() *leg {
	if l := t.legs[len(t.legs)-1]; l.down() {
		return l
	}
	return nil
}

// explain says which server an error is about.
func (t *test) explain(err error) error {
	return finding.Because(err, model.IperfServerFault, "address", t.client.server)
}
