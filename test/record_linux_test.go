package test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestKilledRecordIsReadable ends pelt with kill -9 while it records: all that is in
// the file can be read, up to a second before.
func TestKilledRecordIsReadable(t *testing.T) {
	work := t.TempDir()
	data, path := filepath.Join(work, "data"), filepath.Join(work, "killed.rec")
	c := command(t.Context(), work, data, []string{"curve", "lab:loopback", "--payload", "64", "--rate", "10kpps", "--burst", "1000", "--time", "60s", "--warmup", "50ms", "--repeats", "1", "--no-store", "--record", path})
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if info, err := os.Stat(path); err == nil && info.Size() > 30_000 {
			break
		}
		if time.Now().After(end) {
			t.Error("nothing was recorded in 20 s")
			break
		}
	}
	if err := c.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	out, err := command(t.Context(), work, data, []string{"record", "show", path, "--json", "-"}).Output()
	if err != nil {
		t.Fatalf("pelt record show: %v", err)
	}
	var d struct {
		Whole  bool
		Cut    string
		Bytes  int64
		Trials []struct {
			State   string
			Figures []struct {
				Packets  uint64
				Received uint64 `json:"received_packets"`
			}
		}
	}
	if err := json.Unmarshal(out, &d); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if d.Whole || d.Cut == "" || len(d.Trials) != 1 || d.Trials[0].State != "" || info.Size()-d.Bytes > 1<<20 {
		t.Fatalf("%d B can be read as %s", info.Size(), out)
	}
	if f := d.Trials[0].Figures; len(f) != 1 || f[0].Packets < 2000 || f[0].Received != f[0].Packets {
		t.Errorf("figures %+v of %d B", f, info.Size())
	}
}
