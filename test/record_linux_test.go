package test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pelt/internal/testenv"
)

// TestKilledRecordIsReadable ends pelt with kill -9 while it records: all that is in
// the file can be read, up to a second before.
func TestKilledRecordIsReadable(t *testing.T) {
	work := t.TempDir()
	path, host := filepath.Join(work, "killed.rec"), in(t, work)
	p := host.Start(strings.Fields("curve lab:loopback --payload 64 --rate 10kpps --burst 1000 --time 60s --warmup 50ms --repeats 1 --no-store --record " + path)...)
	testenv.Await(t, "a record of 30 kB", func() bool {
		info, err := os.Stat(path)
		return err == nil && info.Size() > 30_000
	})
	p.Kill()
	p = host.Start("record", "show", path, "--json", "-")
	if err := p.Wait(); err != nil {
		t.Fatalf("pelt record show: %v\n%s", err, p)
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
	if err := json.Unmarshal([]byte(p.Out.String()), &d); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if d.Whole || d.Cut == "" || len(d.Trials) != 1 || d.Trials[0].State != "" || info.Size()-d.Bytes > 1<<20 {
		t.Fatalf("%d B can be read as %s", info.Size(), p.Out)
	}
	if f := d.Trials[0].Figures; len(f) != 1 || f[0].Packets < 2000 || f[0].Received != f[0].Packets {
		t.Errorf("figures %+v of %d B", f, info.Size())
	}
}
