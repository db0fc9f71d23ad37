package counters

import (
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/google/nftables"
	"golang.org/x/sys/unix"
)

// Packets for a processor that cannot keep up overflow its backlog. On a veth
// without a queue the sender hears of it, so five counters tell of one packet.
func TestBacklog(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("needs two processors to send packets from one to the other")
	}
	w := newBed(t, 1, false)
	w.b.do(t, "hand packets to the other processor", func() error {
		return writeSysfs("class/net/b0/queues/rx-0/rps_cpus", "2")
	})
	for range 15 { // make each packet slow; the kernel's answers to more at a time find no room
		w.b.filter(t, func(c *nftables.Conn) {
			table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: "slow"})
			chain := baseChain(c, table, "pre", nftables.ChainHookPrerouting, nftables.ChainPolicyAccept)
			for range 100 {
				c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: udpOnly()})
			}
		})
	}
	w.b.socket(t, unix.AF_INET, w.b.at(testPort), [3]int{unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64 << 20})
	// The host counts a packet as handed over only where it had to wake the other
	// processor, which other work may keep awake: some packets come by themselves.
	const alone, flood = 20, 6000
	refused := uint64(0)
	a, b, host := w.moved(t, func() {
		// On the processor that does not take them: else it would help itself.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		var before, zero unix.CPUSet
		if err := unix.SchedGetaffinity(0, &before); err != nil {
			t.Fatal(err)
		}
		zero.Set(0)
		if err := unix.SchedSetaffinity(0, &zero); err != nil {
			t.Fatal(err)
		}
		out := w.a.socket(t, unix.AF_INET, netip.AddrPort{}, [3]int{unix.SOL_IP, unix.IP_RECVERR, 1}, [3]int{unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, 64 << 20})
		for range alone {
			refused += send(t, out, unix.AF_INET, w.b.at(testPort), 1, payload)[unix.ENOBUFS]
			time.Sleep(2 * time.Millisecond)
		}
		refused += send(t, out, unix.AF_INET, w.b.at(testPort), flood, payload)[unix.ENOBUFS]
		if err := unix.SchedSetaffinity(0, &before); err != nil {
			t.Fatal(err)
		}
	})
	if refused == 0 {
		t.Fatalf("no overflow: a %v, b %v", a, b)
	}
	w.a.same(t, a, w.a.sent(alone+flood-refused).and(counts{"dev.a0.tx_dropped": refused, "Ip.OutDiscards": refused, "Udp.SndbufErrors": refused,
		"Ip.OutRequests": refused, "Ip.OutTransmits": refused}))
	w.b.same(t, b, w.b.arrived(alone+flood-refused).and(counts{"dev.b0.rx_dropped": refused}))
	if host["softnet.dropped"] < refused || host["softnet.received_rps"] == 0 {
		t.Errorf("of the whole host: %v, want at least %d dropped and some by RPS", host, refused)
	}
}

// writeSysfs writes a file of the calling thread's namespace.
func writeSysfs(path, value string) error {
	fs, err := unix.Fsopen("sysfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(fs)
	if err := unix.FsconfigCreate(fs); err != nil {
		return err
	}
	root, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(root)
	fd, err := unix.Openat(root, path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.Write(fd, []byte(value))
	return err
}
