package test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"pelt/internal/peltproc"
	"pelt/internal/testenv"
	"pelt/model"
)

// iperfClients starts pelt serve --iperf3, and returns what runs the real iperf3 against it.
func iperfClients(t *testing.T, args ...string) (host peltproc.Host, run func(line string) (string, error)) {
	t.Helper()
	testenv.Tool(t, "iperf3")
	host = peltproc.Host{T: t, Dir: t.TempDir(), Data: t.TempDir()}
	var ports [2]int
	for i := range ports {
		var err error
		if ports[i], err = testenv.FreePort(); err != nil {
			t.Fatal(err)
		}
	}
	line := fmt.Sprintf("serve --listen 127.0.0.1:%d --iperf3=%d", ports[0], ports[1])
	p := host.Start(append(strings.Fields(line), args...)...)
	p.Await("--get-server-output")
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(p)
		}
	})
	return host, func(line string) (string, error) {
		c := exec.Command("iperf3", strings.Fields(fmt.Sprintf("-c 127.0.0.1 -p %d %s", ports[1], line))...)
		out, err := c.CombinedOutput()
		return string(out), err
	}
}

// iperfSum is what an iperf3 client says of all streams. Lost packets are its server's figure.
type iperfSum struct {
	End struct {
		Sum struct {
			Lost    uint64 `json:"lost_packets"`
			Packets uint64 `json:"packets"`
		} `json:"sum"`
	} `json:"end"`
	Output string `json:"server_output_text"`
}

var explained = regexp.MustCompile(`pelt explain (\S+)`)

// TestIperfClients: unmodified clients at once. Each one's figures are those of the run that is kept of it, and it is
// told where its packets ended.
func TestIperfClients(t *testing.T) {
	testenv.Root(t) // for a socket buffer below what is usual
	t.Parallel()
	host, run := iperfClients(t)
	var all sync.WaitGroup
	for i, c := range []struct {
		line    string
		streams int
	}{
		{"-l 200 -b 500K -t 1", 1},
		{"-l 64 -b 100K -t 1 -P 4 --udp-counters-64bit", 4},
		{"-l 1400 -b 1M -n 50K", 1},
		{"-l 200 -b 0 -t 1 -w 2k", 1}, // its socket has no room for a flood
	} {
		all.Go(func() {
			text, err := run("-u -J --get-server-output " + c.line)
			var said iperfSum
			if err != nil || json.Unmarshal([]byte(text), &said) != nil {
				t.Errorf("%s: %v\n%s", c.line, err, text)
				return
			}
			id := explained.FindStringSubmatch(said.Output)
			if id == nil {
				t.Errorf("%s: no run in %q", c.line, said.Output)
				return
			}
			file := filepath.Join(host.Dir, fmt.Sprintf("%d.json", i))
			if out, err := host.Run("report", id[1], "--json", file); orInvalid(err) != nil {
				t.Errorf("%s: %v\n%s", c.line, err, out)
				return
			}
			b, err := os.ReadFile(file)
			if err != nil {
				t.Errorf("%s: %v", c.line, err)
				return
			}
			d, err := model.DecodeDocument(b, file)
			if err != nil {
				t.Errorf("%s: %v", c.line, err)
				return
			}
			f, sum := d.Results[0].Flows[0], said.End.Sum
			if f.Attempted == 0 || f.Attempted != sum.Packets || f.Lost != sum.Lost || f.Streams != c.streams ||
				f.Received+f.Lost != f.Attempted || f.Ledger.Unattributed > 0 {
				t.Errorf("%s: iperf3 says %+v, the run %d of %d lost, %+v", c.line, sum, f.Lost, f.Attempted, f.Ledger)
			}
			for _, l := range f.Ledger.Lines {
				if l.Layer == model.LayerReceiverBuffer != strings.Contains(said.Output, "receiver socket buffer full") {
					t.Errorf("%s: %+v, and the client is told %q", c.line, l, said.Output)
				}
			}
			if strings.Contains(c.line, "-b 0") == (f.Lost == 0) {
				t.Errorf("%s: %d lost", c.line, f.Lost)
			}
		})
	}
	all.Wait()
	if out, err := host.Run("list"); err != nil || strings.Count(out, "soak") != 4 {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestIperfClientsRefused: what pelt does not take is refused by the words that iperf3 has for it.
func TestIperfClientsRefused(t *testing.T) {
	t.Parallel()
	host, run := iperfClients(t, "--max-rate", "1mbit", "--max-time", "5s")
	for _, c := range []struct{ line, want string }{
		{"-t 1", "not implemented yet"},
		{"-u -t 1 -R", "not implemented yet"},
		{"-u -t 1 -b 2M", "total required bandwidth is larger than server limit"},
		{"-u -t 1 -b 600K -P 2", "total required bandwidth is larger than server limit"},
		{"-u -t 1 -b 0", "total required bandwidth is larger than server limit"},
		{"-u -t 6 -b 100K", "37"}, // has no words in 3.12
	} {
		if out, err := run(c.line); err == nil || !strings.Contains(out, c.want) {
			t.Errorf("%s: %v\n%s\nwant %s", c.line, err, out, c.want)
		}
	}
	if out, _ := host.Run("list"); strings.Contains(out, "soak") {
		t.Errorf("a refused test is kept:\n%s", out)
	}
	for _, c := range []struct{ line, want string }{
		{"serve --iperf3=0", "--iperf3: want a port"},
		{"serve --open-iperf3", "--open-iperf3: want --iperf3, too"},
		{"serve --observe-only --iperf3", "--iperf3: is for an end of tests"},
	} {
		out, err := host.Run(strings.Fields(c.line)...)
		if peltproc.ExitCode(err) != 2 || !strings.Contains(out, c.want) {
			t.Errorf("%s: %v\n%s\nwant %s", c.line, err, out, c.want)
		}
	}
}
