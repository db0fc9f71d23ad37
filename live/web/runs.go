package web

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"pelt/model"
	"pelt/render"
	"pelt/run"
	"pelt/store"
	"pelt/view"
	"pelt/words"
)

// runs is what pages know of the stored runs.
type runs struct {
	store *store.Store

	mu       sync.Mutex
	list     []store.Summary // newest first
	read     time.Time
	removals []*removal // in the order in which they were asked for
}

// removal is a run that is about to be deleted, or was not.
type removal struct {
	ID, Failed string
	timer      *time.Timer
}

const (
	fresh = time.Second      // for which a list of runs is taken for true
	undo  = 15 * time.Second // until a run is deleted
)

// all returns the runs that are to be shown, newest first, and what is about to be deleted.
func (r *runs) all() ([]store.Summary, []removal, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.read) > fresh {
		list, err := r.store.List()
		if err != nil {
			return nil, nil, err
		}
		slices.Reverse(list)
		r.list, r.read = list, time.Now()
	}
	var removals []removal
	for _, x := range r.removals {
		removals = append(removals, *x)
	}
	return slices.DeleteFunc(slices.Clone(r.list), func(s store.Summary) bool {
		return slices.ContainsFunc(removals, func(x removal) bool { return x.ID == s.ID && x.Failed == "" })
	}), removals, nil
}

// find returns what lists say of a run.
func (r *runs) find(id string) (store.Summary, bool) {
	all, _, _ := r.all()
	i := slices.IndexFunc(all, func(s store.Summary) bool { return s.ID == id })
	if i < 0 {
		return store.Summary{ID: id}, false
	}
	return all[i], true
}

// remove deletes a run after a while, unless keep is called or the server ends before.
func (r *runs) remove(id string, after time.Duration) {
	r.keep(id)
	r.mu.Lock()
	defer r.mu.Unlock()
	x := &removal{ID: id}
	r.removals = append(r.removals, x)
	x.timer = time.AfterFunc(after, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if !slices.Contains(r.removals, x) {
			return
		}
		if _, err := r.store.Remove(id); err != nil && !errors.Is(err, store.ErrNotFound) {
			x.Failed = err.Error()
			return
		}
		r.removals = slices.DeleteFunc(r.removals, func(o *removal) bool { return o == x })
		r.read = time.Time{}
	})
}

// keep takes a removal back, or the word that it failed.
func (r *runs) keep(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.removals = slices.DeleteFunc(r.removals, func(x *removal) bool { return x.ID == id && (x.timer.Stop() || true) })
}

func (r *runs) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range r.removals {
		x.timer.Stop()
	}
	r.removals = nil
}

func (s *Server) routeRuns(mux *http.ServeMux) {
	mux.HandleFunc("GET /{$}", s.listRuns)
	mux.HandleFunc("GET /run/{id}", s.withRun(s.showRun))
	mux.HandleFunc("GET /run/{id}/{file}", s.withRun(s.download))
	mux.HandleFunc("POST /run/{id}", s.label)
	mux.HandleFunc("POST /delete", func(w http.ResponseWriter, r *http.Request) {
		s.each(w, r, func(id string) { s.runs.remove(id, undo) })
	})
	mux.HandleFunc("POST /keep", func(w http.ResponseWriter, r *http.Request) { s.each(w, r, s.runs.keep) })
	mux.HandleFunc("GET /compare", s.compare)
}

// pageOfRuns is how many runs are shown at first, and how many more each time; mostShown is the most.
const (
	pageOfRuns = 100
	mostShown  = 2000
)

// runList is what the page of runs shows.
type runList struct {
	Query    string
	Total    int // of all that are kept
	Matching int
	Rows     []store.Summary
	More     string // address with more of them; "" if these are all
	Removals []removal
}

// Called is a run's name, or what it did.
func Called(s store.Summary) string {
	return cmp.Or(s.Name, strings.TrimSpace(s.Command+" "+s.Target), s.ID)
}

// progress says how far a run came: "14 trials", "cut after 3 trials"; "" if nobody knows.
func progress(l words.Language, sum store.Summary) string {
	switch {
	case sum.Trials == nil:
		return ""
	case sum.State == store.Cut && *sum.Trials == 0:
		return l.Say("cut in the first trial")
	case sum.State == store.Cut && *sum.Trials == 1:
		return l.Say("cut after 1 trial")
	case sum.State == store.Cut:
		return l.Sayf("cut after %d trials", *sum.Trials)
	case *sum.Trials == 1:
		return l.Say("1 trial")
	}
	return l.Sayf("%d trials", *sum.Trials)
}

func (s *Server) listRuns(w http.ResponseWriter, r *http.Request) {
	all, removals, err := s.runs.all()
	if err != nil {
		s.fail(w, r, http.StatusInternalServerError, of(r).Error(err))
		return
	}
	q := r.URL.Query()
	shown, _ := strconv.Atoi(q.Get("show"))
	shown = min(max(shown, pageOfRuns), mostShown)
	l := runList{Query: q.Get("q"), Total: len(all), Removals: removals}
	filter := run.Filter{Language: of(r), Words: strings.Fields(l.Query)}
	for _, sum := range all {
		if !filter.Matches(sum) {
			continue
		}
		if l.Matching++; l.Matching <= shown {
			l.Rows = append(l.Rows, sum)
		}
	}
	if l.Matching > shown && shown < mostShown {
		l.More = "/?" + url.Values{"q": {l.Query}, "show": {strconv.Itoa(shown + pageOfRuns)}}.Encode()
	}
	s.show(w, r, frame{Title: "Kept runs", Here: "/", Scripts: []string{"words.js", "runs.js"}, Body: l.page})
}

// each does something with each run that a form names, and shows the list.
func (s *Server) each(w http.ResponseWriter, r *http.Request, do func(id string)) {
	for _, id := range r.PostForm["run"] {
		if err := s.known(id); err != nil {
			s.failed(w, r, err)
			return
		}
	}
	for _, id := range r.PostForm["run"] {
		do(id)
	}
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// label sets the name and the tags of a run.
func (s *Server) label(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	tags := strings.FieldsFunc(r.PostFormValue("tags"), func(c rune) bool { return c == ' ' || c == ',' || c == '#' })
	label := store.Label{Name: strings.TrimSpace(r.PostFormValue("name")), Tags: tags}
	if err := label.Check(); err != nil {
		s.fail(w, r, http.StatusBadRequest, of(r).Error(err))
		return
	}
	err := s.known(id)
	if err == nil {
		err = s.o.Store.SetLabel(id, label)
	}
	if err != nil {
		s.failed(w, r, err)
		return
	}
	s.runs.mu.Lock()
	s.runs.read = time.Time{}
	s.runs.mu.Unlock()
	http.Redirect(w, r, "/run/"+id, http.StatusSeeOther)
}

// known reports whether an id is that of a stored run: a browser names no files.
func (s *Server) known(id string) error {
	if found, err := s.o.Store.Find(id); err != nil || found != id {
		return words.Errorf("run %.40q: %w", id, store.ErrNotFound)
	}
	return nil
}

// failed writes a page about an error of the store.
func (s *Server) failed(w http.ResponseWriter, r *http.Request, err error) {
	status := http.StatusInternalServerError
	switch {
	case errors.Is(err, store.ErrNotFound):
		status = http.StatusNotFound
	case errors.Is(err, store.ErrBusy):
		status = http.StatusConflict
	}
	s.fail(w, r, status, of(r).Error(err))
}

func (s *Server) load(id string) (model.Document, error) {
	if err := s.known(id); err != nil {
		return model.Document{}, err
	}
	return run.Load(s.o.Store, id)
}

// withRun loads the run that a path names.
func (s *Server) withRun(next func(http.ResponseWriter, *http.Request, *model.Document)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		doc, err := s.load(r.PathValue("id"))
		if err != nil {
			s.failed(w, r, err)
			return
		}
		doc.Language = of(r)
		next(w, r, &doc)
	}
}

// showRun shows the report of a run, and what can be done with it.
func (s *Server) showRun(w http.ResponseWriter, r *http.Request, d *model.Document) {
	sum, _ := s.runs.find(d.ID)
	f := frame{Title: Called(sum), Here: "/", Scripts: []string{"words.js", "page.js"}}
	growing := ""
	if sum.State == store.Running {
		f.Scripts, growing = append(f.Scripts, "grow.js"), d.ID
	}
	f.Body = func(m *render.Markup) {
		tools(m, sum)
		m.Put(`<div data-growing="$1">`, growing)
		m.Main(view.Run(d))
		m.Put("</div>\n")
	}
	s.show(w, r, f)
}

func (s *Server) download(w http.ResponseWriter, r *http.Request, d *model.Document) {
	name, kind := r.PathValue("file"), ""
	var write func(io.Writer) error
	switch strings.TrimPrefix(name, d.ID) {
	case ".html":
		kind, write = "text/html; charset=utf-8", func(w io.Writer) error { return render.HTML(w, view.Run(d)) }
	case ".json":
		kind, write = "application/json", func(w io.Writer) error { return run.WriteDocument(w, *d) }
	case ".csv":
		kind, write = "text/csv; charset=utf-8", func(w io.Writer) error { return render.CSV(w, view.Figures(d)) }
	default:
		s.fail(w, r, http.StatusNotFound, "There is no such file.")
		return
	}
	if !strings.HasSuffix(name, ".html") { // what programs read is English
		d.Language = words.English
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Disposition", `attachment; filename="pelt-`+name+`"`)
	_ = write(w) // who is gone needs no file
}
