package web

import (
	"fmt"
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
	"pelt/words"
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
		s.fail(w, http.StatusBadRequest, fmt.Sprintf("Choose two to %d runs.", mostCompared))
		return
	}
	var docs []*model.Document
	var pages []view.Page
	var names []string
	var sides []compared
	for i, id := range ids {
		doc, err := s.load(id)
		if err != nil {
			s.failed(w, err)
			return
		}
		sum, _ := s.runs.find(id)
		names = append(names, Called(sum))
		if slices.Contains(names[:i], names[i]) {
			names[i] += ", " + id
		}
		doc.Language = words.Accepted(r.Header.Get("Accept-Language"))
		others := slices.Delete(slices.Clone(ids), i, i+1)
		docs, pages = append(docs, &doc), append(pages, view.Run(&doc))
		sides = append(sides, compared{sum, names[i],
			"/compare?" + url.Values{"run": append([]string{id}, others...)}.Encode()})
	}
	metrics, err := finding.Metrics(finding.DefaultMetrics)
	if err != nil {
		s.fail(w, http.StatusInternalServerError, err.Error())
		return
	}
	l := docs[0].Language
	w.Header().Set("Vary", "Accept-Language")
	p := view.Page{Language: l, Title: l.Say("Comparison")}
	result, err := finding.Compare(finding.Question{Docs: docs, Metrics: metrics})
	if err != nil {
		p.Verdict = err.Error()
	} else {
		p = view.Compare(result)
	}
	p.Sections = slices.Insert(p.Sections, min(1, len(p.Sections)), view.Overlay(pages, names)...)
	data := struct {
		Sides   []compared
		Command string
	}{sides, "pelt compare " + strings.Join(ids, " ")}
	body := part("compare.html", data) + template.HTML(render.Main(p))
	s.show(w, frame{Title: l.Say("Comparison"), Language: l, Here: "/", Body: body, Scripts: []string{"page.js"}})
}
