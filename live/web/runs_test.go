package web

import (
	"errors"
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"pelt/finding"
	"pelt/internal/testenv"
	"pelt/model"
	"pelt/store"
	"pelt/test/sample"
	"pelt/words"
)

// keep stores a run, and returns its id.
func keep(t testing.TB, st *store.Store, d model.Document) string {
	t.Helper()
	r, err := st.Create(d)
	testenv.Must(t, err)
	errs := []error{}
	for _, x := range d.Results {
		errs = append(errs, r.Append(x))
	}
	d.Complete, d.Findings = true, finding.Kept(d)
	testenv.Must(t, errors.Join(append(errs, r.End(d), r.Close())...))
	return r.ID()
}

func storeOf(t testing.TB) (*store.Store, string) {
	t.Helper()
	dir := t.TempDir()
	st, err := store.Open(dir)
	testenv.Must(t, err)
	return st, dir
}

func TestRunPages(t *testing.T) {
	st, _ := storeOf(t)
	s := serverOf(t, Options{Store: st})
	nasty := sample.Router()
	nasty.Plan.Target, nasty.Host[0].Name = `<script>alert(1)</script>`, `"><img src=x>`
	a, b, bad := keep(t, st, sample.Router()), keep(t, st, sample.Single()), keep(t, st, nasty)
	name := url.Values{"name": {`old <b>"switch"`}, "tags": {"#lan, wifi"}}
	for _, c := range []struct {
		name, method, path string
		form               url.Values
		status             int
		want, without      string
	}{
		{"all", "GET", "/", nil, 200, "3 runs", "match"},
		{"some", "GET", "/?q=LAB%3A+" + b[:13], nil, 200, "of 3 runs match", "<script>alert"},
		{"none", "GET", "/?q=%3Cb%3Enothing", nil, 200, "0 of 3 runs match", "<b>nothing"},
		{"figures with their units", "GET", "/", nil, 200, "402\u00a0kpps", "402 kpps"},
		{"a page", "GET", "/run/" + a, nil, 200, "How it was measured", ""},
		{"no name and no tags", "GET", "/run/" + b, nil, 200, "Download: ", "<b></b>"},
		{"untrusted words", "GET", "/run/" + bad, nil, 200, "&lt;script&gt;", "<script>alert"},
		{"untrusted words, listed", "GET", "/", nil, 200, "&lt;script&gt;", "<script>alert"},
		{"a name", "POST", "/run/" + a, name, 303, "", ""},
		{"its page", "GET", "/run/" + a, nil, 200, "old &lt;b&gt;&#34;switch&#34;", "<b>&#34;"},
		{"found by tag", "GET", "/?q=%23wifi", nil, 200, "1 of 3 runs match", ""},
		{"a name of two lines", "POST", "/run/" + a, url.Values{"name": {"a\nb"}}, 400, "in one line", ""},
		{"a name of no run", "POST", "/run/20261121-0741-k3f", name, 404, "no such run", ""},
		{"by a beginning", "GET", "/run/" + a[:15], nil, 404, "no such run", ""},
		{"JSON", "GET", "/run/" + a + "/" + a + ".json", nil, 200, `"format": "pelt/run/1"`, ""},
		{"CSV", "GET", "/run/" + a + "/" + a + ".csv", nil, 200, "payload_bytes", ""},
		{"page to share", "GET", "/run/" + a + "/" + a + ".html", nil, 200, "Content-Security-Policy", "/assets/"},
		{"another file", "GET", "/run/" + a + "/passwd", nil, 404, "no such file", ""},
		{"one to compare", "GET", "/compare?run=" + a, nil, 400, "Choose two to 6 runs", ""},
		{"seven to compare", "GET", "/compare?" + strings.Repeat("run="+a+"&", 7), nil, 400, "Choose", ""},
		{"a comparison", "GET", "/compare?run=" + a + "&run=" + b, nil, 200, "pelt compare " + a + " " + b, ""},
		{"with itself", "GET", "/compare?run=" + a + "&run=" + a, nil, 200, "twice", ""},
		{"of a file", "GET", "/compare?run=" + a + "&run=/etc/passwd", nil, 404, "no such run", ""},
		{"delete no run", "POST", "/delete", url.Values{"run": {a, "last"}}, 404, "no such run", ""},
		{"delete", "POST", "/delete", url.Values{"run": {a, b}}, 303, "", ""},
		{"what is left", "GET", "/", nil, 200, "1 run<", "/run/" + a},
		{"the word of it", "GET", "/", nil, 200, "Undo", ""},
		{"undo", "POST", "/keep", url.Values{"run": {a}}, 303, "", ""},
		{"what is back", "GET", "/", nil, 200, "/run/" + a, "/run/" + b},
	} {
		w := ask(s, c.method, c.path, c.form, nil)
		body := w.Body.String()
		if w.Code != c.status || !strings.Contains(body, c.want) || c.without != "" &&
			strings.Contains(body, c.without) {
			t.Errorf("%s: %d, want %d with %q and without %q:\n%s", c.name, w.Code, c.status, c.want, c.without, body)
		}
	}
	s.Close()
	if list, err := st.List(); err != nil || len(list) != 3 {
		t.Errorf("the server ended, and left %d runs, %v; want all that were not removed yet", len(list), err)
	}
}

func TestRemove(t *testing.T) {
	st, _ := storeOf(t)
	s := serverOf(t, Options{Store: st})
	a, b := keep(t, st, sample.Single()), keep(t, st, sample.Single())
	busy, _, err := st.Resume(b)
	testenv.Must(t, err)
	defer busy.Close()
	s.runs.remove(a, 0)
	s.runs.remove(b, 0)
	for end := time.Now().Add(testenv.Patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if _, removals, _ := s.runs.all(); len(removals) == 1 && removals[0].Failed != "" {
			break
		}
	}
	body := ask(s, "GET", "/", nil, nil).Body.String()
	if strings.Contains(body, a) || !strings.Contains(body, "/run/"+b) ||
		!strings.Contains(body, "another pelt is writing") {
		t.Errorf("the list is\n%s", body)
	}
	s.runs.keep(b)
	if _, removals, _ := s.runs.all(); len(removals) != 0 {
		t.Errorf("still told: %+v", removals)
	}
}

// A report is in the language that the browser asks for; figures for programs have none.
func TestLanguages(t *testing.T) {
	st, _ := storeOf(t)
	s := serverOf(t, Options{Store: st})
	a, b := keep(t, st, sample.Router()), keep(t, st, sample.Single())
	for _, c := range []struct{ accepts, path, want, without string }{
		{"zh-CN,zh;q=0.9,en;q=0.8", "/run/" + a, `lang="zh-CN"`, "How it was measured"},
		{"zh-CN", "/run/" + a + "/report", "测量方法", "How it was measured"},
		{"zh-CN", "/run/" + a + "/" + a + ".html", "测量方法", "How it was measured"},
		{"zh-CN", "/run/" + a + "/" + a + ".csv", "payload_bytes", "载荷"},
		{"zh-CN", "/run/" + a + "/" + a + ".json", `"text": "`, "。"},
		{"zh-CN", "/compare?run=" + a + "&run=" + b, "对比", ""},
		{"en-US,zh;q=0.5", "/run/" + a, "How it was measured", "测量方法"},
		{"zh-CN", "/", "<h1>运行记录</h1>", "Kept runs"},
		{"de,en;q=0.8", "/", "<h1>Kept runs</h1>", "运行记录"},
		{"zh", "/assets/words.js", `"The test has ended":"测试已结束"`, ""},
		{"zh", "/run/nosuch", "不存在", ""},
	} {
		body := ask(s, "GET", c.path, nil, func(r *http.Request) { r.Header.Set("Accept-Language", c.accepts) }).Body.String()
		if !strings.Contains(body, c.want) || c.without != "" && strings.Contains(body, c.without) {
			t.Errorf("%s for %s: want %q and without %q:\n%s", c.path, c.accepts, c.want, c.without, body)
		}
	}
}

// The comparison on a page is the one of pelt compare, and its family of tests spans all runs.
func TestComparisonIsTheOne(t *testing.T) {
	st, _ := storeOf(t)
	s := serverOf(t, Options{Store: st})
	q, words := finding.Question{}, "run="
	for _, d := range []model.Document{sample.Router(), sample.Router(), sample.Router()} {
		id := keep(t, st, d)
		doc, err := s.load(id)
		testenv.Must(t, err)
		q.Docs, words = append(q.Docs, &doc), words+id+"&run="
	}
	q.Metrics, _ = finding.Metrics(finding.DefaultMetrics)
	want, err := finding.Compare(q)
	testenv.Must(t, err)
	w := ask(s, "GET", "/compare?"+strings.TrimSuffix(words, "&run="), nil, nil)
	bare := strings.NewReplacer(`<span class="whole">`, "", "</span>", "").Replace(w.Body.String())
	said := strings.Join(strings.Fields(html.UnescapeString(bare)), " ") // also without its wide spaces
	answers := finding.Of(want.Findings(), finding.Answer)
	if len(answers) == 0 {
		t.Fatal("the comparison has no answer")
	}
	for _, f := range answers {
		for sentence := range strings.SplitSeq(strings.Join(strings.Fields(f.Text()), " "), ". ") {
			if !strings.Contains(said, sentence) {
				t.Errorf("the page lacks %q", sentence)
			}
		}
	}
	if n := strings.Count(w.Body.String(), `class="wide"`); n < 2 {
		t.Errorf("%d charts; want the intervals and the runs' main chart", n)
	}
}

func TestProgressOfARun(t *testing.T) {
	trials := func(n int) *int { return &n }
	for _, c := range []struct {
		state  string
		trials *int
		want   string
	}{{store.Complete, trials(1), "1 trial"}, {store.Complete, trials(14), "14 trials"}, {store.Running, trials(2),
		"2 trials"},
		{store.Cut, nil, ""}, {store.Cut, trials(0), "cut in the first trial"}, {store.Cut, trials(1), "cut after 1 trial"},
		{store.Cut, trials(3),
			"cut after 3 trials"}} {
		if got := progress(words.English, store.Summary{State: c.state, Trials: c.trials}); got != c.want {
			t.Errorf("%s: %q, want %q", c.state, got, c.want)
		}
	}
}

// A page asks for the size of its run every three seconds: that reads this run's file, not those of all runs.
func TestSizeReadsOneRun(t *testing.T) {
	st, _ := storeOf(t)
	s := serverOf(t, Options{Store: st})
	log, err := st.Create(sample.Router())
	testenv.Must(t, err)
	defer log.Close()
	for id, want := range map[string]string{keep(t, st, sample.Single()): `"running":false`,
		log.ID(): `"running":true`} {
		if body := ask(s, "GET", "/run/"+id+"/size", nil, nil).Body.String(); !strings.Contains(body, want) {
			t.Errorf("run %s: %s, want %s", id, body, want)
		}
	}
	if !s.runs.read.IsZero() {
		t.Error("all runs were listed")
	}
}
