package live

import (
	"strings"
	"testing"
	"time"

	"pelt/model"
	"pelt/render/plain"
	"pelt/words"
)

func TestLossesByNow(t *testing.T) {
	line := model.Line{Layer: model.LayerReceiverBuffer, Host: "receiver", Cause: "SOCKET_RCVBUFF", Packets: 300}
	for want, f := range map[string]model.FlowSoFar{
		"1 000 sent, none lost": {Attempted: 1000, Received: 1000},
		"1 000 sent, lost: 300 receiver socket buffer full, 100 not yet explained": {Attempted: 1000, Received: 600,
			Lines: []model.Line{line}},
		"1 000 sent, lost: 200 receiver socket buffer full": {Attempted: 1000, Received: 800,
			Lines: []model.Line{line}},
	} {
		f.Name, f.Protocol, f.From, f.To = "up", model.UDP, "sender", "receiver"
		n := &Now{Started: Started{Nodes: []string{"sender", "receiver"}},
			Account: &Account{Flows: []model.FlowSoFar{f}}}
		if got := n.Losses(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestTold: what a run of the same command told before is not told again.
func TestTold(t *testing.T) {
	told := map[string]bool{}
	for n, want := range []string{"soak: about 10 s\na note\n", "another note\n", ""} {
		var out strings.Builder
		p := Plain{W: &out, Told: told}
		p.Take(Event{Started: &Started{Text: "soak: about 10 s"}})
		p.Take(Event{Note: []string{"a note", "another note", "a note"}[n]})
		if out.String() != want {
			t.Errorf("run %d tells %q, want %q", n, out.String(), want)
		}
	}
}

// TestTrialLine: a trial has one line, which ends behind a figure and says whether the trial is valid.
func TestTrialLine(t *testing.T) {
	text := "64 B, 50 kpps, repeat 2: sent 40.8 kpps, received 40.8 kpps, lost 0 %, goodput 20.9 Mbit/s"
	for _, c := range []struct {
		width int
		state model.State
		text  string
		want  string
	}{
		{100, model.Valid, text, " 6/12  " + text},
		{80, model.Valid, text, " 6/12  64 B, 50 kpps, repeat 2: sent 40.8 kpps, received 40.8 kpps, lost 0 % …"},
		{80, model.Invalid, text + " (invalid: the sender was starved of CPU)",
			" 6/12  64 B, 50 kpps, repeat 2: sent 40.8 kpps, received 40.8 kpps … (invalid)"},
		{60, model.Invalid, "64 B, 2.19 kpps: nothing learnt (invalid: the sender was starved of CPU)",
			" 6/12  64 B, 2.19 kpps: nothing learnt … (invalid)"},
		{80, model.Invalid, "64 B: lost 2 % (invalid: the sender was starved of CPU (its thread ran 2.6 % of the time): it kept 40 pps)",
			" 6/12  64 B: lost 2 % (invalid: the sender was starved of CPU …)"},
		{40, model.Valid, text, " 6/12  64 B, 50 kpps, repeat 2: sent …"},
		{0, model.Valid, text, " 6/12  " + text},
	} {
		var out strings.Builder
		(&Plain{W: &out, Redraw: c.width > 0, Width: c.width}).Take(Event{ID: 1,
			Trial: &Trial{Number: 6, Trials: 12, State: c.state, Text: c.text}})
		if got := strings.TrimPrefix(out.String(), "\r\x1b[K"); got != c.want+"\n" {
			t.Errorf("%d columns: %q, want %q", c.width, got, c.want)
		}
	}
}

// TestBrief: a brief reader is told what is to come, and then the setting and the time left, in one line that changes.
func TestBrief(t *testing.T) {
	var out strings.Builder
	p := Plain{W: &out, Redraw: true, Width: 80, Brief: true}
	at := time.Date(2026, 11, 14, 18, 30, 0, 0, time.UTC)
	p.Take(Event{ID: 1, Time: at, Note: "floods on purpose"})
	p.Take(Event{ID: 2, Time: at, Started: &Started{Text: "demo lab:router"}})
	p.Take(Event{ID: 3, Time: at, Next: &Next{Number: 1, Setting: "64 B", MeasuredSeconds: 1, LeftSeconds: 40}})
	p.status(at.Add(time.Second / 2))
	p.Take(Event{ID: 4, Time: at.Add(time.Second), Trial: &Trial{Number: 1, Text: "64 B: sent 1 kpps, lost 97 %"}})
	p.draw("")
	want := "floods on purpose\ndemo lab:router\n\r\x1b[Kabout 40 s left  64 B\r\x1b[K"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// TestNarrowed: a terminal that was made narrow has no line that would take two of its rows.
func TestNarrowed(t *testing.T) {
	var out strings.Builder
	p := Plain{W: &out, Redraw: true, Width: 80, Resize: func() int { return 30 }}
	at := time.Date(2026, 11, 14, 18, 30, 0, 0, time.UTC)
	p.Take(Event{ID: 1, Time: at, Next: &Next{Number: 1, Setting: "1472 B, 250 kpps, both ways", MeasuredSeconds: 9,
		LeftSeconds: 40}})
	p.status(at.Add(time.Second))
	_, line, _ := strings.Cut(out.String(), "\x1b[K")
	if n := plain.Width(line); n == 0 || n >= 30 {
		t.Errorf("%d columns: %q", n, line)
	}
}

// TestPlainInChinese: progress is told in the reader's language.
func TestPlainInChinese(t *testing.T) {
	var out strings.Builder
	p := Plain{W: &out, Redraw: true, Width: 80, Brief: true, Now: Now{Language: words.Chinese}}
	at := time.Date(2026, 11, 14, 18, 30, 0, 0, time.UTC)
	p.Take(Event{ID: 1, Time: at, Next: &Next{Number: 1, Setting: "64 B", MeasuredSeconds: 1, LeftSeconds: 40}})
	p.status(at.Add(time.Second / 2))
	if want := "\r\x1b[K约剩 40 s  64 B"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	text := "64 B：发包 40.8 kpps，收包 40.8 kpps，丢包 0 %（无效：发送端得不到 CPU（落后期间其线程只运行了 2.6 % 的时间）：要求 50 kpps，实际 40.8 kpps）"
	if got, want := shortened(words.Chinese, text, 100, model.Invalid),
		"64 B：发包 40.8 kpps，收包 40.8 kpps，丢包 0 %（无效：发送端得不到 CPU …）"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
