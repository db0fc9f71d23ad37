package fleet

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"pelt/model"
	"pelt/words"
)

// HubConfig says where a hub listens and whom it lets in.
type HubConfig struct {
	DontListen bool           // connections from this process only; all below is ignored
	Listen     netip.AddrPort // an invalid address means all of the host's; port 0 means any free one
	Code       string         // what clients must know
	Joins      bool           // let agents of other hosts join, see [Join]
	// Events, if set, is told of clients that connect or guess, from any goroutine.
	Events func(said error)
}

const (
	maxPayload     = 1 << 20 // bytes of one message; longer reports travel in parts
	maxConnections = 1024    // about 160 KiB of memory each, measured with 200 agents
	// An agent has one for each session and a few more; no subject has more names.
	maxSubscriptions = maxSessions + 8
	maxSubTokens     = 5
	// A flood may starve the control connection for a while without an end of
	// the trial, so NATS itself is patient; sessions have their own 3 s.
	pingEvery     = 30 * time.Second
	pingsOut      = 3
	writeDeadline = 30 * time.Second
)

// Hub is a NATS server inside this process. Its methods may be called concurrently.
type Hub struct {
	server    *server.Server
	admission *admission
	addr      netip.AddrPort
	close     func()

	mu     sync.Mutex
	agents []*Agent
}

// StartHub starts a hub; the caller closes it. Nothing from outside the process reaches it without the code.
func StartHub(cfg HubConfig) (*Hub, error) {
	h := &Hub{admission: &admission{
		guard: &guard{sources: map[netip.Prefix]*allowance{}}, events: cfg.Events, joins: cfg.Joins,
		work: make(chan struct{}, 2), secrets: []byte(randomHex()), tokens: map[string]string{},
		waiting: map[*connection]bool{}, clients: map[string]*connection{},
	}}
	h.admission.room.L = &h.admission.mu
	if h.admission.events == nil {
		h.admission.events = func(error) {}
	}
	var err error
	if !cfg.DontListen {
		if h.admission.code, err = tidyCode(cfg.Code); err != nil {
			return nil, err
		}
	}
	h.server, err = server.NewServer(&server.Options{
		ServerName: "pelt", DontListen: true, NoSigs: true, NoLog: true, NoSystemAccount: true,
		CustomClientAuthentication: h.admission,
		MaxPayload:                 maxPayload, MaxControlLine: 1024, MaxPending: 8 << 20, MaxConn: 2 * maxConnections,
		MaxSubs: maxSubscriptions, MaxSubTokens: maxSubTokens,
		AuthTimeout:  (2 * greetTimeout).Seconds(), // who comes here is admitted, perhaps over a path that loses much
		PingInterval: pingEvery, MaxPingsOut: pingsOut, DisableShortFirstPing: true,
		WriteDeadline: writeDeadline, MaxClosedClients: 16, NoFastProducerStall: true,
	})
	if err != nil {
		return nil, fmt.Errorf("starting the hub: %w", err)
	}
	h.admission.server = h.server
	h.close = sync.OnceFunc(func() {
		h.admission.refuse()
		for end := time.Now().Add(flushTime); h.holds() && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		h.server.Shutdown()
		h.admission.close()
		h.server.WaitForShutdown()
	})
	go h.server.Start()
	if !h.server.ReadyForConnections(10 * time.Second) {
		h.close()
		return nil, errors.New("starting the hub: not ready within 10 s")
	}
	if cfg.DontListen {
		return h, nil
	}
	if h.admission.tls, err = serverTLS(); err == nil {
		h.admission.listener, err = listen(cfg.Listen)
	}
	if err != nil {
		h.close()
		return nil, err
	}
	h.addr = h.admission.listener.Addr().(*net.TCPAddr).AddrPort()
	h.admission.live.Go(h.admission.serve)
	return h, nil
}

func listen(want netip.AddrPort) (net.Listener, error) {
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(want))
	switch {
	case isErrno(err, syscall.EADDRINUSE, 10048):
		return nil, words.Errorf("port %d is in use: stop what listens there (another pelt serve?) "+
			"or choose another with --port", want.Port())
	case err != nil:
		return nil, cmp.Or(MayNotListen(want, err), fmt.Errorf("listening for clients: %w", err))
	}
	return l, nil
}

// MayNotListen says why this process may not listen at an address, and what to do; nil of another error.
func MayNotListen(at netip.AddrPort, err error) error {
	switch {
	case isErrno(err, syscall.EACCES, 10013):
		return words.Errorf("port %d needs more rights: choose one above 1023", at.Port())
	case isErrno(err, syscall.EADDRNOTAVAIL, 10049):
		return words.Errorf("address %v is none of this host's", at.Addr())
	}
	return nil
}

// Addr is where the hub listens, with the real port; invalid if it does not.
func (h *Hub) Addr() netip.AddrPort { return h.addr }

// Close ends every agent that joined, then the server. It may be called more than once.
func (h *Hub) Close() error {
	h.mu.Lock()
	agents := h.agents
	h.agents = nil
	h.mu.Unlock()
	for _, a := range agents {
		a.shutdown(model.Reason{Code: model.HubClosed})
	}
	h.close()
	return nil
}

// holds reports whether messages wait to be written to somebody: a server that is shut down drops them.
func (h *Hub) holds() bool {
	all, err := h.server.Connz(nil)
	return err == nil && slices.ContainsFunc(all.Conns, func(c *server.ConnInfo) bool { return c.Pending > 0 })
}

// Join makes an agent on an in-process connection. The hub closes it.
func (h *Hub) Join(cfg AgentConfig) (*Agent, error) {
	a, err := newAgent(cfg)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	l, err := h.connect()
	if err != nil {
		return nil, err
	}
	if err := a.serve(l); err != nil {
		l.close()
		return nil, err
	}
	h.agents = append(h.agents, a)
	return a, nil
}

// joined lists the agents of this process.
func (h *Hub) joined() []*Agent {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.agents)
}

// connect makes a connection that does not leave the process.
func (h *Hub) connect() (*link, error) {
	l := newLink()
	nc, err := nats.Connect("", append(l.options(), nats.NoReconnect(), nats.InProcessServer(h.server),
		nats.Token(h.admission.ownToken()))...)
	if err != nil {
		return nil, natsError(err)
	}
	l.use(nc)
	return l, nil
}

// clientOf tells where the client of a session is connected from; invalid if it is not.
func (h *Hub) clientOf(session string) netip.Addr {
	client, _, _ := strings.Cut(session, ".")
	return h.admission.addressOf(client)
}

// randomHex is a name nobody can guess: 128 bits.
func randomHex() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails since Go 1.24: it ends the process instead
	return hex.EncodeToString(b[:])
}
