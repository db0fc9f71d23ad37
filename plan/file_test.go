package plan

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pelt/internal/testenv"
	"pelt/model"
	"pelt/test/golden"
	"pelt/words"
)

// basis is the plan whose file the edits of testdata/files.txt change.
func basis(t testing.TB, preset Preset) string {
	t.Helper()
	p, err := preset.Of("lab:router")
	testenv.Must(t, err)
	text, err := Print(p)
	testenv.Must(t, err)
	return string(text)
}

// wrongFile is the form of an error about a plan's file: the file, the line if it is known, and one line of words.
var wrongFile = regexp.MustCompile(`^f\.yaml(:[0-9]+)?: [^\n]{5,380}$`)

// checkChinese: an error about a file is said in Chinese but for what is cut and what the YAML library says.
func checkChinese(t *testing.T, err error) {
	t.Helper()
	said := words.Chinese.Error(err)
	if !regexp.MustCompile(`\p{Han}`).MatchString(said) || strings.Contains(said, "%!") {
		t.Errorf("%v: is in Chinese %q", err, said)
	}
}

// TestFiles: each line of the file says what to put in place of what in a printed plan of curve, or of ndr. Below
// stands what that changes, or what is wrong with it.
func TestFiles(t *testing.T) {
	texts := map[string]string{"curve": basis(t, Curve), "ndr": basis(t, Ndr)}
	golden.Table(t, "testdata/files.txt", func(question string) string {
		preset, edit, _ := strings.Cut(question, " ")
		old, put, _ := strings.Cut(edit, " -> ")
		for _, s := range []*string{&old, &put} {
			*s, _ = strconv.Unquote(`"` + strings.ReplaceAll(*s, `"`, `\"`) + `"`)
		}
		base := texts[preset]
		if old == "" || !strings.Contains(base, old) {
			t.Fatalf("%s: the plan has no %q:\n%s", question, old, base)
		}
		p, err := Parse([]byte(strings.Replace(base, old, put, 1)), "f.yaml")
		if err != nil {
			if !wrongFile.MatchString(err.Error()) {
				t.Errorf("%s: an error of another form: %v", question, err)
			}
			checkChinese(t, err)
			return err.Error()
		}
		if back := reread(t, p); !reflect.DeepEqual(back, p) {
			t.Errorf("%s: %+v\nprinted and read is\n%+v", question, p, back)
		}
		was, err := Parse([]byte(base), "f.yaml")
		testenv.Must(t, err)
		if text := changes(printed(t, was), printed(t, p)); text != "" {
			return text
		}
		return "the same"
	})
}

// TestNoPlans: what is no plan at all is refused with its line, before it costs memory or time.
func TestNoPlans(t *testing.T) {
	base := basis(t, Curve)
	for name, c := range map[string]struct{ text, want string }{
		"empty":              {"", "f.yaml: is empty; want a plan as --print-plan writes it"},
		"only a comment":     {"# hello\n", "f.yaml: is empty; want a plan as --print-plan writes it"},
		"null":               {"~", "f.yaml:1: want fields as name: value"},
		"a list":             {"- a\n", "f.yaml:1: want fields as name: value"},
		"a word":             {"hello", "f.yaml:1: want fields as name: value"},
		"not yaml":           {"a: [1,\nb: }", "f.yaml:2: not YAML: "},
		"not closed":         {"a: b\nc: [d\ne: f\n", "f.yaml:2: not YAML: did not find expected ',' or ']'"},
		"no value":           {"a: b\nc: d\n  e: f\n", "f.yaml:3: not YAML: mapping values are not allowed"},
		"binary":             {"\x00\xff\xfe", "f.yaml: is not text in UTF-8"},
		"too large":          {strings.Repeat("#", MaxBytes+1), "f.yaml: is 1048577 bytes; a plan is at most 1048576"},
		"deep flow":          {strings.Repeat("[", 5000), "f.yaml:1: not YAML: "},
		"deep flow in lines": {strings.Repeat("[\n", 5000), "f.yaml:5000: not YAML: "},
		"deep blocks":        {strings.Repeat("a: - ", 1) + strings.Repeat("- ", 5000), "f.yaml:1: not YAML: "},
		"deep maps": {strings.Repeat("{a: ", 5000) + strings.Repeat("}", 5000),
			"f.yaml:1: is nested deeper than any plan"},
		"deeper maps":  {strings.Repeat("{a: ", 50_000), "f.yaml:1: not YAML: exceeded max depth"},
		"many lines":   {"a:\n" + strings.Repeat("-\n", 400_000), "f.yaml:2: want plain values, not"},
		"many keys":    {"{" + strings.Repeat("a: b, c: d,\n", 80_000), "f.yaml:80000: not YAML: "},
		"the same key": {strings.Repeat("a: b\n", 200_000), "f.yaml:2: a stands twice"},
		"aliases": {"a: &a [b]\nc: [" + strings.Repeat("*a, ", 200_000) + "]",
			"f.yaml:1: want plain values, not \"&a\""},
		"two documents": {base + "---\n" + base, "f.yaml:36: a second document starts here; want one plan a file"},
	} {
		if _, err := Parse([]byte(c.text), "f.yaml"); err == nil || !strings.HasPrefix(err.Error(), c.want) ||
			!wrongFile.MatchString(err.Error()) {
			t.Errorf("%s: got %v\nwant %s", name, err, c.want)
		} else {
			checkChinese(t, err)
		}
	}
	for name, text := range map[string]string{"marker": "---\n" + base,
		"windows": strings.ReplaceAll(base, "\n", "\r\n"), "final marker": base + "...\n"} {
		p, err := Parse([]byte(text), "f.yaml")
		if want, _ := Parse([]byte(base), "f.yaml"); err != nil || !reflect.DeepEqual(p, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is wrong with a field is said in the language of the reader, as of a flag.
func TestRefusedInChinese(t *testing.T) {
	base := basis(t, Curve)
	for _, c := range []struct{ old, put, want string }{
		{"repeats: 3", "repeats: 2.5", "f.yaml:14: repeats：应为整数，不是 2.5"},
		{"repeats: 3", "repeats: two", `f.yaml:14: repeats：应为数字，不是 "two"`},
		{"repeats: 3", "repeats: [", "f.yaml:14: 不是 YAML：did not find expected ',' or ']'"},
		{"flows:", "flowz:", `f.yaml:18: 未知字段 "flowz"`},
		{"- name: up\n  from: sender\n  to: receiver\n", "  a: b\n", "f.yaml:19: flows：应为列表，不是 object"},
	} {
		_, err := Parse([]byte(strings.Replace(base, c.old, c.put, 1)), "f.yaml")
		if got := words.Chinese.Error(err); got != c.want {
			t.Errorf("%s: got %s, want %s", c.put, got, c.want)
		}
	}
}

// TestReadTrace: each line of the file says how a text is read, as times or as gaps. Below stand its gaps and its rate,
// or what is wrong with it.
func TestReadTrace(t *testing.T) {
	golden.Texts(t, "testdata/traces.txt", func(kind, text string) string {
		p, rate, err := readTrace(strings.NewReader(strings.ReplaceAll(text, "LONG", strings.Repeat("1", 100_000))),
			"t.csv", kind == "gaps")
		if err != nil {
			if !strings.HasPrefix(err.Error(), "t.csv:") || strings.ContainsRune(err.Error(), '\n') ||
				len(err.Error()) > 300 {
				t.Errorf("%s %q: an error of another form: %v", kind, text, err)
			}
			checkChinese(t, err)
			return err.Error()
		}
		if p.File != "t.csv" || p.Gaps != (kind == "gaps") {
			t.Errorf("%s %q: %+v", kind, text, p)
		}
		gaps, err := model.ReadTraceText(p.Trace)
		return fmt.Sprint(gaps, " ns ", rate, errText(err))
	})
}

func errText(err error) string {
	if err != nil {
		return " " + err.Error()
	}
	return ""
}

func FuzzReadTrace(f *testing.F) {
	f.Add("0\n0.001\n0.004\n", false)
	f.Add("1.5\n.\n-\n", true)
	f.Fuzz(func(t *testing.T, text string, gaps bool) {
		p, rate, err := readTrace(strings.NewReader(text), "t.csv", gaps)
		if err != nil {
			return
		}
		flow := model.Flow{Name: "up", Protocol: model.UDP, From: "a", To: "b", PayloadBytes: 64, Rate: rate,
			Streams: 1, Profile: &p}
		if _, err := (model.Plan{Flows: []model.Flow{flow}, Timing: model.Timing{MeasureSeconds: 1}}).Trial(nil,
			0); err != nil {
			t.Errorf("%q makes %v of %q, which cannot be run: %v", text, rate, p.Trace, err)
		}
	})
}
