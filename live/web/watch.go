package web

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"pelt/model"
	"pelt/render"
	"pelt/store"
	"pelt/view"
)

// liveAssets are what a page needs that shows a test while it goes on.
var liveAssets = frame{Here: "/new", Scripts: []string{"words.js", "uplot.js", "page.js", "grow.js", "live.js"},
	Styles: []string{"uplot.css", "test.css"}}

func (s *Server) routeTests(mux *http.ServeMux) {
	mux.HandleFunc("GET /new", s.newTest)
	mux.HandleFunc("POST /new", func(w http.ResponseWriter, r *http.Request) { s.startTest(w, r, r.PostForm) })
	mux.HandleFunc("POST /new/check", s.checkTest)
	mux.HandleFunc("GET /test/{id}", s.withTest(s.showTest))
	mux.HandleFunc("GET /test/{id}/events", s.withTest(s.events))
	mux.HandleFunc("POST /test/{id}/stop", s.withTest(func(w http.ResponseWriter, r *http.Request, t *Test) {
		t.Stop()
		http.Redirect(w, r, "/test/"+t.ID, http.StatusSeeOther)
	}))
	mux.HandleFunc("POST /test/{id}/again", s.withTest(func(w http.ResponseWriter, r *http.Request, t *Test) {
		if !t.Again() {
			s.fail(w, r, http.StatusConflict, "This test was not started here.")
			return
		}
		s.startTest(w, r, t.form)
	}))
	mux.HandleFunc("GET /run/{id}/report", s.withRun(func(w http.ResponseWriter, _ *http.Request, d *model.Document) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		m := render.Markup{Language: d.Language}
		m.Main(view.Run(d))
		_, _ = io.WriteString(w, m.String())
	}))
	mux.HandleFunc("GET /run/{id}/size", s.runSize)
}

// runSize tells how long a run's file is, and whether it still grows.
func (s *Server) runSize(w http.ResponseWriter, r *http.Request) {
	size, err := s.o.Store.Size(r.PathValue("id"))
	if err != nil {
		s.fail(w, r, http.StatusNotFound, of(r).Error(err))
		return
	}
	sum := s.o.Store.Summary(r.PathValue("id"))
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"size": size, "running": sum.State == store.Running})
}

// withTest finds the test that a path names.
func (s *Server) withTest(next func(http.ResponseWriter, *http.Request, *Test)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if t := s.tests.find(r.PathValue("id")); t != nil {
			next(w, r, t)
			return
		}
		s.fail(w, r, http.StatusNotFound,
			"This test is no longer known here. If it was kept, it stands in the list of runs.")
	}
}

func (s *Server) showTest(w http.ResponseWriter, r *http.Request, t *Test) {
	f := liveAssets
	f.Title, f.Body = strings.TrimPrefix(t.Line, "pelt "), t.page
	s.show(w, r, f)
}
