package plain

import (
	"math"
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"router":              "router",
		"a\x1b[2Jb":           "a·[2Jb",
		"a\nb\tc\u2028d":      "a b c d",
		"\u202egpj.exe":       "·gpj.exe",
		"a\u200bb\ufeffc":     "a·b·c",
		"\x9b31m \u009b":      "·31m ·",
		"日本 é µ":              "日本 é µ",
		"\xff\xfe":            "·",
		"blank\u3164letter":   "blank·letter",
		"tag\U000e0041\ue000": "tag··",
	} {
		if got := Text(in); got != want {
			t.Errorf("Text(%q) = %q; want %q", in, got, want)
		}
	}
}

// TestCutFigures: a figure is whole or is left out.
func TestCutFigures(t *testing.T) {
	for in, want := range map[string]string{
		"buffer of 16384 B":   "buffer of …",
		"buffers 212 992 B":   "buffers …",
		"down by 16.53 %":     "down by …",
		"no figure goes on":   "no figure g…",
		"got 123 kpps more":   "got 123 kpp…",
		"1234567890123456789": "12345678901…",
	} {
		if got := Cut(in, 12); got != want {
			t.Errorf("Cut(%q, 12) = %q; want %q", in, got, want)
		}
	}
}

func TestWidthAndCut(t *testing.T) {
	for _, c := range []struct {
		in    string
		width int
		cut   string // to 5 columns
	}{
		{"", 0, ""}, {"abcde", 5, "abcde"}, {"abcdef", 6, "abcd…"}, {"日本語", 6, "日本…"}, {"e\u0301tage", 5,
			"e\u0301tage"}, {"🚀🚀🚀", 6, "🚀🚀…"},
	} {
		if got := Width(c.in); got != c.width {
			t.Errorf("Width(%q) = %d; want %d", c.in, got, c.width)
		}
		if got := Cut(c.in, 5); got != c.cut || Width(got) > 5 {
			t.Errorf("Cut(%q, 5) = %q; want %q", c.in, got, c.cut)
		}
	}
}

func TestGlue(t *testing.T) {
	in := "carries 412 kpps, 9.5 Mbit/s; 3 % in 24 h or 10 more of 1 400 000."
	want := "carries 412\u00a0kpps, 9.5\u00a0Mbit/s; 3\u00a0% in 24\u00a0h or 10 more of 1\u00a0400\u00a0000."
	if got := Glue(in); got != want {
		t.Errorf("Glue(%q) = %q; want %q", in, got, want)
	}
	for in, want := range map[string]string{
		"第 3 次试验，每 8 ms，再重复约 12 次":      "第_3_次试验，每_8_ms，再重复约_12_次",
		"1518 B 帧，560 µs 以内，64 B 时":     "1518_B_帧，560_µs_以内，64_B_时",
		"在 1 h 12 min 1 s，6 核，40 min 后": "在 1_h_12_min_1_s，6_核，40_min_后",
		"每次 64 B 的写入（默认 3）":             "每次 64_B 的写入（默认_3）",
		"CUBIC 10 %，BBR 2 条流 64 B 上行":   "CUBIC 10_%，BBR 2_条流 64_B 上行",
	} {
		if got := strings.ReplaceAll(Glue(in), "\u00a0", "_"); got != want {
			t.Errorf("Glue(%q) = %q; want %q", in, got, want)
		}
		for _, p := range Pieces(Glue(in)) {
			if strings.HasPrefix(p.Text, "\u00a0") || strings.HasSuffix(p.Text, "\u00a0") {
				t.Errorf("%q breaks at %q", in, p.Text)
			}
		}
	}
	if got := Spaces(want); got != in {
		t.Errorf("Spaces(%q) = %q; want %q", want, got, in)
	}
}

func TestWrapWhole(t *testing.T) {
	for in, want := range map[string]string{
		"one two three four":          "- one two|  three|  four",
		"see /a/very/long/path there": "- see /a/very/long/path there",
	} {
		if got := strings.Join(WrapWhole(in, "- ", "  ", 9), "|"); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestSpark(t *testing.T) {
	for _, c := range []struct {
		values        []float64
		top           float64
		columns, rows int
		want          string
	}{
		{nil, 0, 5, 1, ""},
		{[]float64{0, 1, 4, 8}, 8, 5, 1, "·▁▄█"},
		{[]float64{0, 8, 9}, 16, 5, 2, "  ▁\n·██"},
		{[]float64{9, 8, 8, 2, 2}, 8, 2, 1, "█▄"}, // a column is the mean of two or three
		{[]float64{0.001}, 8, 5, 1, "▁"},
		{[]float64{20}, 8, 5, 1, "█"},
		{[]float64{8, math.NaN(), math.Inf(1), 4}, 8, 2, 1, "█▄"},
		{[]float64{math.NaN(), 8}, 8, 2, 1, " █"},
	} {
		if got := strings.Join(Spark(c.values, c.top, c.columns, c.rows), "\n"); got != c.want {
			t.Errorf("%v of %g in %dx%d: %q, want %q", c.values, c.top, c.columns, c.rows, got, c.want)
		}
	}
}

// Chinese is broken between words, but no line begins or ends with a mark that belongs to its neighbour, and no figure
// leaves its unit, or what it counts.
func TestWrapChinese(t *testing.T) {
	const text = "路由器 10.0.1.1 未开启转发（net.ipv4.ip_forward=0），丢弃 3 012 个包。不丢包最高 393 kpps（18 B）；再快，先丢在路由器的网卡环形缓冲区。"
	for columns := 32; columns < 90; columns++ {
		lines := Wrap(text, "", "", columns)
		for _, l := range lines {
			if Width(l) > columns {
				t.Errorf("%d columns: %q has %d", columns, l, Width(l))
			}
			if strings.IndexAny(l, "，。；：）") == 0 || strings.HasSuffix(l, "（") {
				t.Errorf("%d columns: %q begins or ends with a mark of its neighbour", columns, l)
			}
			if strings.HasSuffix(l, "393") || strings.HasSuffix(l, "3") {
				t.Errorf("%d columns: %q ends within a figure", columns, l)
			}
		}
		for _, whole := range []string{"路由器", "未开启", "转发", "丢弃", "3 012 个", "不丢包", "环形", "缓冲区"} {
			if got, want := strings.Count(strings.Join(lines, "|"), whole), strings.Count(text, whole); got != want {
				t.Errorf("%d columns: %q stands %d times, want %d, in %q", columns, whole, got, want, lines)
			}
		}
		if got := strings.ReplaceAll(strings.Join(lines, ""), " ", ""); got != strings.ReplaceAll(text, " ", "") {
			t.Errorf("%d columns: got %q", columns, got)
		}
	}
}

func TestTable(t *testing.T) {
	rows := [][]string{{"Host", "Speed", ""}, {"路由器", "1 Gbit/s", "of a long cable"}, {"b"}}
	for most, want := range map[int]string{
		0:  "Host    Speed|路由器  1 Gbit/s  of a long cable|b",
		26: "Host    Speed|路由器  1 Gbit/s  of a|                  long|                  cable|b",
		9:  "Host    Speed|路由器  1 Gbit/s  of a|                  long|                  cable|b", // no word is cut
	} {
		if got := strings.Join(Table(rows, most), "|"); got != want {
			t.Errorf("at most %d: %q, want %q", most, got, want)
		}
	}
}
