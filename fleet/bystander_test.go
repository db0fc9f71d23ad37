package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pelt/engine"
	"pelt/engine/tcp"
	"pelt/engine/udp"
	"pelt/internal/testenv"
	"pelt/model"
)

// bystander takes what comes to its ports and never gives the right answer. It
// says how many messages, and bytes over TCP, it has got.
type bystander struct {
	udp, tcp uint16

	mu       sync.Mutex
	messages []int // lengths of the datagrams
	tried    int   // connections so far
	open     int   // connections
	bytes    int64
}

func newBystander(t *testing.T, echo bool) *bystander {
	t.Helper()
	b := &bystander{}
	u, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 3)})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp4", "127.0.0.3:0")
	if err != nil {
		t.Fatal(err)
	}
	b.udp, b.tcp = uint16(u.LocalAddr().(*net.UDPAddr).Port), uint16(l.Addr().(*net.TCPAddr).Port)
	var wg sync.WaitGroup
	t.Cleanup(func() { u.Close(); l.Close(); wg.Wait() })
	wg.Go(func() {
		buf := make([]byte, 2048)
		for {
			n, from, err := u.ReadFromUDPAddrPort(buf)
			if err != nil {
				return
			}
			b.mu.Lock()
			b.messages = append(b.messages, n)
			b.mu.Unlock()
			if echo {
				u.WriteToUDPAddrPort(buf[:n], from)
			}
		}
	})
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			b.mu.Lock()
			b.tried, b.open = b.tried+1, b.open+1
			b.mu.Unlock()
			wg.Go(func() {
				defer c.Close()
				var to io.Writer = io.Discard
				if echo {
					to = c
				}
				n, _ := io.Copy(to, c)
				b.mu.Lock()
				b.open, b.bytes = b.open-1, b.bytes+n
				b.mu.Unlock()
			})
		}
	})
	return b
}

// TestBystander: whoever knows the code of a host that may call an address, and
// gives it every order there is at once, gets no more than hellos out of it.
func TestBystander(t *testing.T) {
	t.Parallel()
	for name, echo := range map[string]bool{"silent": false, "echo": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWire()
			u := udp.New(udp.Config{})
			t.Cleanup(func() { u.Close() })
			s := serve(t, w, func(c *ServeConfig) {
				c.Agent.Engines = map[string]engine.Engine{"udp": u, "tcp": tcp.New(tcp.Config{})}
				c.Agent.Calls = []netip.Prefix{netip.MustParsePrefix("127.0.0.3/32")}
			})
			l, err := dialHub(t.Context(), s.addr, []byte(testCode))
			if err != nil {
				t.Fatal(err)
			}
			defer l.close()
			by := newBystander(t, echo)
			session := l.client + "." + randomHex()
			give := func(ctx context.Context, verb string, q any) error {
				data, err := json.Marshal(q)
				if err != nil {
					t.Fatal(err)
				}
				answer, err := l.ask(ctx, orderSubject("far", verb, l.client), data)
				if err == nil {
					_, err = open(answer)
				}
				return err
			}
			order := engine.Order{Timing: model.Timing{MeasureSeconds: 5}, Role: engine.Send, Trial: 7,
				Key: make([]byte, engine.KeyBytes), CPU: -1, Peer: netip.MustParseAddr("127.0.0.3")}
			p, ports := makeOrder{sessionOrder: sessionOrder{session}, Trial: 7}, map[int]endKnown{}
			for i, f := range []model.Flow{
				{Name: "flood", Protocol: model.UDP, PayloadBytes: 64, Streams: 8},
				{Name: "bulk", Protocol: model.TCP, PayloadBytes: 1000, Streams: 8},
			} {
				f.From, f.To = "a", "b"
				order.Flow = f
				ports[2*i] = endKnown{Ports: slices.Repeat([]uint16{by.udp}, f.Streams)}
				if f.Protocol == model.TCP {
					ports[2*i] = endKnown{Ports: slices.Repeat([]uint16{by.tcp}, f.Streams)}
				}
				p.Ends = append(p.Ends, endOrder{End: 2 * i, Engine: string(f.Protocol), Peer: "x", Order: order})
			}
			do := func(ctx context.Context, step engine.Step) error {
				return give(ctx, verbDo, doOrder{sessionOrder: sessionOrder{session}, Step: step, Ends: ports})
			}
			if err := errors.Join(give(t.Context(), verbMake, p), do(t.Context(), engine.Open)); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			connected := make(chan error, 1)
			go func() {
				connected <- do(ctx, engine.Meet)
			}()
			testenv.Await(t, "the first hellos", func() bool {
				by.mu.Lock()
				defer by.mu.Unlock()
				return len(by.messages) > 0 && by.tried > 0
			})
			time.AfterFunc(1500*time.Millisecond, cancel)
			tick := time.NewTicker(300 * time.Millisecond)
			defer tick.Stop()
			for i := 0; ctx.Err() == nil; i++ {
				select {
				case <-ctx.Done():
				case <-tick.C:
					// Its answer is not judged: what the ends do then is.
					if i%2 == 0 {
						_ = do(ctx, engine.Go)
					} else {
						_ = do(ctx, engine.Ready)
					}
				}
			}
			if err := <-connected; err == nil {
				t.Error("connect: the bystander consented")
			}
			if err := give(t.Context(), verbRelease, sessionOrder{session}); err != nil &&
				!strings.Contains(err.Error(), "no such session") {
				t.Error(err)
			}
			const helloBytes, perSecond, perOther = 56, 10, 2
			// of the first stream, and of the others
			most := int(time.Since(began).Seconds()*(perSecond+7*perOther) + 2)
			testenv.Await(t, "the calls end", func() bool { by.mu.Lock(); defer by.mu.Unlock(); return by.open == 0 })
			by.mu.Lock()
			defer by.mu.Unlock()
			if len(by.messages) > most {
				t.Errorf("%d datagrams came, want at most %d", len(by.messages), most)
			}
			for _, n := range by.messages {
				if n != helloBytes {
					t.Fatalf("a datagram of %d B came, want hellos of %d B", n, helloBytes)
				}
			}
			if by.bytes == 0 || by.bytes > 100 {
				t.Errorf("%d B came over TCP, want a hello", by.bytes)
			}
			t.Logf("%d datagrams, %d B over TCP", len(by.messages), by.bytes)
		})
	}
}
