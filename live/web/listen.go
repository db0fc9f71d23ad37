package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	"pelt/words"
)

// DefaultPort is where pelt web listens unless told otherwise.
const DefaultPort = 7360

// mostPorts is how many ports are tried, the wanted one first.
const mostPorts = 20

// Serve serves at a loopback address until ctx ends. It says where, how to get in, and what is unusual.
func Serve(ctx context.Context, at netip.AddrPort, o Options, say func(string)) error {
	l, err := listen(at, o.Language, say)
	if err != nil {
		return err
	}
	s := New(o)
	defer s.Close()
	stopped, stop := context.WithCancel(ctx)
	defer stop()
	h := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second,
		WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
		BaseContext: func(net.Listener) context.Context { return stopped }}
	say(fmt.Sprintf("http://%v%s?token=%s", l.Addr(), s.home(), s.Token))
	failed := make(chan error, 1)
	go func() { failed <- h.Serve(l) }()
	select {
	case err = <-failed:
		return words.Errorf("serve pages: %w", err)
	case <-ctx.Done():
	}
	stop()
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if h.Shutdown(end) != nil {
		return h.Close() // a request that takes longer is cut
	}
	return nil
}

// home is the path of the page to open.
func (s *Server) home() string {
	if s.o.Watch == nil {
		return "/"
	}
	return "/test/" + s.o.Watch.ID
}

// listen takes the first free port from the wanted one on.
func listen(at netip.AddrPort, in words.Language, say func(string)) (net.Listener, error) {
	var first error
	for port := int(at.Port()); port < int(at.Port())+mostPorts && port < 1<<16; port++ {
		l, err := net.Listen("tcp", net.JoinHostPort(at.Addr().String(), strconv.Itoa(port)))
		if err == nil {
			if port != int(at.Port()) {
				say(in.Sayf("another program has port %d; this is on %d", at.Port(), port))
			}
			return l, nil
		}
		if first == nil {
			first = err
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	return nil, words.Errorf("serve pages: %w", first)
}
