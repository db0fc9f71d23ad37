package main

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A code that nobody gave is asked for at a terminal, and not shown there.
func TestAskCode(t *testing.T) {
	if code, err := askCode(t.Context()); code != "" || err != nil {
		t.Errorf("without a terminal: %q, %v", code, err)
	}
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no terminals here:", err)
	}
	defer screen.Close()
	number, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	user, err := os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer user.Close()
	in, wrong := os.Stdin, os.Stderr
	defer func() { os.Stdin, os.Stderr = in, wrong }()
	os.Stdin, os.Stderr = user, user
	got := make(chan string, 1)
	go func() {
		code, err := askCode(t.Context())
		got <- fmt.Sprint(code, " ", err)
	}()
	echoes := func() bool {
		state, err := unix.IoctlGetTermios(int(user.Fd()), unix.TCGETS)
		return err != nil || state.Lflag&unix.ECHO != 0
	}
	for deadline := time.Now().Add(10 * time.Second); echoes(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the terminal goes on to show what is typed")
		}
	}
	fmt.Fprintln(screen, "tiger-42-amber")
	if text := <-got; text != "tiger-42-amber <nil>" || !echoes() {
		t.Errorf("%q, and what is typed is shown again: %v", text, echoes())
	}
	shown := make([]byte, 1000)
	n, err := screen.Read(shown)
	if shown = shown[:n]; err != nil || !bytes.Contains(shown, []byte("Code")) || bytes.Contains(shown, []byte("tiger")) {
		t.Errorf("on the screen: %q, %v", shown, err)
	}
}
