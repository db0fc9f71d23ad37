package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"

	"pelt/internal/testenv"
	"pelt/lab"
)

// hearing makes SIGHUP end commands only, not the test, and returns what sends it.
func hearing(t *testing.T) (hangUp func()) {
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(heard) })
	return func() {
		testenv.Must(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
	}
}

// A command whose terminal is gone ends as at Ctrl-C.
func TestHangUp(t *testing.T) {
	t.Setenv("PELT_DATA", t.TempDir())
	hangUp := hearing(t)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	testenv.Must(t, err)
	_, port, _ := net.SplitHostPort(free.Addr().String())
	_ = free.Close()
	said, out := io.Pipe()
	code := make(chan int)
	go func() {
		defer out.Close()
		code <- execute([]string{"hub", "--listen", "127.0.0.1", "--port", port, "--code", "tiger-42-amber"}, out,
			io.Discard)
	}()
	if _, err := said.Read(make([]byte, 4096)); err != nil {
		t.Fatal(err)
	}
	hangUp()
	if got := testenv.Receive(t, "the end by SIGHUP", code); got != exitOK {
		t.Errorf("code %d", got)
	}
}

// A lab that cannot be asked is listed, and why.
func TestLabListTellsWhy(t *testing.T) {
	name := fmt.Sprintf("mute-%d", os.Getpid())
	mute, err := net.Listen("unix", fmt.Sprintf("@pelt/lab/%d/%s", os.Geteuid(), name))
	testenv.Must(t, err)
	defer mute.Close()
	go func() {
		for {
			c, err := mute.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	var out, wrong bytes.Buffer
	if code := execute([]string{"lab", "list"}, &out, &wrong); code != exitOK ||
		!strings.Contains(out.String(), name) ||
		!strings.Contains(wrong.String(), "pelt: lab "+name+": ask the process that keeps lab "+name) {
		t.Errorf("code %d\n%s\n%s", code, out.String(), wrong.String())
	}
	out.Reset()
	var list []lab.Info
	code := execute([]string{"lab", "list", "--json", "-"}, &out, &wrong)
	err = json.Unmarshal(out.Bytes(), &list)
	i := slices.IndexFunc(list, func(l lab.Info) bool { return l.Name == name })
	if code != exitOK || err != nil || i < 0 || list[i].Error == "" ||
		!strings.Contains(out.String(), `"topology": ""`) {
		t.Errorf("code %d, %v\n%s", code, err, out.String())
	}
}
