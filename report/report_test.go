package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"pelt/model"
	"pelt/report/internal/sample"
	"pelt/unit"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (make it with: go test ./report -update)", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (see it with: go test ./report -update && git diff)\n--- got\n%s\n--- want\n%s", path, got, want)
	}
}

func document(t *testing.T, name string) model.Document {
	t.Helper()
	for _, d := range sample.All() {
		if d.Name == name {
			return d.Doc
		}
	}
	t.Fatalf("no sample %q", name)
	return model.Document{}
}

func TestTextGolden(t *testing.T) {
	for _, c := range []struct {
		doc   string
		width int
	}{{"router", 80}, {"router", 120}, {"single", 80}, {"both", 80}, {"tcp", 80}, {"loss", 80}, {"invalid", 80}, {"aborted", 80}, {"roundtrip", 80}, {"ipv6", 80}, {"streams", 80}, {"rates", 80}, {"paced", 80}, {"paced", 132}, {"sweep", 80}, {"sweep", 132}, {"ledger", 80}, {"ledger", 132}, {"unwatched", 80}, {"bench", 80}, {"bench", 140}, {"benchlab", 80}, {"benchlab", 140}, {"cc", 80}, {"cc", 40}, {"cc", 132}, {"ccmix", 80}, {"ccmix", 40}, {"cchostile", 80}, {"soak", 80}, {"soak", 120}, {"soaklong", 80}, {"soakcut", 80}, {"soakhostile", 80}, {"nasty", 80}, {"empty", 80}, {"zero", 80}} {
		t.Run(fmt.Sprintf("%s/%d", c.doc, c.width), func(t *testing.T) {
			var b bytes.Buffer
			if err := Text(&b, document(t, c.doc), c.width, false); err != nil {
				t.Fatal(err)
			}
			golden(t, fmt.Sprintf("%s-%d.txt", c.doc, c.width), b.Bytes())
		})
	}
}

var style = regexp.MustCompile("\x1b\\[[0-9;]*m")

func TestTextFitsItsWidth(t *testing.T) {
	for _, d := range sample.All() {
		for _, width := range []int{0, 60, 80, 100, 132, 1000} {
			var b bytes.Buffer
			if err := Text(&b, d.Doc, width, true); err != nil {
				t.Fatal(err)
			}
			plain := style.ReplaceAllString(b.String(), "")
			if strings.ContainsAny(plain, "\x1b\x00\u202e\r") || !utf8.ValidString(plain) {
				t.Errorf("%s at %d: outside control characters reached the terminal: %q", d.Name, width, plain)
			}
			for _, line := range strings.Split(plain, "\n") {
				// Below 80 the least columns may not fit; one word of prose never breaks.
				if n := utf8.RuneCountInString(line); width >= 80 && n > min(width, maxWidth) && strings.Count(strings.TrimSpace(line), " ") > 1 {
					t.Errorf("%s at %d: line of %d characters: %q", d.Name, width, n, line)
				}
			}
		}
	}
}

func TestTextSays(t *testing.T) {
	for _, c := range []struct {
		doc  string
		want []string
	}{
		{"loss", []string{"3.1 % lost: 1.9 % receiver socket buffer full (SOCKET_RCVBUFF)", "at router (tx_dropped)", "0.3 % unattributed"}},
		{"invalid", []string{"64!", "Not counted", "invalid: flow up: the sender kept 610 kpps of the 900 kpps asked"}},
		{"aborted", []string{"aborted: interrupted", "not complete", "pelt run --resume"}},
		{"tcp", []string{"writes", "segments", "resent", "cubic"}},
		{"roundtrip", []string{"RTT"}},
		{"both", []string{"up: sender to receiver, UDP", "down: receiver to sender, UDP", "200 Mbit/s"}},
	} {
		var b bytes.Buffer
		if err := Text(&b, document(t, c.doc), 200, false); err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s lacks %q:\n%s", c.doc, want, b.String())
			}
		}
	}
}

func TestLine(t *testing.T) {
	for _, c := range []struct {
		name string
		r    model.Result
		want string
	}{
		{"udp", sample.Loss().Results[1], "512 B: 75.0 kpps sent, 72.7 kpps received, 3.1 % lost, 298 Mbit/s"},
		{"nothing lost", sample.Loss().Results[0], "64 B: 150 kpps sent, 150 kpps received, nothing lost, 76.8 Mbit/s"},
		{"second trial", sample.TCP().Results[3], "1460 B (trial 2): 76.1 k/s writes, 889 Mbit/s, 40 resent"},
		{"aborted", sample.Aborted().Results[2], "1472 B: nothing measured (aborted: the receiver's control connection went away)"},
		{"zero", model.Result{State: model.Valid}, "the only setting"},
		{"invalid", sample.Invalid().Results[0], "64 B: 610 kpps sent, 80.0 kpps received, 86.9 % lost, 41.0 Mbit/s (invalid: missed 32 % of its schedule)"},
		{"some missed", model.Result{State: model.Valid, Flows: []model.FlowResult{{Protocol: model.UDP, Planned: 5000, Attempted: 4997, SendPPS: 999.4, ReceivePPS: 999.4, GoodputBPS: 512e3}}},
			"the only setting: 999 pps sent, 999 pps received, nothing lost, 512 kbit/s, 0.06 % of the schedule missed"},
		{"router", sample.Bench().Results[0], "64 B frames, up, UDP, plain: 446 kpps sent, 146 kpps received, 67.3 % lost, 21.0 Mbit/s; router 66 % idle, 32 % sirq"},
		{"transfer", sample.Controls().Results[0], "control cubic, link loss 0 %: done in 6.86 s, 93.3 Mbit/s, 44 resent"},
		{"cut transfer", cutTransfer(), "control reno, link loss 10 %: not done in 60.0 s, 9.79 Mbit/s, 5 072 resent"},
		{"never sent", model.Result{State: model.Aborted, Why: "interrupted", Flows: []model.FlowResult{{Protocol: model.UDP}}}, "the only setting: nothing measured (aborted: interrupted)"},
	} {
		if got := Line(c.r); got != c.want {
			t.Errorf("%s: Line = %q; want %q", c.name, got, c.want)
		}
	}
}

func TestCSVGolden(t *testing.T) {
	for _, name := range []string{"both", "tcp", "aborted", "ledger", "unwatched", "sweep", "paced", "empty"} {
		var b bytes.Buffer
		if err := CSV(&b, document(t, name)); err != nil {
			t.Fatal(err)
		}
		golden(t, name+".csv", b.Bytes())
	}
}

func TestCSVShape(t *testing.T) {
	for _, d := range sample.All() {
		t.Run(d.Name, func(t *testing.T) {
			var b bytes.Buffer
			if err := CSV(&b, d.Doc); err != nil {
				t.Fatal(err)
			}
			records, err := csv.NewReader(&b).ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			rows := 0
			for _, r := range d.Doc.Results {
				rows += max(1, len(r.Flows))
				for _, f := range r.Flows {
					if d.Doc.Plan.Command == "cc" && f.TCP != nil {
						rows += len(f.TCP.PerStream)
					}
				}
			}
			if len(records) != rows+1 {
				t.Errorf("%d records; want a header and %d", len(records), rows)
			}
			seen := map[string]bool{}
			for _, h := range records[0] {
				if seen[h] {
					t.Errorf("column %q stands twice", h)
				}
				seen[h] = true
			}
			for _, record := range records {
				for _, f := range record {
					if strings.HasPrefix(f, "=") || strings.HasPrefix(f, "@") || strings.ContainsAny(f, "\x00\x1b\n") {
						t.Errorf("field %q could act in a spreadsheet or a terminal", f)
					}
				}
			}
		})
	}
}

// A knob may have the name of a figure: both are kept.
func TestCSVKnobBesideFigure(t *testing.T) {
	d := sample.Loss()
	for i := range d.Results {
		d.Results[i].Cell["loss_ratio"] = model.Number(0.25)
	}
	var b bytes.Buffer
	if err := CSV(&b, d); err != nil {
		t.Fatal(err)
	}
	records, _ := csv.NewReader(&b).ReadAll()
	at := func(name string) string {
		for i, h := range records[0] {
			if h == name {
				return records[2][i]
			}
		}
		return "no such column"
	}
	if got := at("set_loss_ratio"); got != "0.25" {
		t.Errorf("set_loss_ratio = %q; want 0.25", got)
	}
	if got := at("loss_ratio"); got != "0.031" {
		t.Errorf("loss_ratio = %q; want 0.031", got)
	}
	if got := at("payload_bytes"); got != "512" {
		t.Errorf("payload_bytes = %q; want 512", got)
	}
}

// The layers and what is unattributed make up what was lost, in every record.
func TestCSVLedgerBalances(t *testing.T) {
	for _, d := range []model.Document{sample.Ledger(), sample.Unwatched(), sample.Loss()} {
		var b bytes.Buffer
		if err := CSV(&b, d); err != nil {
			t.Fatal(err)
		}
		records, err := csv.NewReader(&b).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		for _, record := range records[1:] {
			var lost, sum uint64
			layers := 0
			for i, name := range records[0] {
				n, _ := strconv.ParseUint(record[i], 10, 64)
				switch {
				case name == "lost_packets":
					lost = n
				case name == "unattributed_packets":
					sum += n
				case strings.HasPrefix(name, "lost_"):
					sum += n
					layers++
				}
			}
			if lost != sum || layers != len(model.Layers()) {
				t.Errorf("%d lost, %d in the columns of %d layers and unattributed: %q", lost, sum, layers, record)
			}
		}
	}
}

func TestJSONRoundTrip(t *testing.T) {
	for _, d := range sample.All() {
		t.Run(d.Name, func(t *testing.T) {
			var once, twice bytes.Buffer
			if err := JSON(&once, d.Doc); err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(once.Bytes(), []byte(": null")) {
				t.Error("the document holds null where a list or an object belongs")
			}
			back, err := ReadJSON(bytes.NewReader(once.Bytes()), d.Name)
			if err != nil {
				t.Fatalf("what JSON wrote cannot be read: %v", err)
			}
			if err := JSON(&twice, back); err != nil {
				t.Fatal(err)
			}
			// What was not UTF-8 is written as an escape the first time.
			if first := bytes.ReplaceAll(once.Bytes(), []byte(`\ufffd`), []byte("\ufffd")); !bytes.Equal(first, twice.Bytes()) {
				t.Error("a document changes when it is read and written again")
			}
		})
	}
}

func TestJSONWarnsOfWhatIsNoNumber(t *testing.T) {
	d := sample.Numbers()
	var b bytes.Buffer
	if err := JSON(&b, d); err != nil {
		t.Fatal(err)
	}
	back, err := ReadJSON(&b, "x")
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(back.Warnings, "\n")
	for _, want := range []string{"results[0].flows[0].send_pps was not a number", "findings[0].values.pps was not a number"} {
		if !strings.Contains(all, want) {
			t.Errorf("warnings lack %q:\n%s", want, all)
		}
	}
	if _, there := back.Findings[0].Values["pps"]; there {
		t.Error("an infinite value of a finding was written; want it left out")
	}
	if len(d.Warnings) != 1 || !math.IsNaN(d.Results[0].Flows[0].SendPPS) {
		t.Error("JSON changed the document it was given")
	}
}

// Whatever numbers, times and names a document holds, every report can be written.
func TestNothingStopsAReport(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d model.Document
		fillRandom(t, reflect.ValueOf(&d).Elem(), 0)
		var b, rest bytes.Buffer
		if err := JSON(&b, d); err != nil {
			t.Fatal(err)
		}
		if !json.Valid(b.Bytes()) {
			t.Fatalf("not JSON: %s", b.String())
		}
		d.Plan.Command = rapid.SampledFrom([]string{"curve", "sweep", "router", "cc", "soak"}).Draw(t, "command")
		if err := errors.Join(Text(&rest, d, 80, true), CSV(&rest, d), SeriesCSV(&rest, d), HTML(&rest, d)); err != nil {
			t.Fatal(err)
		}
	})
}

func fillRandom(t *rapid.T, v reflect.Value, depth int) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Unix(rapid.Int64Range(-1e12, 1e12).Draw(t, "time"), 0)))
		return
	case unit.Rate:
		v.Set(reflect.ValueOf(unit.PacketRate(rapid.Uint64Range(1, 1e9).Draw(t, "rate"))))
		return
	case netip.Addr:
		v.Set(reflect.ValueOf(netip.AddrFrom16([16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "address")))))
		return
	case unit.BitRate:
		v.SetUint(rapid.Uint64Range(0, 1e12).Draw(t, "bit rate"))
		return
	case model.Value:
		v.Set(reflect.ValueOf(model.Number(rapid.Float64().Draw(t, "level"))))
		return
	}
	switch v.Kind() {
	case reflect.Float64:
		v.SetFloat(rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1)})).Draw(t, "number"))
	case reflect.String:
		v.SetString(rapid.String().Draw(t, "text"))
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.Int64Range(-1<<31, 1<<31-1).Draw(t, "int"))
	case reflect.Uint64:
		v.SetUint(rapid.Uint64().Draw(t, "count"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "there") {
			v.Set(reflect.New(v.Type().Elem()))
			fillRandom(t, v.Elem(), depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fillRandom(t, v.Field(i), depth+1)
		}
	case reflect.Slice:
		n := rapid.IntRange(0, 2).Draw(t, "length")
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fillRandom(t, v.Index(i), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		if rapid.Bool().Draw(t, "entry") {
			e := reflect.New(v.Type().Elem()).Elem()
			fillRandom(t, e, depth+1)
			v.SetMapIndex(reflect.ValueOf("key"), e)
		}
	}
}

func TestReadJSONFailingReader(t *testing.T) {
	broken := errors.New("cable pulled")
	if _, err := ReadJSON(failing{broken}, "x"); !errors.Is(err, broken) {
		t.Errorf("ReadJSON = %v; want the reader's error", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error)  { return 0, f.err }
func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestWritersReportTheDisk(t *testing.T) {
	full := errors.New("no space left on device")
	d := sample.Router()
	for name, write := range map[string]func() error{
		"JSON": func() error { return JSON(failing{full}, d) }, "CSV": func() error { return CSV(failing{full}, d) },
		"seconds": func() error { return SeriesCSV(failing{full}, d) },
		"HTML":    func() error { return HTML(failing{full}, d) }, "Text": func() error { return Text(failing{full}, d, 80, false) },
	} {
		if err := write(); !errors.Is(err, full) {
			t.Errorf("%s = %v; want the writer's error", name, err)
		}
	}
}

// The file was written by the first version: no later one may lose any of it.
func TestVersion1StaysReadable(t *testing.T) {
	old, err := os.ReadFile(filepath.Join("testdata", "version1", "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := ReadJSON(bytes.NewReader(old), "run.json")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := JSON(&b, doc); err != nil {
		t.Fatal(err)
	}
	var was, is any
	if err := errors.Join(json.Unmarshal(old, &was), json.Unmarshal(b.Bytes(), &is)); err != nil {
		t.Fatal(err)
	}
	if at := missing(was, is, ""); at != "" {
		t.Errorf("%s of version 1 is lost or changed when the document is read and written", at)
	}
}

// missing names the first value of was that is has not, "" if there is none.
func missing(was, is any, at string) string {
	switch w := was.(type) {
	case map[string]any:
		m, _ := is.(map[string]any)
		for k, v := range w {
			if x := missing(v, m[k], at+"."+k); x != "" {
				return x
			}
		}
	case []any:
		l, _ := is.([]any)
		if len(l) != len(w) {
			return at
		}
		for i := range w {
			if x := missing(w[i], l[i], fmt.Sprintf("%s[%d]", at, i)); x != "" {
				return x
			}
		}
	default:
		if was != is {
			return at
		}
	}
	return ""
}

// Whatever document can be read, every report of it can be written.
func FuzzReports(f *testing.F) {
	old, err := os.ReadFile(filepath.Join("testdata", "version1", "run.json"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(old)
	for _, s := range []string{"", "{", `{"format":"flent"}`, `{"format":"pelt/run/1"}`, `{"format":"pelt/run/1","results":[{"state":"valid","flows":[{"protocol":"tcp"}]}]}`, `{"format":"pelt/run/1","results":[{"state":"aborted","cell":{"a":"b"}}]}`} {
		f.Add([]byte(s))
	}
	for _, d := range []model.Document{sample.Ledger(), sample.Unwatched(), sample.SmallSweep()} {
		var b bytes.Buffer
		if err := JSON(&b, d); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		doc, err := ReadJSON(bytes.NewReader(b), "fuzz")
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n") {
				t.Fatalf("error in several lines: %q", err)
			}
			return
		}
		var text, again bytes.Buffer
		if err := errors.Join(JSON(&again, doc), Text(&text, doc, 80, true), CSV(&text, doc), HTML(&text, doc),
			Explain(&text, doc, Ask{All: true}, 80, true), ExplainJSON(&text, doc, Ask{}), ExplainHTML(&text, doc, Ask{All: true})); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadJSON(&again, "again"); err != nil {
			t.Fatalf("what was read and written cannot be read: %v", err)
		}
	})
}

// Outside text must stay text: nothing of it may become a tag, a script or a style.
func TestHTMLEscapes(t *testing.T) {
	var b bytes.Buffer
	if err := HTML(&b, sample.Nasty()); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	if n := strings.Count(page, "<script"); n != 2 {
		t.Errorf("%d script tags; want 2", n)
	}
	for _, bad := range []string{"<img", "alert('x')</script>", "\x1b", "\x00", "\u202e", "http-equiv=\"refresh\""} {
		if strings.Contains(page, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
}

// Nothing in the page may point outside: not an address, not an import.
func TestHTMLPointsNowhere(t *testing.T) {
	var b bytes.Buffer
	if err := HTML(&b, sample.Router()); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"src=", "@import", "url(", "fetch(", "XMLHttpRequest", "WebSocket", "<link rel=\"stylesheet", "//cdn"} {
		if strings.Contains(b.String(), bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	if !strings.Contains(b.String(), "default-src &#39;none&#39;") {
		t.Error("no content security policy that forbids fetching")
	}
	if !strings.Contains(b.String(), "Permission is hereby granted") {
		t.Error("the chart library's licence is not in the page")
	}
}
