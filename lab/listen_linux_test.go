package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"pelt/internal/testenv"
)

// childServe listens at each of its addresses after a while, or fails.
func childServe() int {
	args := childArgs()
	time.Sleep(100 * time.Millisecond)
	if args[0] == "fail" {
		fmt.Fprintln(os.Stderr, "bind: no such luck")
		return 1
	}
	for _, addr := range args {
		network := "tcp"
		if strings.HasPrefix(addr, "0.0.0.0:") {
			network = "tcp4" // else Go listens at [::]
		}
		if _, err := net.Listen(network, addr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	fmt.Println("serving")
	time.Sleep(time.Hour) // without cgo, select {} alone is a deadlock to the runtime
	return 0
}

func TestProgramListens(t *testing.T) {
	testenv.Tool(t, "env", "sh")
	l := openLab(t, "direct")
	// One that listens before is not taken for another.
	if _, err := begin(t, node(t, l, "sender"), playing("serve", ":9999")).WaitListening(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		o    ProgramOptions
		want string // the address, or in the error
	}{
		{"everywhere", playing("serve", ":8080"), "[::]:8080"},
		{"IPv4", playing("serve", "0.0.0.0:8081"), "0.0.0.0:8081"},
		{"its address", playing("serve", "198.18.0.1:8082"), "198.18.0.1:8082"},
		{"after the loopback", playing("serve", "127.0.0.1:8083", ":8084"), "[::]:8084"},
		{"loopback only", playing("serve", "127.0.0.1:8085"), "listens at 127.0.0.1:8085, where no other node reaches it; it said: serving"},
		{"ends", playing("serve", "fail"), "sender ended before it listened: exit code 1; it said: bind: no such luck"},
		{"goes to the background", shell(daemons), "exit code 0; a server must stay in the foreground; it said"},
		{"never", shell("sleep 600"), "does not listen on TCP after 500ms; it said nothing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := begin(t, node(t, l, "sender"), c.o)
			var within time.Duration
			switch c.name {
			case "never":
				within = 500 * time.Millisecond
			case "loopback only": // it is to have said something by then
				within = 3 * time.Second
			}
			addr, err := p.WaitListening(t.Context(), within)
			if err != nil && !strings.Contains(err.Error(), c.want) || err == nil && addr.String() != c.want {
				t.Errorf("got %v, %v, want %s", addr, err, c.want)
			}
		})
	}
	t.Run("context", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := begin(t, node(t, l, "sender"), shell("sleep 600")).WaitListening(ctx, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}
