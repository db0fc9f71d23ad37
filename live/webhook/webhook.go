// Package webhook tells a program of a user what a test that runs again and again found, by HTTP.
package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// A message is tried so often, with growing pauses; each try has so long. More than mostWaiting messages are dropped.
const (
	tries       = 4
	firstPause  = time.Second
	tryTimeout  = 10 * time.Second
	mostWaiting = 32
	mostAnswer  = 64 << 10 // bytes that are read of an answer
)

// Hook sends messages, one after the other, until Close.
type Hook struct {
	url   string
	queue chan []byte
	stop  context.CancelFunc
	done  sync.WaitGroup
	pause time.Duration // before the second try; it doubles

	mu      sync.Mutex
	dropped int
	last    error // why the last message was dropped
}

// Check says what is wrong with the address of a hook.
func Check(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("want an address as https://host/path") // a URL may hold a password
	}
	return nil
}

// New makes a hook for an address that Check allows.
func New(address string) *Hook {
	ctx, stop := context.WithCancel(context.Background())
	h := &Hook{url: address, queue: make(chan []byte, mostWaiting), stop: stop, pause: firstPause}
	h.done.Go(func() {
		for message := range h.queue {
			if err := h.deliver(ctx, message); err != nil {
				h.drop(err)
			}
		}
	})
	return h
}

// Send queues a message. It does not wait.
func (h *Hook) Send(v any) {
	message, err := json.Marshal(v)
	if err == nil {
		select {
		case h.queue <- message:
			return
		default:
			err = fmt.Errorf("%d messages wait already", mostWaiting)
		}
	}
	h.drop(err)
}

func (h *Hook) drop(why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dropped, h.last = h.dropped+1, why
}

// Dropped returns how many messages were not delivered, and why the last one was not.
func (h *Hook) Dropped() (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.dropped, h.last
}

// Close waits for the messages that are queued, at most so long, and drops the rest. Send must not be called after.
func (h *Hook) Close(wait time.Duration) {
	close(h.queue)
	limit := time.AfterFunc(wait, h.stop)
	h.done.Wait()
	limit.Stop()
	h.stop()
}

// deliver posts a message until an answer of 2xx comes.
func (h *Hook) deliver(ctx context.Context, message []byte) (err error) {
	for n, pause := 0, h.pause; n < tries; n, pause = n+1, 2*pause {
		if n > 0 {
			select {
			case <-ctx.Done():
				return err
			case <-time.After(pause):
			}
		}
		if err = post(ctx, h.url, message); err == nil || ctx.Err() != nil {
			return err
		}
	}
	return err
}

// client goes nowhere else: a redirect would make a GET of the POST, and show the URL to another host.
var client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

func post(ctx context.Context, address string, message []byte) error {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(message))
	if err != nil {
		return err
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("User-Agent", "pelt")
	answer, err := client.Do(q)
	if err != nil {
		var of *url.Error
		if errors.As(err, &of) { // whose text has the URL, perhaps with a password
			return of.Err
		}
		return err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, mostAnswer)) // so that the connection is used again
	_ = answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		return errors.New("the answer was " + answer.Status)
	}
	return nil
}
