package webhook

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"
)

// TestRetry: a message that is refused comes again and in order; one that is always refused is counted.
func TestRetry(t *testing.T) {
	var mu sync.Mutex
	var got []string
	refuse := 2
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		var text string
		if err := json.NewDecoder(q.Body).Decode(&text); err != nil || q.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%v, %v", err, q.Header)
		}
		if refuse > 0 || text == "never" {
			refuse--
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		got = append(got, text)
	}))
	defer s.Close()
	h := New(s.URL)
	h.pause = time.Millisecond
	for _, text := range []string{"first", "never", "last"} {
		h.Send(text)
	}
	h.Close(time.Minute)
	if want := []string{"first", "last"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if n, why := h.Dropped(); n != 1 || why == nil || why.Error() != "the answer was 503 Service Unavailable" {
		t.Errorf("%d dropped: %v", n, why)
	}
}

// TestRedirect: a message is not delivered elsewhere, and a redirect does not take it.
func TestRedirect(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.URL.Path == "/other" {
			t.Errorf("%s of the other page", q.Method)
		}
		http.Redirect(w, q, "/other", http.StatusFound)
	}))
	defer s.Close()
	h := New(s.URL)
	h.pause = time.Millisecond
	h.Send("x")
	h.Close(time.Minute)
	if n, why := h.Dropped(); n != 1 || why == nil || why.Error() != "the answer was 302 Found" {
		t.Errorf("%d dropped: %v", n, why)
	}
}

// TestFull: messages that nobody takes do not pile up, and Close does not wait for them longer than it may.
func TestFull(t *testing.T) {
	held := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-held }))
	defer s.Close()
	defer close(held)
	h := New(s.URL)
	for range mostWaiting + 10 {
		h.Send("x")
	}
	h.Close(time.Millisecond)
	if n, _ := h.Dropped(); n != mostWaiting+10 {
		t.Errorf("%d dropped, want all %d", n, mostWaiting+10)
	}
}

func TestCheck(t *testing.T) {
	for address, ok := range map[string]bool{"https://a.example/x": true, "http://127.0.0.1:1": true, "a.example": false,
		"ftp://a.example": false, "http://": false, "": false} {
		if err := Check(address); (err == nil) != ok {
			t.Errorf("%q: %v", address, err)
		}
	}
}
