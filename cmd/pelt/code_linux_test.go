package main

import (
	"bytes"
	"fmt"
	"os"
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
