package screen

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"pelt/internal/testenv"
	"pelt/live"
)

// press is what a key does: the text shown then, whether the screen is left, and how often the run is stopped.
func press(v *viewer, key tea.Key) (content string, left bool) {
	_, cmd := v.Update(tea.KeyPressMsg(key))
	v.Update(tick(time.Now()))
	if cmd != nil {
		_, left = cmd().(tea.QuitMsg)
	}
	return v.View().Content, left
}

func TestKeys(t *testing.T) {
	for _, c := range []struct {
		key        tea.Key
		shows      string
		left, stop bool
	}{
		{tea.Key{Code: 'q', Text: "q"}, "", true, false},
		{tea.Key{Code: 's', Text: "s"}, "", true, true},
		{tea.Key{Code: 'c', Mod: tea.ModCtrl}, "", true, true},
		{tea.Key{Code: '?', Text: "?"}, "with progress lines", false, false},
		{tea.Key{Code: 'z', Mod: tea.ModCtrl}, "So far", false, false},
		{tea.Key{Code: tea.KeyEscape}, "So far", false, false},
	} {
		stopped := false
		v := &viewer{now: &live.Now{}, stop: func() { stopped = true }}
		v.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
		content, left := press(v, c.key)
		if left != c.left || stopped != c.stop || !strings.Contains(content, c.shows) {
			t.Errorf("%s: left %v, stopped %v, shows %q", tea.KeyPressMsg(c.key), left, stopped, content)
		}
		if content, _ = press(v, tea.Key{Code: '?', Text: "?"}); c.key.Code == '?' &&
			!strings.Contains(content, "So far") {
			t.Errorf("? twice shows %q", content)
		}
	}
}

// Sizes and events that come faster than the screen is drawn change nothing until it is.
func TestStormsAreDrawnOnce(t *testing.T) {
	v := &viewer{now: &live.Now{}}
	v.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	v.Update(tick(time.Now()))
	before := v.View().Content
	for i := range 1000 {
		v.Update(tea.WindowSizeMsg{Width: 1 + i%200, Height: 1 + i%60})
		v.take(live.Event{ID: uint64(i + 1), Note: "n"})
	}
	if v.View().Content != before {
		t.Error("drawn before its time")
	}
	v.Update(tick(time.Now()))
	if lines := strings.Split(v.View().Content, "\n"); len(lines) != 1+999%60 {
		t.Errorf("%d lines", len(lines))
	}
}

// A terminal that takes nothing keeps no event waiting, and the end of the run ends the screen.
func TestSlowTerminal(t *testing.T) {
	in, feed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer feed.Close()
	taken, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	_ = out.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
	for err == nil {
		_, err = out.Write(make([]byte, 1<<12))
	}
	_ = out.SetWriteDeadline(time.Time{})
	stream, now := &live.Stream{}, &live.Now{}
	past, r := stream.Read()
	done := make(chan error)
	go func() { done <- Screen{In: in, Out: out}.Show(context.Background(), now, past, r) }()
	for range 20 {
		for range 500 { // more than a reader may be behind
			stream.Publish(live.Event{Note: strings.Repeat("x", 50)})
		}
		for deadline := time.Now().Add(testenv.Patience); len(r.C) > 0 && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
	}
	if r.Slow() {
		t.Error("the screen fell behind")
	}
	stream.Publish(live.Event{Done: &live.Done{}})
	select {
	case <-done:
		t.Error("the terminal took the drawing")
	case <-time.After(50 * time.Millisecond):
	}
	go func() { // the terminal wakes
		b := make([]byte, 1<<16)
		for {
			if _, err := taken.Read(b); err != nil {
				return
			}
		}
	}()
	if err := <-done; err != nil || now.Done == nil {
		t.Errorf("%v, the end seen: %v", err, now.Done != nil)
	}
	taken.Close()
}
