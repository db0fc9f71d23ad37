//go:build amd64 || arm64

package drops

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"pelt/internal/netbed"
	"pelt/internal/testenv"
	"pelt/model"
)

const (
	testPort  = 9077
	testTrial = 0x1234
	// numbered is the trial of tests that know packets by this number alone, whatever their ports. Packets of testTrial
	// may still be dropped while the next test runs: the kernel drops what a closed socket holds after a grace period.
	numbered = 0x5678
)

// header writes a test header; see package engine.
func header(b []byte, trial uint16, sequence uint64) {
	binary.BigEndian.PutUint16(b, 0x9e17)
	binary.BigEndian.PutUint16(b[2:], trial)
	binary.BigEndian.PutUint64(b[4:], sequence<<16)
	binary.BigEndian.PutUint32(b[12:], 0xdeadbeef)
}

// send sends sequences from..from+n-1 and returns how many the kernel refused.
func send(t testing.TB, s netbed.Socket, trial uint16, from, n uint64, payload int) (refused uint64) {
	t.Helper()
	b := make([]byte, payload)
	for i := uint64(0); i < n; {
		header(b, trial, from+i)
		switch _, err := unix.Write(s.FD, b); err {
		case unix.ECONNREFUSED, unix.EINTR: // about an earlier one: this one was not sent
			continue
		case nil:
		default:
			refused++
		}
		i++
	}
	return refused
}

// held is the memory of the packets that wait to be read, in bytes.
func held(t testing.TB, s netbed.Socket) int {
	t.Helper()
	var words [unix.SK_MEMINFO_VARS]uint32
	size := uint32(unsafe.Sizeof(words))
	if _, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(s.FD), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&words)), uintptr(unsafe.Pointer(&size)), 0); e != 0 {
		t.Fatal(e)
	}
	return int(words[unix.SK_MEMINFO_RMEM_ALLOC])
}

// waiting tells whether packets wait in the backlog of a core: a busy host takes them in when it finds time.
func waiting(t testing.TB) bool {
	t.Helper()
	text, err := os.ReadFile("/proc/net/softnet_stat")
	testenv.Must(t, err)
	for line := range strings.Lines(string(text)) {
		const queued = 11
		if f := strings.Fields(line); len(f) > queued && strings.Trim(f[queued], "0") != "" {
			return true
		}
	}
	return false
}

// drain reads what has come, until nothing has for a while and nothing waits.
func drain(t testing.TB, s netbed.Socket, trial uint16, got map[uint64]int) {
	t.Helper()
	drainBy(t, s, got, func(b []byte) (sequence uint64, ok bool) {
		return binary.BigEndian.Uint64(b[4:]) >> 16, binary.BigEndian.Uint32(b) == 0x9e17<<16|uint32(trial)
	})
}

// drainBy reads packets whose header is another one.
func drainBy(t testing.TB, s netbed.Socket, got map[uint64]int, read func([]byte) (sequence uint64, ok bool)) {
	t.Helper()
	const waits = 4 // of a silence: a machine that stands still ends one early
	if err := unix.SetsockoptTimeval(s.FD, unix.SOL_SOCKET, unix.SO_RCVTIMEO,
		&unix.Timeval{Usec: 50_000 / waits}); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 65536)
	for silent := 0; ; {
		n, err := unix.Read(s.FD, b)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			if silent++; errors.Is(err, unix.EAGAIN) && (silent < waits || waiting(t)) {
				continue
			}
			if !errors.Is(err, unix.EAGAIN) {
				t.Errorf("read: %v", err)
			}
			return
		}
		silent = 0
		if n < 16 {
			continue
		}
		if sequence, ok := read(b); ok {
			got[sequence]++
		}
	}
}

// One machine serves all tests, as it serves all trials of a process.
var shared struct {
	once    sync.Once
	machine *Machine
	err     error
}

func machine(t testing.TB) *Machine {
	t.Helper()
	testenv.Root(t)
	shared.once.Do(func() { shared.machine, shared.err = Open(Verdicts) })
	if shared.err != nil {
		t.Fatalf("%+v", shared.err)
	}
	return shared.machine
}

// machineOf is another one, with room for few verdicts.
func machineOf(t testing.TB, cells int) *Machine {
	t.Helper()
	testenv.Root(t)
	m, err := Open(cells)
	testenv.Must(t, err)
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func TestMain(m *testing.M) {
	if r, w, err := os.Pipe(); err == nil { // has Go open what it needs for waiting
		_, _ = r.Close(), w.Close()
	}
	before := testenv.OpenFiles()
	code := m.Run()
	if shared.machine != nil {
		if err := shared.machine.Close(); err != nil {
			fmt.Println("close:", err)
			code = 1
		}
	}
	for over := time.Now().Add(testenv.Patience); testenv.OpenFiles() > before && time.Now().Before(over); {
		time.Sleep(time.Millisecond) // threads that end close theirs a little later
	}
	if after := testenv.OpenFiles(); after > before {
		fmt.Printf("%d files left open\n", after-before)
		code = 1
	}
	os.Exit(code)
}

func track(t testing.TB, m *Machine, trial uint16, flow string, o TrackOptions, tuples ...model.Tuple) *Track {
	t.Helper()
	k, err := m.Track(trial, flow, tuples, o)
	testenv.Must(t, err)
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k
}

// oldFunctions are where packets are dropped for a reason, by which kernels before Linux 5.17 are to be understood.
var oldFunctions = map[string]string{
	"SOCKET_RCVBUFF":     `(__)?udp(v6)?_queue_rcv.*`,
	"SOCKET_CLOSE":       `.*udp.*destruct.*|inet_sock_destruct`,
	"NETFILTER_DROP":     `nft_do_chain|nf_hook_slow`,
	"TC_EGRESS":          `__dev_queue_xmit|sch_handle_egress`,
	"QDISC_DROP":         `__dev_queue_xmit|kfree_skb_list.*`,
	"NO_SOCKET":          `__udp4_lib_rcv`,
	"IP_NOPROTO":         `ip_local_deliver_finish|ip_protocol_deliver_rcu`,
	"FRAG_REASM_TIMEOUT": `ip_expire|inet_frag_.*`,
	"XDP":                `veth_xdp_rcv.*|veth_poll`,
}

// running is the kernel that runs the tests, or as which it is watched.
var running = sync.OnceValues(examineKernel)

// because tells whether a packet was dropped for one of these reasons, with a bar between them.
func because(s model.Site, reasons string) bool {
	k, err := running()
	if err != nil || !k.old {
		return err == nil && matches(reasons, s.Reason)
	}
	return s.Reason == notSpecified && slices.ContainsFunc(strings.Split(reasons, "|"), func(r string) bool {
		return oldFunctions[r] != "" && matches(oldFunctions[r], s.Function)
	})
}

// verdicts lists one stream's verdicts by sequence.
func verdicts(t testing.TB, d model.Drops, flow string, stream int) map[uint64]model.Site {
	t.Helper()
	out := map[uint64]model.Site{}
	for _, f := range d.Flows {
		if f.Flow != flow || stream >= len(f.Streams) {
			continue
		}
		for s, err := range f.Streams[stream].Stretches() {
			testenv.Must(t, err)
			for i := range s.Count {
				out[s.From+i] = d.Sites[s.Mark]
			}
		}
	}
	return out
}
