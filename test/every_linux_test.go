package test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"pelt/internal/peltproc"
	"pelt/internal/testenv"
	"pelt/model"
)

// TestEvery: a test that runs again and again keeps each run, posts that its limit failed, once, and ends with a summary
// after the trial in hand.
func TestEvery(t *testing.T) {
	testenv.Root(t)
	t.Parallel() // 200 packets a second: mostly waiting
	type news struct {
		Run, Outcome string
		Before       string `json:"outcome_before"`
		Text         string
	}
	var mu sync.Mutex
	var posted []news
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		var n news
		if err := json.NewDecoder(q.Body).Decode(&n); err != nil {
			t.Errorf("%s: %v", q.Method, err)
		}
		posted = append(posted, n)
	}))
	t.Cleanup(hook.Close)
	host := peltproc.Host{T: t, Dir: t.TempDir(), Data: t.TempDir(), Env: []string{"COLUMNS=80"}}
	p := host.Start(strings.Fields("soak lab:direct --rate 200pps --burst 100 --payload 100 --time 300ms --warmup 100ms " +
		"--link-receiver loss=20% --max-loss 1% --every 3s --json - --prom soak.prom --on-change " + hook.URL)...)
	p.Match(regexp.MustCompile(`(?s)(\n\d{8}-\d{4}-\w{3}  .*\n\d{8}-\d{4}-\w{3}  )`))
	testenv.Await(t, "a message", func() bool { // of a valid run
		mu.Lock()
		defer mu.Unlock()
		return len(posted) > 0
	})
	testenv.Must(t, p.Cmd.Process.Signal(syscall.SIGINT))
	if code := p.Code(); code != 130 {
		t.Errorf("exit code %d\n%s", code, p.Err)
	}
	if !strings.Contains(p.Err.String(), "runs since ") {
		t.Errorf("no summary in\n%s", p.Err)
	}
	for line := range strings.Lines(p.Err.String()) {
		if strings.HasPrefix(line, "20") && len([]rune(line)) > 81 {
			t.Errorf("wider than 80 columns: %q", line)
		}
	}
	outcomes := map[string]string{} // by run
	for _, d := range documents(t, p) {
		outcomes[d.ID] = "not valid"
		if r := d.Results[0]; r.State == model.Valid || model.Reasons(r.Why).Has(model.NothingThrough) {
			outcomes[d.ID] = "limit failed"
		}
	}
	if out, err := host.Run("list"); err != nil || strings.Count(out, "soak") != len(outcomes) || len(outcomes) < 2 {
		t.Errorf("%v, %d runs: %s", err, len(outcomes), out)
	}
	before := "passed"
	for _, n := range posted {
		if n.Before != before || n.Outcome == before || n.Outcome != outcomes[n.Run] || n.Text == "" {
			t.Errorf("posted %+v; runs are %v", posted, outcomes)
		}
		before = n.Outcome
	}
	if out, err := host.Run("report", "last", "--since", "1h"); err != nil ||
		!strings.Contains(out, fmt.Sprintf("%d runs since ", len(outcomes))) {
		t.Errorf("%v\n%s", err, out)
	}
}

// documents are what a process printed with --json -.
func documents(t *testing.T, p *peltproc.Process) (all []model.Document) {
	t.Helper()
	for runs := json.NewDecoder(strings.NewReader(p.Out.String())); runs.More(); {
		var d model.Document
		if err := runs.Decode(&d); err != nil {
			t.Fatalf("%v in\n%s", err, p.Out)
		}
		all = append(all, d)
	}
	return all
}

// TestFleetEvery: while a mesh is measured again and again a host leaves. Its pairs are told of, and the others go on.
func TestFleetEvery(t *testing.T) {
	t.Parallel()
	f := onFleet(t, 3)
	p := f.control("again", "mesh fleet: --drops off --rate 200pps --time 300ms --warmup 100ms --every 5s --json -")
	told := func(runs int) {
		t.Helper()
		p.Match(regexp.MustCompile(`((?m:^\d{8}-\d{4}-\w{3}  (?:.|\n)*?){` + fmt.Sprint(runs) + `})`))
	}
	told(1)
	f.agents["h3"].Kill()
	told(3)
	testenv.Must(t, p.Cmd.Process.Signal(syscall.SIGINT))
	if code := p.Code(); code != 130 {
		t.Errorf("exit code %d\n%s", code, p.Err)
	}
	all := documents(t, p)
	apart := unmeasured(all[2])
	for name, why := range apart {
		if !strings.Contains(name, "h3") || !strings.Contains(why, "no host named h3 is on the hub") {
			t.Errorf("%s: %s", name, why)
		}
	}
	if len(apart) != 2 {
		t.Errorf("unmeasured are %v; want both pairs of h3", apart)
	}
	f.whole(all[2], apart)
	f.whole(all[0], nil)
}

// TestEveryAway: a loop goes on when nobody answers, and a dashboard sees that.
func TestEveryAway(t *testing.T) {
	t.Parallel()
	port := testenv.Port(t)
	host := peltproc.Host{T: t, Dir: t.TempDir(), Data: t.TempDir()}
	out, err := host.Run(strings.Fields(fmt.Sprintf("soak 127.0.0.1:%d --code any-code --time 100ms --every 4s --for 8s "+
		"--prom soak.prom", port))...)
	if code := peltproc.ExitCode(err); code != 1 || strings.Count(out, "connection refused") != 2 {
		t.Errorf("exit code %d\n%s", code, out)
	}
	text, err := os.ReadFile(filepath.Join(host.Dir, "soak.prom"))
	if err != nil || !strings.Contains(string(text), fmt.Sprintf(`pelt_up{target="127.0.0.1:%d"} 0`, port)) {
		t.Errorf("%v\n%s", err, text)
	}
}

// TestEveryWrongCode: a wrong code is not tried again. It is told and posted, there in English.
func TestEveryWrongCode(t *testing.T) {
	t.Parallel()
	port := testenv.Port(t)
	posted := make(chan string, 8)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		text, err := io.ReadAll(q.Body)
		if err != nil {
			t.Error(err)
		}
		posted <- string(text)
	}))
	t.Cleanup(hook.Close)
	host := peltproc.Host{T: t, Dir: t.TempDir(), Data: t.TempDir()}
	far := fmt.Sprintf("127.0.0.1:%d", port)
	server := host.Start("serve", "--listen", far, "--code", "tiger-42-amber")
	server.Await("tiger-42-amber")
	out, err := host.Run(strings.Fields("soak " + far + " --code lion-99-teal --time 100ms --every 4s --for 1h --lang zh " +
		"--on-change " + hook.URL)...)
	if code := peltproc.ExitCode(err); code != 1 || !strings.Contains(out, "口令") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if text := testenv.Receive(t, "a message", posted); !strings.Contains(text, "wrong code") || len(posted) > 0 {
		t.Errorf("posted %s, and %d more", text, len(posted))
	}
}
