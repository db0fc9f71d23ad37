package web

import (
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"pelt/finding"
	"pelt/model"
	"pelt/render"
	"pelt/store"
	"pelt/view"
)

// mostCompared is how many runs one chart can show.
const mostCompared = 6

// compared is one of the runs of a comparison.
type compared struct {
	store.Summary
	Called string
	First  string // address of the comparison in which this run is the baseline
}

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
	var sides []compared
	for i, id := range ids {
		doc, err := s.load(id)
		if err != nil {
			s.failed(w, r, err)
			return
		}
		sum, _ := s.runs.find(id)
		names = append(names, Called(sum))
		if slices.Contains(names[:i], names[i]) {
			names[i] += ", " + id
		}
		doc.Language = of(r)
		others := slices.Delete(slices.Clone(ids), i, i+1)
		docs, pages = append(docs, &doc), append(pages, view.Run(&doc))
		sides = append(sides, compared{sum, names[i],
			"/compare?" + url.Values{"run": append([]string{id}, others...)}.Encode()})
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
	data := struct {
		Sides   []compared
		Command string
	}{sides, "pelt compare " + strings.Join(ids, " ")}
	body := part(of(r), "compare.html", data) + template.HTML(render.Main(p))
	s.show(w, r, frame{Title: "Comparison", Here: "/", Body: body, Scripts: []string{"page.js"}})
}
