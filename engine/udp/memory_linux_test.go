package udp

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"testing"

	"pelt/internal/testenv"
	"pelt/model"
	"pelt/unit"
)

// A flood allocates nothing per packet, and both its ends in one process take far less than 100 MiB and do not grow.
func TestMemoryIsFlat(t *testing.T) {
	debug.FreeOSMemory()
	others := residentBytes(t) // of the tests before
	r := newTrial()
	r.Flow.Rate, r.Timing = unit.Rate{}, model.Timing{WarmupSeconds: 0.1, MeasureSeconds: 60}
	dialer, listener := r.connected(t)
	wait := start(t, listener, dialer)
	look := func(packets uint64) (sent, mallocs uint64, resident int) {
		testenv.Await(t, "packets", func() bool { return listener.Snapshot().Packets >= packets })
		debug.FreeOSMemory()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return dialer.Snapshot().Packets, m.Mallocs, residentBytes(t)
	}
	from, before, early := look(50_000)
	to, after, late := look(250_000)
	dialer.Stop()
	listener.Stop()
	wait()
	t.Logf("resident %d KiB, then %d KiB, beside %d KiB", early>>10, late>>10, others>>10)
	if late > others+100<<20 || late > early+4<<20 {
		t.Errorf("resident %d B after 50 000 packets, %d B after 250 000", early, late)
	}
	// What is left is an 8 KiB chunk of the window every 65 536 packets.
	if mallocs, packets := after-before, to-from; mallocs > packets/20 {
		t.Errorf("%d allocations for %d packets", mallocs, packets)
	}
}

// residentBytes reads how much memory of this process is resident.
func residentBytes(t *testing.T) int {
	text, err := os.ReadFile("/proc/self/statm")
	var size, resident int
	if _, scan := fmt.Sscan(string(text), &size, &resident); err != nil || scan != nil {
		t.Fatal(err, scan)
	}
	return resident * os.Getpagesize()
}
