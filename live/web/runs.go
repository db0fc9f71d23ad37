package web

import (
	"errors"
	"html/template"
	"net/http"
	"slices"
	"sync"
	"time"

	"pelt/model"
	"pelt/render"
	"pelt/run"
	"pelt/store"
	"pelt/view"
)

// runs is what pages know of the stored runs.
type runs struct {
	store *store.Store

	mu   sync.Mutex
	list []store.Summary // newest first
	read time.Time
}

// fresh is how long a list of runs is taken for true.
const fresh = time.Second

func (r *runs) all() ([]store.Summary, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.read) > fresh {
		list, err := r.store.List()
		if err != nil {
			return nil, err
		}
		slices.Reverse(list)
		r.list, r.read = list, time.Now()
	}
	return r.list, nil
}

func (r *runs) close() {}

func (s *Server) routeRuns(mux *http.ServeMux) {
	mux.HandleFunc("GET /{$}", s.listRuns)
	mux.HandleFunc("GET /run/{id}", s.withRun(s.showRun))
}

type listed struct {
	store.Summary
	Columns  []string
	Headline string
}

func (s *Server) listRuns(w http.ResponseWriter, r *http.Request) {
	all, err := s.runs.all()
	if err != nil {
		s.fail(w, http.StatusInternalServerError, err.Error())
		return
	}
	var rows []listed
	for _, sum := range all[:min(len(all), 100)] {
		rows = append(rows, listed{sum, run.Columns(sum), run.Headline(sum)})
	}
	s.show(w, frame{Title: "Runs", Here: "/", Body: part("runs.html", rows), Scripts: []string{"runs.js"}})
}

// withRun loads the run that a path names.
func (s *Server) withRun(next func(http.ResponseWriter, *http.Request, *model.Document)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		doc, err := s.load(r.PathValue("id"))
		switch {
		case errors.Is(err, store.ErrNotFound):
			s.fail(w, http.StatusNotFound, err.Error())
		case err != nil:
			s.fail(w, http.StatusInternalServerError, err.Error())
		default:
			next(w, r, &doc)
		}
	}
}

// load loads a stored run by its whole id: a browser names no files.
func (s *Server) load(id string) (model.Document, error) {
	if found, err := s.o.Store.Find(id); err != nil || found != id {
		return model.Document{}, errors.Join(store.ErrNotFound, err)
	}
	return run.Load(s.o.Store, id)
}

func (s *Server) showRun(w http.ResponseWriter, _ *http.Request, d *model.Document) {
	body := template.HTML(render.Main(view.Run(d)))
	s.show(w, frame{Title: "Run " + d.ID, Here: "/", Body: body, Scripts: []string{"page.js"}})
}
