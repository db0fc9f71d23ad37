package udp

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"pelt/engine"
	"pelt/internal/testenv"
	"pelt/model"
)

func TestBuffersAsAsked(t *testing.T) {
	testenv.Root(t) // beyond the limit
	r := newTrial()
	r.Flow.SendBuffer, r.Flow.ReceiveBuffer = 40000, 50<<20 // beyond the usual net.core.rmem_max
	dialer, listener := r.connected(t)
	account := func(e testEnd) (r engine.Report) {
		e.t.Account(&r, engine.Sent{})
		return r
	}
	if n, err := unix.GetsockoptInt(dialer.t.sockets[0].(*linuxSocket).fd, unix.SOL_SOCKET,
		unix.SO_SNDBUF); n != 40000 {
		t.Errorf("send buffer %d B, %v", n, err)
	}
	testenv.Must(t, listener.t.OpenStreams())
	if n, _ := listener.t.sockets[0].bufferBytes(); n != 50<<20 {
		t.Errorf("receive buffer %d B", n)
	}
	if w := account(listener).Warnings; len(w) != 0 {
		t.Errorf("warnings %v", w)
	}
	in := listener.t.role.(*receiver).streams[0]
	if in.open(); in.asked != 50<<20 {
		t.Errorf("asked for %d B", in.asked)
	}
	in.granted = 425984
	if w := account(listener).Warnings; len(w) != 1 || !told(w, model.ReceiveBufferCut, 425984, 52428800) {
		t.Errorf("warnings %v, want the granted and the asked size", w)
	}
	out := dialer.t.role.(*sender).streams[0]
	if out.prepare(false); out.asked != 40000 {
		t.Errorf("asked for %d B", out.asked)
	}
	out.granted = 30000
	if w := account(dialer).Warnings; len(w) != 1 || !told(w, model.SendBufferCut, 30000, 40000) {
		t.Errorf("warnings %v, want the granted and the asked size", w)
	}
}

// Linux grants even sizes only, which is not less than was asked for.
func TestOddBuffers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		plain bool
		want  int
	}{{false, 100_000}, {true, 100_001}} {
		r := newTrial()
		r.plain, r.Flow.SendBuffer, r.Flow.ReceiveBuffer = c.plain, 50_001, 100_001
		send, receive := r.Play(t)
		if n := receive.Receive.BufferBytes; n != c.want ||
			len(send.Warnings)+len(receive.Warnings) > 0 {
			t.Errorf("portable %v: a receive buffer of %d B, want %d; warnings %v and %v", c.plain, n, c.want,
				send.Warnings, receive.Warnings)
		}
	}
}

// meek is this machine for a program that may not go beyond the limits of buffers.
type meek struct{}

func (meek) Do(f func() error) error { return testenv.WithoutRights(f) }

// A buffer is short from net.core.rmem_max on, of which the kernel accounts twice as much.
func TestShortBuffers(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("/proc/sys/net/core/rmem_max")
	if err != nil {
		t.Skipf("this namespace does not tell its limit: %v", err)
	}
	limit, err := strconv.Atoi(strings.TrimSpace(string(text)))
	testenv.Must(t, err)
	if limit > model.MaxSocketBuffer/4 {
		t.Skipf("net.core.rmem_max of %d B is beyond what can be asked for", limit)
	}
	for _, room := range []int{limit &^ 1, 2 * limit, 3 * limit &^ 1, 4 * limit, 0} {
		r := newTrial()
		r.Far.Host, r.Flow.ReceiveBuffer = meek{}, room
		if room == 0 {
			room = receiveAll
		}
		_, receive := r.Play(t)
		granted := min(room, 2*limit)
		n, told := receive.Receive.BufferBytes, told(receive.Warnings, model.ReceiveBufferCut, granted, room)
		if n != granted || told != (granted < room) {
			t.Errorf("asked for %d B: granted %d, want %d; warnings %v", room, n, granted, receive.Warnings)
		}
	}
}

func told(warnings model.Reasons, code string, granted, asked int) bool {
	return slices.ContainsFunc(warnings, func(r model.Reason) bool {
		return r.Code == code && r.Numbers["granted_bytes"] == float64(granted) &&
			r.Numbers["asked_bytes"] == float64(asked)
	})
}
