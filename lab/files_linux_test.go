package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pelt/internal/testenv"
	"pelt/model"
)

// A process that does not see the holder's process joins its lab all the same.
func TestExecFromAnotherPIDNamespace(t *testing.T) {
	hold(t, "far", "direct")
	cmd := child("exec", "far", "receiver", "true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// fakeHolder is the other end of a client.
func fakeHolder(t *testing.T) (*client, *net.UnixConn) {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	var conns [2]*net.UnixConn
	for i, fd := range pair {
		f := os.NewFile(uintptr(fd), "pair")
		conn, err := net.FileConn(f)
		must(t, errors.Join(err, f.Close()))
		conns[i] = conn.(*net.UnixConn)
		t.Cleanup(func() { _ = conn.Close() })
	}
	return newClient("fake", 0, conns[0]), conns[1]
}

// TestFilesComeInOrder passes more files than one message takes.
func TestFilesComeInOrder(t *testing.T) {
	c, holder := fakeHolder(t)
	var sent []*os.File
	for i := range 2*filesPerMessage + 1 {
		f, err := os.Create(filepath.Join(t.TempDir(), fmt.Sprint(i)))
		must(t, err)
		defer f.Close()
		sent = append(sent, f)
	}
	failed := make(chan error, 1)
	go func() {
		failed <- errors.Join(sendFiles(holder, sent), json.NewEncoder(holder).Encode(replyOf("all", nil)))
	}()
	var word string
	came, err := c.askForFiles(request{Do: join}, &word)
	must(t, errors.Join(err, <-failed))
	defer closeFiles(came)
	if len(came) != len(sent) || word != "all" {
		t.Fatalf("%d files and %q came of %d", len(came), word, len(sent))
	}
	for i, f := range came {
		a, errA := f.Stat()
		b, errB := sent[i].Stat()
		flags, errC := unix.FcntlInt(f.Fd(), unix.F_GETFD, 0)
		must(t, errors.Join(errA, errB, errC))
		if !os.SameFile(a, b) || flags != unix.FD_CLOEXEC {
			t.Fatalf("file %d is %s, want %s; flags %x", i, a.Name(), b.Name(), flags)
		}
	}
}

// TestFilesAreClosed hands over ends of a pipe in replies that do not go well. The pipe ends when all are closed.
func TestFilesAreClosed(t *testing.T) {
	good := replyOf(heldLab{Facts: model.LabFacts{Topology: "direct"}}, nil)
	describing := func(c *client) error { return c.ask(request{Do: describe}, new(heldLab)) }
	joining := func(c *client) error {
		l := &Lab{holder: c}
		return errors.Join(l.attach(), l.Close())
	}
	for _, test := range []struct {
		name  string
		ask   func(*client) error
		reply any
		limit bool
		want  string
	}{
		{"not asked for", describing, good, false, ""},
		{"not of namespaces", joining, good, false, "no network namespace"},
		{"with an error", joining, replyOf(nil, fmt.Errorf("x: %w", unix.EBUSY)), false,
			"lab fake up: device or resource busy"},
		{"of another version", joining, reply{Format: "pelt/lab/1"}, false, "another version of pelt"},
		{"cut", joining, nil, false, "EOF"},
		{"of too many files", joining, good, true, "ulimit -n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, holder := fakeHolder(t)
			out, in, err := os.Pipe()
			must(t, err)
			defer out.Close()
			must(t, sendFiles(holder, []*os.File{in, in, in, in, in, in}))
			must(t, in.Close())
			if test.reply != nil {
				must(t, json.NewEncoder(holder).Encode(test.reply))
			}
			must(t, holder.CloseWrite())
			if test.limit {
				limitFiles(t, 3)
			}
			err = test.ask(c)
			if got := fmt.Sprint(err); err == nil && test.want != "" || !strings.Contains(got, test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			must(t, out.SetReadDeadline(time.Now().Add(testenv.Patience)))
			if _, err := out.Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("files are still open: %v", err)
			}
		})
	}
}

// TestWhyNoLabIsUp: who asked for a lab is told which step failed, not only what the system said of it.
func TestWhyNoLabIsUp(t *testing.T) {
	for want, err := range map[string]error{
		"open lab nat: link x: device or resource busy": fmt.Errorf("open lab nat: link x: %w", unix.EBUSY),
		"open lab nat: the rule is gone":                errors.New("open lab nat: the rule is gone"),
	} {
		if got := readyReply(err).err(); got == nil || got.Error() != want {
			t.Errorf("%v, want %s", got, want)
		}
	}
	if err := readyReply(nil).err(); err != nil {
		t.Error(err)
	}
}

// limitFiles lets this process open a few files more, until the test's end.
func limitFiles(t *testing.T, more int) {
	t.Helper()
	var before syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before))
	next, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 0) // the lowest that is free
	must(t, errors.Join(err, unix.Close(next)))
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: uint64(next + more), Max: before.Max}))
	t.Cleanup(func() { must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before)) })
}
