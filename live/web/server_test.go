package web

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"pelt/plan"
	"pelt/store"
)

func serverOf(t *testing.T, o Options) *Server {
	t.Helper()
	st, err := store.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if o.Store == nil {
		o.Store = st
	}
	s := New(o)
	t.Cleanup(s.Close)
	return s
}

// ask carries out a request of a browser that was let in, and that mend may change.
func ask(s *Server, method, path string, form url.Values, mend func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(form.Encode()))
	r.Host = "127.0.0.1:7360"
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	r.AddCookie(&http.Cookie{Name: "pelt-7360", Value: s.Token})
	if mend != nil {
		mend(r)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func TestChecks(t *testing.T) {
	s := serverOf(t, Options{})
	host := func(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }
	cookie := func(value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Cookie", value) }
	}
	site := func(name string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", name) }
	}
	for _, c := range []struct {
		name, method, path string
		mend               func(*http.Request)
		want               int
	}{
		{"let in", "GET", "/", nil, 200},
		{"by name", "GET", "/", host("localhost:7360"), 200},
		{"by address of IPv6", "GET", "/", host("[::1]:7360"), 200},
		{"DNS rebinding", "GET", "/", host("evil.example:7360"), 421},
		{"a name that looks so", "GET", "/", host("127.0.0.1.evil.example:7360"), 421},
		{"another address", "GET", "/", host("192.0.2.7:7360"), 421},
		{"no host", "GET", "/", host(""), 421},
		{"no cookie", "GET", "/", cookie(""), 403},
		{"a wrong cookie", "GET", "/", cookie("pelt-7360=" + strings.Repeat("A", 26)), 403},
		{"a cookie of another port", "GET", "/", cookie("pelt-7361=" + s.Token), 403},
		{"a wrong token", "GET", "/?token=A", cookie(""), 403},
		{"the token", "GET", "/?token=" + s.Token, cookie(""), 303},
		{"the token, posted", "POST", "/?token=" + s.Token, cookie(""), 403},
		{"a script without a cookie", "GET", "/assets/runs.js", cookie(""), 403},
		{"posted by another site", "POST", "/delete", site("cross-site"), 403},
		{"posted by another port", "POST", "/delete", site("same-site"), 403},
		{"no such page", "GET", "/nothing", nil, 404},
		{"no such run", "GET", "/run/20261121-0741-k3f", nil, 404},
		{"a file as a run", "GET", "/run/..%2f..%2fetc%2fpasswd", nil, 404},
		{"a file that is no part of pages", "GET", "/assets/uplot.LICENSE", nil, 404},
	} {
		w := ask(s, c.method, c.path, nil, c.mend)
		if w.Code != c.want {
			t.Errorf("%s: %d, want %d: %s", c.name, w.Code, c.want, w.Body)
		}
		for name, want := range map[string]string{"Content-Security-Policy": policy,
			"X-Content-Type-Options": "nosniff",
			"Referrer-Policy":        "no-referrer", "Cache-Control": "no-store"} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s: %s: %q, want %q", c.name, name, got, want)
			}
		}
	}
}

func TestLongRequest(t *testing.T) {
	s := serverOf(t, Options{Offers: offersOf(plan.Curve)})
	form := url.Values{"test": {"curve"}, "target": {strings.Repeat("a", mostBody)}}
	if w := ask(s, "POST", "/new/check", form, nil); w.Code != http.StatusBadRequest {
		t.Errorf("a request that is too long was read to its end: %d", w.Code)
	}
}

func TestTokenBecomesCookie(t *testing.T) {
	s := serverOf(t, Options{})
	w := ask(s, "GET", "/run/x?token="+s.Token+"&q=a", nil, func(r *http.Request) { r.Header.Del("Cookie") })
	c, err := http.ParseSetCookie(w.Header().Get("Set-Cookie"))
	if err != nil || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Value != s.Token {
		t.Errorf("cookie %+v, %v", c, err)
	}
	if to := w.Header().Get("Location"); to != "/run/x?q=a" {
		t.Errorf("led to %q; want the address without the token", to)
	}
}
