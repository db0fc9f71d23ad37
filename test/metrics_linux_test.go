package test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"pelt/internal/peltproc"
	"pelt/internal/testenv"
	"pelt/model"
)

// TestMetricsServed: hub, serve and web tell Prometheus the figures of the runs that their user keeps.
func TestMetricsServed(t *testing.T) {
	t.Parallel()
	host := peltproc.Host{T: t, Dir: t.TempDir(), Data: t.TempDir()}
	const line = "curve lab:loopback --payload 64 --rate 1kpps --burst 1000 --time 100ms --repeats 1"
	if out, err := host.Run(strings.Fields(line)...); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, command := range []string{"hub", "serve", "web"} {
		port := testenv.Port(t)
		p := host.Start(strings.Fields(fmt.Sprintf("%s --listen 127.0.0.1:%d --metrics 127.0.0.1:0", command, port))...)
		address := p.Match(regexp.MustCompile(`(?m)^Metrics: (http://127\.0\.0\.1:\d+/metrics)$`))
		answer, err := http.Get(address)
		if err != nil {
			t.Fatalf("%v\n%s", err, p)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		for _, want := range []string{`pelt_up{target="lab:loopback"} 1`, `pelt_sent_packets{target="lab:loopback",`} {
			if err != nil || !strings.Contains(string(text), want) {
				t.Errorf("pelt %s: %v, no %s in\n%s", command, err, want, text)
			}
		}
	}
}

var droppedPackets = regexp.MustCompile(`(?m)^pelt_dropped_packets_total\{.*\} (\S+)$`)

// TestDrops: what was seen stands in the file while the watch goes on. In the end Prometheus is told of all packets that
// it saw dropped.
func TestDrops(t *testing.T) {
	testenv.Root(t)
	host := peltproc.Host{T: t, Dir: t.TempDir(), Data: t.TempDir()}
	seen := func() string { b, _ := os.ReadFile(filepath.Join(host.Dir, "drops.json")); return string(b) }
	p := host.Start(strings.Fields("drops --all --interval 100ms --prom drops.prom --json drops.json")...)
	p.Await("watching")
	port := testenv.Port(t)
	nobody, err := net.Dial("udp", fmt.Sprintf("127.0.0.1:%d", port))
	testenv.Must(t, err)
	defer nobody.Close()
	for range 10 {
		_, _ = nobody.Write([]byte("x")) // refused from the second on
	}
	testenv.Await(t, "two intervals in the file", func() bool { return strings.Count(seen(), "\n") >= 2 })
	if strings.Contains(seen(), `"sum":true`) {
		t.Errorf("the watch goes on, and the file says\n%s", seen())
	}
	_ = p.Cmd.Process.Signal(syscall.SIGHUP)
	if code := p.Code(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, p)
	}
	lines := strings.Split(strings.TrimSpace(seen()), "\n")
	var sum model.LiveDrops
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &sum); err != nil || !sum.Sum || sum.Total == 0 {
		t.Fatalf("%v, in the end %+v", err, sum)
	}
	text, err := os.ReadFile(filepath.Join(host.Dir, "drops.prom"))
	testenv.Must(t, err)
	total := 0.0
	for _, m := range droppedPackets.FindAllStringSubmatch(string(text), -1) {
		n, err := strconv.ParseFloat(m[1], 64)
		testenv.Must(t, err)
		total += n
	}
	if total != float64(sum.Total) || !strings.Contains(string(text), "# TYPE pelt_dropped_packets_total counter\n") {
		t.Errorf("the file has %v packets, want %d:\n%s", total, sum.Total, text)
	}
}
