// Package metrics tells Prometheus the figures of stored runs: of each target those of its newest run. It starts no
// test.
package metrics

import (
	"bytes"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"pelt/model"
	"pelt/render"
	"pelt/store"
	"pelt/view"
)

// DefaultPort is where figures are served unless told otherwise.
const DefaultPort = 7361

// mostTargets bounds an answer: the targets that were tested last.
const mostTargets = 200

// Serve answers at an address until end is called. at has the port that the system chose for port 0.
func Serve(want netip.AddrPort, st *store.Store) (at net.Addr, end func() error, err error) {
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(want)) // without an address: both families
	if err != nil {
		return nil, nil, err
	}
	h := &http.Server{Handler: Handler(st), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10}
	served := make(chan error, 1)
	go func() { served <- h.Serve(l) }()
	return l.Addr(), func() error {
		err := h.Close()
		if e := <-served; !errors.Is(e, http.ErrServerClosed) {
			err = errors.Join(err, e)
		}
		return err
	}, nil
}

// Handler answers GET /metrics in Prometheus' text format 0.0.4.
func Handler(st *store.Store) http.Handler {
	s := &source{store: st}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		var text bytes.Buffer
		gauges, err := s.gauges()
		if err == nil {
			err = render.Prometheus(&text, gauges)
		}
		if err != nil {
			http.Error(w, "pelt: "+err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write(text.Bytes()) // who is gone needs no answer
	})
	return mux
}

// source reads stored runs, each one again only when its file has changed.
type source struct {
	store *store.Store

	mu    sync.Mutex // one scrape at a time reads the disk
	known map[string]figures
}

// figures are those of a run whose file has so many bytes.
type figures struct {
	size   int64
	state  string
	ended  bool // the run says something of its target
	gauges []view.Gauge
}

// gauges are the figures of each target's newest run.
func (s *source) gauges() ([]view.Gauge, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	runs, err := s.store.List()
	if err != nil {
		return nil, err
	}
	known, told := map[string]figures{}, map[string]bool{}
	var lists [][]view.Gauge
	for _, r := range slices.Backward(runs) {
		if told[r.Target] || r.State == store.Damaged {
			continue
		}
		f, err := s.figures(r)
		if err != nil { // it was removed, or is damaged behind its first line
			continue
		}
		known[r.ID] = f
		if !f.ended { // the run before it tells more
			continue
		}
		told[r.Target], lists = true, append(lists, f.gauges)
		if len(lists) == mostTargets {
			break
		}
	}
	s.known = known
	return view.JoinGauges(lists...), nil
}

func (s *source) figures(r store.Summary) (figures, error) {
	size, err := s.store.Size(r.ID)
	if err != nil {
		return figures{}, err
	}
	if f, ok := s.known[r.ID]; ok && f.size == size && f.state == r.State {
		return f, nil
	}
	doc, err := s.store.Load(r.ID)
	if err != nil {
		return figures{}, err
	}
	return figures{size: size, state: r.State, ended: ended(&doc, r.State), gauges: view.Gauges(&doc)}, nil
}

// ended reports whether a run has a trial that ended, or could not reach its hosts. A run that goes on, or that its
// user stopped before its first trial, says nothing yet.
func ended(doc *model.Document, state string) bool {
	if state != store.Running && len(doc.Results) > 0 || model.Reasons(doc.Warnings).Has(model.Unreached) {
		return true
	}
	return slices.ContainsFunc(doc.Results, func(r model.Result) bool { return r.State != model.Aborted })
}
