// Package testenv says what a test needs of the machine it runs on. A test whose need is not met skips and names the
// need. On CI (CI=true) everything is there, so a lack is a failure. Only tests import this package.
package testenv

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pelt/internal/netns"
)

const (
	clockEnv   = "PELT_CLOCK"   // runs the tests whose verdict depends on the clock
	nightlyEnv = "PELT_NIGHTLY" // runs the tests that take minutes, or a browser
)

// Patience bounds every wait of a test for what must come, so that a machine that stands still for seconds fails none.
// What must end before its time has a minute or more.
const Patience = 45 * time.Second

// Here is the Do of this thread's own namespace.
func Here(f func() error) error { return f() }

// Must ends the test with an error.
func Must(t interface {
	Helper()
	Fatal(...any)
}, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Await waits for what another goroutine or process brings about.
func Await(t testing.TB, what string, done func() bool) {
	t.Helper()
	for over := time.Now().Add(Patience); !done(); time.Sleep(time.Millisecond) { // which allocates nothing
		if time.Now().After(over) {
			t.Fatalf("waited %v for %s", Patience, what)
		}
	}
}

// Receive waits for what another goroutine sends.
func Receive[V any](t testing.TB, what string, from <-chan V) V {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(Patience):
		t.Fatalf("waited %v for %s", Patience, what)
		panic("unreachable")
	}
}

// The ports of FreePort are below those that a kernel gives to who asks for any.
const (
	lowestPort = 10240
	portPairs  = 10000
)

var lastPair atomic.Int64 // given by FreePort, counted from a place of this process's own

func init() { lastPair.Store(rand.Int64N(portPairs)) }

// FreePort finds a TCP port that is free together with the one above it, as for control and data. It gives none twice.
func FreePort() (port int, err error) {
	for range 100 {
		port = lowestPort + 2*int(lastPair.Add(1)%portPairs)
		if err = free(port); err == nil {
			if err = free(port + 1); err == nil {
				return port, nil
			}
		}
	}
	return 0, err
}

// Port is FreePort's, or the test's failure.
func Port(t testing.TB) int {
	t.Helper()
	port, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func free(port int) error {
	l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
	if err != nil {
		return err
	}
	return l.Close()
}

// Main runs a package whose tests wait for most of their time: more of them at once than there are cores. It fails if
// descriptors or goroutines are left at the end.
func Main(m *testing.M) {
	const atOnce = "6"
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "test.parallel" })
	if !asked {
		_ = flag.Set("test.parallel", atOnce)
	}
	left := leaks()
	code := m.Run()
	if text := left(); text != "" && code == 0 {
		fmt.Println("FAIL:", text)
		code = 1
	}
	os.Exit(code)
}

// LeakCheck fails the test if descriptors or goroutines are left at its end.
func LeakCheck(t testing.TB) {
	t.Helper()
	left := leaks()
	t.Cleanup(func() {
		if text := left(); text != "" {
			t.Fatal(text)
		}
	})
}

// leaks counts descriptors and goroutines, and returns a function that waits until there are no more than now. It says
// which there are if they stay.
func leaks() (left func() string) {
	// The first socket brings the runtime's own descriptors, which stay.
	if l, err := net.Listen("tcp", "127.0.0.1:0"); err == nil {
		l.Close()
	}
	// So does the goroutine that takes signals, which the first who asks for one begins: fuzzing does.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	signal.Stop(signals)
	goroutines, files := runtime.NumGoroutine(), OpenFiles()
	return func() string {
		for over := time.Now().Add(Patience); runtime.NumGoroutine() > goroutines ||
			OpenFiles() > files; time.Sleep(time.Millisecond) {
			if time.Now().After(over) {
				b := make([]byte, 1<<16)
				return fmt.Sprintf("%d files and %d goroutines before, %d and %d after:\n%s\n%s", files, goroutines,
					OpenFiles(), runtime.NumGoroutine(), openNames(), b[:runtime.Stack(b, true)])
			}
		}
		return ""
	}
}

// OpenFiles counts descriptors; 0 where the system does not tell.
func OpenFiles() int {
	list, _ := os.ReadDir("/proc/self/fd")
	return len(list)
}

// openNames is what each descriptor is of, as Linux tells it.
func openNames() string {
	var names []string
	open, _ := os.ReadDir("/proc/self/fd")
	for _, d := range open {
		if name, err := os.Readlink("/proc/self/fd/" + d.Name()); err == nil {
			names = append(names, d.Name()+": "+name)
		}
	}
	return strings.Join(names, "\n")
}

// Lacks ends a test that this machine cannot run. The words say what the test needs.
func Lacks(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("CI must have what this test needs: "+format, args...)
	}
	t.Skipf("needs "+format, args...)
}

// Tool wants programs in the PATH.
func Tool(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			Lacks(t, "the program %s", name)
		}
	}
}

// Root wants the rights of root on Linux: to make namespaces, links and BPF programs.
func Root(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 || !netns.Privileged() {
		Lacks(t, "root on Linux")
	}
}

// Clock is for a test whose verdict depends on the clock: of delays, rates, pacing below a millisecond, floods that
// must lose nothing, guests under emulation. Such a test runs alone on its machine, so that .ci/run runs it by its
// name.
func Clock(t *testing.T) {
	t.Helper()
	if !strings.HasPrefix(t.Name(), "TestClock") {
		t.Fatal("a test that depends on the clock has a name that begins with TestClock")
	}
	if os.Getenv(clockEnv) != "1" {
		t.Skip("its verdict depends on the clock: set " + clockEnv + "=1 on a machine that does nothing else, and -p 1")
	}
}

// Nightly is for a test that a person starts by .ci/nightly: it floods, kills or repeats for minutes, or drives a
// browser.
func Nightly(t *testing.T) {
	t.Helper()
	if !strings.HasPrefix(t.Name(), "TestNightly") {
		t.Fatal("a test of the night has a name that begins with TestNightly")
	}
	if os.Getenv(nightlyEnv) != "1" {
		t.Skip("it takes long: set " + nightlyEnv + "=1")
	}
}

// AwaitCalm is for a test that measures again what its machine spoilt. It returns when sleepers, as many as there
// are cores, have woken in time for a second, or after half a minute: a neighbour that disturbs stays for a while.
// .ci/nightly counts its line in the log.
func AwaitCalm(logf func(format string, args ...any)) {
	logf("measured again: the machine was too busy")
	const whole, pause, late = time.Second, time.Millisecond, 3 * time.Millisecond
	began := time.Now()
	for calm := false; !calm && time.Since(began) < 30*time.Second; {
		var disturbed atomic.Bool
		var cores sync.WaitGroup
		for range runtime.NumCPU() {
			cores.Go(func() {
				for end := time.Now().Add(whole); time.Now().Before(end); {
					before := time.Now()
					time.Sleep(pause)
					if time.Since(before) > pause+late {
						disturbed.Store(true)
					}
				}
			})
		}
		cores.Wait()
		calm = !disturbed.Load()
	}
}
