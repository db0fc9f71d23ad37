package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"pelt/internal/testenv"
)

// A code that nobody gave is asked for at a terminal, and not shown there.
func TestAskCode(t *testing.T) {
	if code, err := askCode(t.Context()); code != "" || err != nil {
		t.Errorf("without a terminal: %q, %v", code, err)
	}
	screen, user := testenv.Terminal(t)
	in, wrong := os.Stdin, os.Stderr
	defer func() { os.Stdin, os.Stderr = in, wrong }()
	os.Stdin, os.Stderr = user, user
	got := make(chan string, 1)
	go func() {
		code, err := askCode(t.Context())
		got <- fmt.Sprint(code, " ", err)
	}()
	hides := func() bool {
		state, err := unix.IoctlGetTermios(int(user.Fd()), unix.TCGETS)
		return err == nil && state.Lflag&unix.ECHO == 0
	}
	testenv.Await(t, "the terminal to hide what is typed", hides)
	fmt.Fprintln(screen, "tiger-42-amber")
	if text := testenv.Receive(t, "the code", got); text != "tiger-42-amber <nil>" || hides() {
		t.Errorf("%q, and the terminal still hides what is typed: %v", text, hides())
	}
	shown := make([]byte, 1000)
	n, err := screen.Read(shown)
	if shown = shown[:n]; err != nil || !bytes.Contains(shown, []byte("Code")) ||
		bytes.Contains(shown, []byte("tiger")) {
		t.Errorf("on the screen: %q, %v", shown, err)
	}
}

// Nothing begins without a yes, and Ctrl-C is an answer. Who does not see the question is told how to agree.
func TestAgreed(t *testing.T) {
	screen, user := testenv.Terminal(t)
	in, wrong := os.Stdin, os.Stderr
	defer func() { os.Stdin, os.Stderr = in, wrong }()
	ctx, interrupt := context.WithCancel(t.Context())
	c := newRun()
	c.SetContext(ctx)
	c.SetErr(user)
	null, err := os.Open(os.DevNull)
	testenv.Must(t, err)
	defer null.Close()
	os.Stdin, os.Stderr = user, null
	if err := agreed(c, false, "It is far"); !isUsage(err) || !strings.Contains(err.Error(), "say --yes") {
		t.Errorf("without a terminal for the question: %v", err)
	}
	os.Stderr = user
	for answer, agrees := range map[string]bool{"y\n": true, "YES\n": true, "\n": false, "yesterday\n": false} {
		fmt.Fprint(screen, answer)
		if err := agreed(c, false, "It is far"); err == nil != agrees || err != nil && !isUsage(err) {
			t.Errorf("%q: %v", answer, err)
		}
	}
	got := make(chan error, 1)
	go func() { got <- agreed(c, false, "It is far") }()
	interrupt()
	if err := testenv.Receive(t, "the end of the question", got); !errors.Is(err, context.Canceled) {
		t.Errorf("at Ctrl-C: %v", err)
	}
	fmt.Fprintln(screen) // for who still reads
}
