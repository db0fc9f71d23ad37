// Package web shows runs in a browser: those that are kept, and those that go on.
//
// The server serves its own user: every request must carry what only that user was told. A run's words are from
// outside; only package render puts them into pages.
package web

import (
	"cmp"
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"strings"

	"pelt/render"
	"pelt/store"
	"pelt/words"
)

// Options are what a server needs.
type Options struct {
	Store   *store.Store
	Offers  []Offer // tests that users can start
	Program string  // that they are commands of
	Watch   *Test   // that runs in this process, if any

	Language words.Language // of what is said beside the pages; each reader's browser says that of the pages
}

// Server answers requests. It must be closed.
type Server struct {
	// Token lets in whoever has it: other users of this host reach the port, too. It stands in the address that is
	// printed, and then in a cookie.
	Token string

	o       Options
	handler http.Handler
	runs    runs
	tests   tests
}

//go:embed assets
var assets embed.FS

// of is the language that a browser asks for.
func of(r *http.Request) words.Language { return words.Accepted(r.Header.Get("Accept-Language")) }

func New(o Options) *Server {
	s := &Server{Token: rand.Text(), o: o}
	s.runs.store = o.Store
	s.tests = tests{program: o.Program, stopTime: stopTime}
	if o.Watch != nil {
		s.tests.add(o.Watch)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /assets/{name}", s.asset)
	s.routeRuns(mux)
	s.routeTests(mux)
	cross := http.NewCrossOriginProtection()
	s.handler = cross.Handler(s.letIn(mux))
	return s
}

// Close ends what the server does by itself, and the test that it started. Runs that it was about to delete stay.
func (s *Server) Close() {
	s.tests.close()
	s.runs.close()
}

// mostBody is the longest request, in bytes.
const mostBody = 64 << 10

// policy lets a page load from its server alone, and no other page frame it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'"

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "Accept-Language")
	if !named(r) { // a name of another site that leads here: DNS rebinding
		http.Error(w, "pelt web does not answer to the name in this address; open the one that it printed",
			http.StatusMisdirectedRequest)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, mostBody)
	s.handler.ServeHTTP(w, r)
}

// named reports whether a request is to this host by a name that no other site can have.
func named(r *http.Request) bool {
	host := (&url.URL{Host: r.Host}).Hostname()
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback() || strings.EqualFold(host, "localhost")
}

// cookie is the name of the cookie. Cookies of one host are of all its ports, so that the port is in the name.
func cookie(r *http.Request) string {
	return "pelt-" + (&url.URL{Host: r.Host}).Port()
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// letIn answers those who have not shown the token, and forms that cannot be read; all others pass.
func (s *Server) letIn(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := r.URL.Query().Get("token")
		c, err := r.Cookie(cookie(r))
		switch {
		case r.Method == http.MethodGet && token != "" && same(token, s.Token):
			http.SetCookie(w, &http.Cookie{Name: cookie(r), Value: s.Token, Path: "/", HttpOnly: true,
				SameSite: http.SameSiteStrictMode})
			rest := *r.URL // the token leaves the address bar
			q := rest.Query()
			q.Del("token")
			rest.RawQuery = q.Encode()
			http.Redirect(w, r, rest.RequestURI(), http.StatusSeeOther)
		case err == nil && same(c.Value, s.Token), r.URL.Path == "/assets/style.css":
			if err := r.ParseForm(); r.Method == http.MethodPost && err != nil {
				s.fail(w, r, http.StatusBadRequest, of(r).Error(err))
				return
			}
			next.ServeHTTP(w, r)
		default:
			s.fail(w, r, http.StatusForbidden, "Open the address that pelt web printed: it has a token in it.")
		}
	})
}

// scriptText is a text that a script shows.
var scriptText = regexp.MustCompile(`\bT\("([^"]*)"\)`)

// scriptWords is a script that gives the others T, which says their texts in a language.
func scriptWords(l words.Language) ([]byte, error) {
	said := map[string]string{}
	names, err := fs.Glob(assets, "assets/*.js")
	for _, name := range names {
		text, readErr := assets.ReadFile(name)
		err = cmp.Or(err, readErr)
		for _, m := range scriptText.FindAllSubmatch(text, -1) {
			said[string(m[1])] = l.Say(string(m[1]))
		}
	}
	table, encodeErr := json.Marshal(said)
	return fmt.Appendf(nil, "\"use strict\";\nconst said = %s;\nconst T = text => said[text] || text;\n", table),
		cmp.Or(err, encodeErr)
}

// kinds are the content types of assets by the ends of their names.
var kinds = map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}

func (s *Server) asset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	text, err := assets.ReadFile("assets/" + name)
	switch name {
	case "page.js":
		text, err = []byte(render.Script()), nil
	case "words.js":
		text, err = scriptWords(of(r))
	case "style.css":
		text = append([]byte(render.Style()), text...)
	}
	kind := kinds[path.Ext(name)]
	if err != nil || kind == "" {
		s.fail(w, r, http.StatusNotFound, "There is no such file.")
		return
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(text)
}
