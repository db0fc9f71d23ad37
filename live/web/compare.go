package web

import (
	"net/http"
	"slices"

	"pelt/finding"
	"pelt/model"
	"pelt/render"
	"pelt/view"
)

// mostCompared is how many runs one chart can show.
const mostCompared = 6

// compare shows how runs differ from the first of them.
func (s *Server) compare(w http.ResponseWriter, r *http.Request) {
	ids := r.URL.Query()["run"]
	if len(ids) < 2 || len(ids) > mostCompared {
		s.fail(w, r, http.StatusBadRequest, of(r).Sayf("Choose two to %d runs.", mostCompared))
		return
	}
	var docs []*model.Document
	var pages []view.Page
	var names []string
	for i, id := range ids {
		doc, err := s.load(id)
		if err != nil {
			s.failed(w, r, err)
			return
		}
		sum, _ := s.runs.find(id)
		names = append(names, Called(sum))
		if slices.Contains(names[:i], names[i]) {
			names[i] = of(r).Join([]string{names[i], id})
		}
		doc.Language = of(r)
		docs, pages = append(docs, &doc), append(pages, view.Run(&doc))
	}
	metrics, err := finding.Metrics(finding.DefaultMetrics)
	if err != nil {
		s.fail(w, r, http.StatusInternalServerError, of(r).Error(err))
		return
	}
	l := docs[0].Language
	p := view.Page{Language: l, Title: l.Say("Comparison")}
	result, err := finding.Compare(finding.Question{Docs: docs, Metrics: metrics})
	if err != nil {
		p.Verdict = l.Error(err)
	} else {
		p = view.Compare(result)
	}
	p.Sections = slices.Insert(p.Sections, min(1, len(p.Sections)), view.Overlay(pages, names)...)
	s.show(w, r, frame{Title: "Comparison", Here: "/", Scripts: []string{"words.js", "page.js"},
		Body: func(m *render.Markup) {
			compared(m, ids, names)
			m.Main(p)
		}})
}
