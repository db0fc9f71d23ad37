package words

import (
	"errors"
	"regexp"
	"slices"
	"testing"
)

func TestFind(t *testing.T) {
	for _, c := range []struct {
		environment map[string]string
		want        Language
	}{
		{nil, English},
		{map[string]string{"LANG": "zh_CN.UTF-8"}, Chinese},
		{map[string]string{"LANG": "zh_TW.utf8"}, Chinese},
		{map[string]string{"LANG": "zh_CN.GB18030"}, English},
		{map[string]string{"LANG": "zh_CN"}, English},
		{map[string]string{"LANG": "de_DE.UTF-8@euro"}, English},
		{map[string]string{"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, English},
		{map[string]string{"LANG": "zh_CN.UTF-8", "LC_MESSAGES": "POSIX"}, English},
		{map[string]string{"LANG": "C.UTF-8", "LC_MESSAGES": "zh_CN.UTF-8"}, Chinese},
		{map[string]string{"LANG": "zh_CN.UTF-8", "PELT_LANG": "en"}, English},
		{map[string]string{"LC_ALL": "C", "PELT_LANG": "zh-CN"}, Chinese},
		{map[string]string{"LANG": "zh_CN.UTF-8", "PELT_LANG": "fr"}, English},
	} {
		if got := Find(func(name string) string { return c.environment[name] }); got != c.want {
			t.Errorf("%v: got %q, want %q", c.environment, got, c.want)
		}
	}
}

func TestAccepted(t *testing.T) {
	for header, want := range map[string]Language{"": English, "zh-CN,zh;q=0.9,en;q=0.8": Chinese, "en-US,en;q=0.9,zh;q=0.8": English,
		"fr, zh;q=0.5": Chinese, "zh;q=0, en": English, "de": English, "*": English} {
		if got := Accepted(header); got != want {
			t.Errorf("%q: got %q, want %q", header, got, want)
		}
	}
}

func TestParse(t *testing.T) {
	for name, want := range map[string]Language{"en": English, "zh": Chinese, "zh_CN": Chinese, "ZH-hans": Chinese} {
		if got, err := Parse(name); got != want || err != nil {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
	for _, name := range []string{"", "fr", "zhx"} {
		if _, err := Parse(name); err == nil {
			t.Errorf("%q is taken", name)
		}
	}
}

// TestSayf: a Chinese text has no space between two Han characters, and a value keeps its own.
func TestSayf(t *testing.T) {
	for _, c := range []struct {
		language Language
		format   string
		values   []any
		want     string
	}{
		{Chinese, "%s to %s", []any{"发送端", "接收端"}, "发送端到接收端"},
		{Chinese, "%s to %s", []any{"fra-1", "接收端"}, "fra-1 到接收端"},
		{Chinese, "%s to %s", []any{"3 s", "10 s"}, "3 s 到 10 s"},
		{Chinese, "%s to %s", []any{"我的 电脑", "接收端"}, "我的 电脑到接收端"},
		{Chinese, "no interface of this host is named %q", []any{"eth 0"}, `no interface of this host is named "eth 0"`},
		{Chinese, "%[1]s %[2]s", []any{"10 %", "两端主机之间（排除法）"}, "两端主机之间（排除法）10 %"},
		{English, "%s to %s", []any{"a", "b"}, "a to b"},
	} {
		if got := c.language.Sayf(c.format, c.values...); got != c.want {
			t.Errorf("%q of %v is %q, want %q", c.format, c.values, got, c.want)
		}
	}
}

// TestErrorInOtherOrder: an error may stand in another place of a Chinese sentence than of the English one.
func TestErrorInOtherOrder(t *testing.T) {
	err := Errorf("run %s: %w in %s: give an id that pelt list shows, not a file", "a", errors.New("no such run"), "/b")
	if got := Chinese.Error(err); got != "运行 a：/b 里不存在：请给出 pelt list 列出的编号，不是文件" {
		t.Error(got)
	}
}

var mark = regexp.MustCompile(`%(\[\d\])?(\.\d+)?(\[\d\])?[a-z%]|#|@|\{[^}]*\}`)

// TestJoined: a Chinese sentence has its spaces where a value meets it, and no value changes.
func TestJoined(t *testing.T) {
	for _, c := range []struct {
		join             func(l Language, text, more string) string
		language         Language
		text, more, want string
	}{
		{Language.Bracketed, Chinese, "lab:router", "上行", "lab:router（上行）"},
		{Language.Bracketed, Chinese, "差别不显著", "-0.5 %", "差别不显著（-0.5 %）"},
		{Language.Bracketed, Chinese, "148 kpps", "146–150", "148 kpps (146–150)"},
		{Language.Bracketed, English, "2", "at least", "2 (at least)"},
		{Language.Append, Chinese, "1 kpps", "发不出来", "1 kpps 发不出来"},
		{Language.Append, Chinese, "丢包", "5 %", "丢包 5 %"},
		{Language.Append, Chinese, "5 %", "丢失", "5 % 丢失"},
		{Language.Append, Chinese, "lab:fast（plain）", " 饱和在", "lab:fast（plain）饱和在"},
		{Language.Append, Chinese, "路由器", "的", "路由器的"},
		{Language.Append, Chinese, "与 ", "接收端", "与接收端"},
		{Language.Append, Chinese, "接收端", " 的控制连接", "接收端的控制连接"},
		{Language.Append, Chinese, "接收端", " ", "接收端 "},
		{Language.Append, Chinese, "规则1", "：", "规则1："},
		{Language.Append, Chinese, "杀死， ", "pelt tune revert", "杀死，pelt tune revert"},
		{Language.Append, Chinese, "pelt ", "（默认）", "pelt（默认）"},
		{Language.Append, Chinese, "", " 1", " 1"},
		{Language.Append, English, "1 kpps", "发", "1 kpps发"},
		{Language.Append, English, "a", " b", "a b"},
	} {
		if got := c.join(c.language, c.text, c.more); got != c.want {
			t.Errorf("%q and %q: %q, want %q", c.text, c.more, got, c.want)
		}
	}
}

// TestSpaces: no Chinese text has a space between two Han characters, or beside a full-width mark. The one before a value
// goes when the value comes.
func TestSpaces(t *testing.T) {
	space := regexp.MustCompile(`\p{Han} \p{Han}|[，。；：、！？（）] [^{]|. [，。；：、！？（）]`)
	for _, table := range []map[string]string{chinese, chineseSentences, chineseTalk, chineseHelp, chineseKinds} {
		for english, said := range table {
			if found := space.FindString(said); found != "" {
				t.Errorf("%q has a space too many in Chinese: %q", english, found)
			}
		}
	}
}

// A text keeps its verbs and marks, whatever their order.
func TestMarks(t *testing.T) {
	plain := func(text string) []string {
		marks := mark.FindAllString(text, -1)
		for i, m := range marks {
			if marks[i] = regexp.MustCompile(`\[\d\]`).ReplaceAllString(m, ""); marks[i] == "%r" {
				marks[i] = "%h"
			}
		}
		slices.Sort(marks)
		return marks
	}
	codes := Chinese.Codes()
	for _, table := range []map[string]string{chinese, chineseTalk, chineseHelp, chineseKinds} {
		for english, said := range table {
			if slices.Contains(codes, english) { // whose English is elsewhere
				continue
			}
			if !slices.Equal(plain(english), plain(said)) {
				t.Errorf("%q has other marks in Chinese: %q", english, said)
			}
		}
	}
}

// A setting of links is said by its parts, with the node if it is of one.
func TestLinkSettings(t *testing.T) {
	for english, want := range map[string]string{"Link rate": "链路速率", "no link loss": "链路无丢包", "% link delay": "链路时延 %",
		"% link-receiver loss": "接收端链路丢包 %", "no link-wan mtu": "wan 链路无 MTU", "a link fails": "a link fails"} {
		if got := Chinese.Say(english); got != want {
			t.Errorf("%s: %s, want %s", english, got, want)
		}
	}
}

// A metric of a family is said by its parts, and only if both are of the family.
func TestFamilies(t *testing.T) {
	for english, want := range map[string]string{"Round trip, 99.9 %": "往返时延 99.9 %", "Set-up, least": "建立用时最小值",
		"Sender busiest core": "发送端最忙核", "receiver link speed": "接收端链路速率", "router mtu": "路由器 MTU", "Core steal": "单核被宿主机占用", "Round trip, user": "Round trip, user",
		"Router, median": "Router, median"} {
		if got := Chinese.Say(english); got != want {
			t.Errorf("%s: %s, want %s", english, got, want)
		}
	}
}
