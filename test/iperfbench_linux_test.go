package test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pelt/internal/peltproc"
	"pelt/internal/testenv"
)

// BenchmarkIperf floods loopback with datagrams of 64 B by each pair of iperf3 and pelt, in turns. It reports how many
// arrive a second at the median, and of each pair with pelt how many times those of iperf3 alone: least, median, most.
func BenchmarkIperf(b *testing.B) {
	testenv.Tool(b, "iperf3")
	const rounds, seconds = 7, 1
	host := peltproc.Host{T: b, Dir: b.TempDir(), Data: b.TempDir()}
	var ports [3]int
	for i := range ports {
		ports[i], _ = testenv.FreePort()
	}
	peer := host.Launch(exec.Command("iperf3", "-s", "-B", "127.0.0.1", "-p", fmt.Sprint(ports[0]), "--forceflush"))
	peer.Await("Server listening")
	serve := host.Start("serve", "--listen", fmt.Sprintf("127.0.0.1:%d", ports[1]), fmt.Sprintf("--iperf3=%d", ports[2]))
	serve.Await("--get-server-output")
	client := func(port int, more string) float64 {
		line := fmt.Sprintf("-J -c 127.0.0.1 -p %d -u -b 0 -l 64 -t %d %s", port, seconds, more)
		out, err := exec.Command("iperf3", strings.Fields(line)...).Output()
		var said iperfEnd
		if err != nil || json.Unmarshal(out, &said) != nil {
			b.Fatalf("%s: %v\n%s", line, err, out)
		}
		return float64(said.End.Received.Packets-said.End.Received.Lost) / seconds
	}
	pelt := func(more string) float64 {
		line := fmt.Sprintf("curve iperf3://127.0.0.1:%d --payload 64 --rate max --time %ds --repeats 1 --json o.json %s", ports[0],
			seconds, more)
		if out, err := host.Run(strings.Fields(line)...); orInvalid(err) != nil {
			b.Fatalf("%s: %v\n%s", line, err, out)
		}
		f := decoded(b, filepath.Join(host.Dir, "o.json")).Results[0].Flows[0]
		return float64(f.Received) / f.DurationS
	}
	pairs := []struct {
		name string
		run  func() float64
	}{
		{"iperf3-to-iperf3", func() float64 { return client(ports[0], "") }},
		{"pelt-to-iperf3", func() float64 { return pelt("") }},
		{"iperf3-to-pelt", func() float64 { return client(ports[2], "") }},
		{"iperf3-from-iperf3", func() float64 { return client(ports[0], "-R") }},
		{"pelt-from-iperf3", func() float64 { return pelt("-R") }},
		{"iperf3-from-pelt", func() float64 { return client(ports[2], "-R") }},
	}
	for b.Loop() {
		pps, ratio := make([][]float64, len(pairs)), make([][]float64, len(pairs))
		for range rounds {
			for i, p := range pairs {
				n := p.run()
				pps[i] = append(pps[i], n)
				ratio[i] = append(ratio[i], n/pps[i/3*3][len(pps[i])-1])
			}
		}
		for i, p := range pairs {
			slices.Sort(pps[i])
			slices.Sort(ratio[i])
			b.ReportMetric(pps[i][rounds/2], p.name+"-pps")
			if i%3 > 0 {
				b.Logf("%s: %.2f (%.2f to %.2f) times iperf3 alone", p.name, ratio[i][rounds/2], ratio[i][0], ratio[i][rounds-1])
			}
		}
	}
}
