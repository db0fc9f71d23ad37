package run

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"pelt/fleet"
	"pelt/internal/testenv"
)

// TestIperfClientsTogether: streams and memory are of all clients, whatever hosts they come from.
func TestIperfClientsTogether(t *testing.T) {
	t.Parallel()
	const params, createStreams, failed, tooMany = 9, 10, -2, 6
	type client struct {
		from    string
		streams int
		refused bool
	}
	for name, c := range map[string]struct {
		limits  fleet.Limits
		clients []client
	}{
		"streams": {fleet.Limits{MaxSessions: 9, MaxStreams: 3},
			[]client{{"127.0.0.2", 2, false}, {"127.0.0.3", 2, true}, {"127.0.0.3", 1, false}}},
		"memory": {fleet.Limits{MaxSessions: 9, MemoryBytes: 30e6},
			[]client{{"127.0.0.2", 20, false}, {"127.0.0.3", 40, true}, {"127.0.0.3", 1, false}}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := serveIperf(ServeOptions{Iperf: &IperfOptions{}, EndOptions: EndOptions{Limits: c.limits,
				Listen: netip.MustParseAddr("127.0.0.1"), Events: func(said error) { t.Log(said) }}}, nil)
			testenv.Must(t, err)
			ctx, stop := context.WithCancel(t.Context())
			var serving sync.WaitGroup
			serving.Go(func() { s.server.Serve(ctx) })
			defer serving.Wait()
			defer stop()
			for _, one := range c.clients {
				d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(one.from)}}
				conn, err := d.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.server.Port()))
				testenv.Must(t, err)
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(testenv.Patience))
				_, _ = conn.Write(make([]byte, 37)) // errors show when the answer is read
				if state := answer(t, conn, 1); state[0] != params {
					t.Fatalf("state %d, want %d", state[0], params)
				}
				text := fmt.Sprintf(`{"udp":true,"time":1,"parallel":%d,"len":64,"bandwidth":1000000}`, one.streams)
				_, _ = conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...))
				state := int8(answer(t, conn, 1)[0])
				switch {
				case !one.refused && state != createStreams:
					t.Errorf("%+v: state %d, want %d", one, state, createStreams)
				case one.refused && state != failed:
					t.Errorf("%+v: state %d, want %d", one, state, failed)
				case one.refused:
					if code := binary.BigEndian.Uint32(answer(t, conn, 4)); code != tooMany {
						t.Errorf("%+v: refused with code %d, want %d", one, code, tooMany)
					}
				}
			}
		})
	}
}

// answer reads so many bytes.
func answer(t *testing.T, from io.Reader, n int) []byte {
	t.Helper()
	b := make([]byte, n)
	if _, err := io.ReadFull(from, b); err != nil {
		t.Fatal(err)
	}
	return b
}
