package fleet

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"pelt/internal/cpace"
	"pelt/internal/testenv"
)

// A hub that has no time for a client says nothing of the client's code: an agent must not leave for good then.
func TestHubEndsHandshake(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		last  []byte
		wrong bool
	}{{"without a word", nil, false}, {"with the word", []byte{wrong}, true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			near, far := net.Pipe()
			defer near.Close()
			go func() {
				defer far.Close()
				if err := endHandshake(far, c.last); err != nil {
					t.Error(err)
				}
			}()
			if _, _, err := greet(near, knowsCode, []byte(testCode), randomHex(), 5*time.Second); err == nil ||
				errors.Is(err, ErrWrongCode) != c.wrong {
				t.Errorf("%v; want a wrong code: %v", err, c.wrong)
			}
		})
	}
}

// A client whose connection breaks before it proves the code has told no wrong one.
func TestBrokenHandshake(t *testing.T) {
	t.Parallel()
	told := make(chan string, 1)
	h := hubAt(t, func(c *HubConfig) { c.Events = func(said error) { told <- said.Error() } })
	raw := dialGuesser(t, h)
	c := tls.Client(raw, clientTLS())
	testenv.Must(t, c.Handshake())
	run, err := cpace.Start([]byte(testCode), []byte("x"))
	testenv.Must(t, err)
	if _, err := c.Write(slices.Concat([]byte{knowsCode}, make([]byte, idBytes), run.Share)); err != nil {
		t.Fatal(err)
	}
	raw.Close()
	if got, want := testenv.Receive(t, "what is said of it",
		told), "a connection from 127.0.0.9 ended before it proved the code"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Who does not end a handshake is given up, and earlier who does not begin it.
func TestHandshakeTime(t *testing.T) {
	for _, c := range []struct {
		says time.Duration // when its first byte comes
		ends time.Duration
	}{{time.Hour, 3 * time.Second}, {4 * time.Second, 3 * time.Second}, {2 * time.Second, 17 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			own, err := serverTLS()
			testenv.Must(t, err)
			d := &admission{tls: own}
			d.room.L = &d.mu
			near, far := net.Pipe()
			defer near.Close()
			late := time.AfterFunc(c.says, func() { _, _ = near.Write([]byte{22}) }) // of a TLS handshake
			defer late.Stop()
			begun := time.Now()
			d.receive(&connection{conn: far})
			if took := time.Since(begun); took != c.ends {
				t.Errorf("a first byte after %v: it had %v, want %v", c.says, took, c.ends)
			}
		})
	}
}

// endHandshake goes through a handshake until the client's tag, and says only so much then.
func endHandshake(raw net.Conn, last []byte) error {
	config, err := serverTLS()
	if err != nil {
		return err
	}
	conn := tls.Server(raw, config)
	if err = conn.Handshake(); err != nil {
		return err
	}
	channel, err := channelOf(conn)
	if err != nil {
		return err
	}
	run, err := cpace.Start([]byte(testCode), channel)
	if err != nil {
		return err
	}
	if _, err = io.ReadFull(conn, make([]byte, 1+idBytes+cpace.ShareBytes)); err != nil {
		return err
	}
	if _, err = conn.Write(run.Share); err != nil {
		return err
	}
	if _, err = io.ReadFull(conn, make([]byte, cpace.TagBytes)); err != nil || last == nil {
		return err
	}
	_, err = conn.Write(last)
	return err
}

// Sessions that beat at the same moment have room for it, and one alone does not keep old beats.
func TestOutboxRoom(t *testing.T) {
	for _, c := range []struct{ sessions, posts, dropped int }{
		{0, outboxSize + 1, 1},
		{1, outboxSize + 1, 1},
		{10, 10*outboxSize + 3, 3},
		{500, outboxMost + 5, 5},
	} {
		l := &link{outbox: make(chan *nats.Msg, outboxMost)}
		l.sessions.Store(int32(c.sessions))
		for range c.posts {
			l.post("pelt.session", beat{})
		}
		if n := int(l.dropped.Load()); n != c.dropped {
			t.Errorf("%d sessions, %d beats: %d were dropped, want %d", c.sessions, c.posts, n, c.dropped)
		}
	}
}
