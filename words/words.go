// Package words has what people read in languages other than English.
//
// English stands where it is made. An English text is its own code, and sentences of findings have codes of their own;
// a language is a table of texts by code. It knows no findings, and decides nothing.
package words

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Language is what a reader reads. The zero value is English.
type Language string

const (
	English Language = ""
	Chinese Language = "zh"
)

// Say returns an English text in the language; text that its table lacks stays as it is. A text may hold verbs of
// fmt or marks of its own, which it keeps.
func (l Language) Say(text string) string {
	if l == Chinese {
		return cmp.Or(chinese[text], chineseTalk[text], chineseHelp[text], chineseKinds[text], derived(text), text)
	}
	return text
}

// SayAll says each of several texts.
func (l Language) SayAll(texts []string) (said []string) {
	for _, text := range texts {
		said = append(said, l.Say(text))
	}
	return said
}

// derived says a text that is made of others: how far two figures are apart ("-0.4 points", "2.41 times?"), a time ("2
// days 3 h"), a setting of links ("% link-receiver loss"), a place ("link sender-router"), a counter ("drop event
// QDISC_DROP"), and a metric of a family. It is empty for others.
func derived(text string) string {
	figure, doubt := strings.TrimSuffix(text, "?"), ""
	if figure != text {
		doubt = "?"
	}
	for _, unit := range []struct{ english, said string }{{" points", " 个百分点"}, {" times", " 倍"}, {" trials", " 次试验"}} {
		if n, ok := strings.CutSuffix(figure, unit.english); ok && strings.Trim(n, "+-<.0123456789 ") == "" {
			return n + unit.said + doubt
		}
	}
	if n, hours, ok := strings.Cut(text, " days"); ok && strings.Trim(n+hours, "0123456789 h") == "" {
		return n + " 天" + hours
	}
	for _, f := range families {
		of, which, _ := strings.Cut(text, f.english)
		if f.of[of] != "" && f.which[which] != "" {
			return Chinese.Append(f.of[of], f.which[which])
		}
	}
	if n, ok := strings.CutPrefix(text, "receiver-"); ok && n != "" && strings.Trim(n, "0123456789") == "" {
		return chinese["receiver"] + " " + n
	}
	if ends, ok := strings.CutPrefix(text, "link "); ok && strings.Contains(ends, "-") && !strings.Contains(ends, " ") {
		return Chinese.Sayf("link %s", strings.Join(Chinese.SayAll(strings.Split(ends, "-")), "-"))
	}
	for _, begin := range counterForms {
		if of, ok := strings.CutPrefix(text, begin.english); ok {
			return begin.said + of
		}
	}
	if head, tail, ok := strings.Cut(text, "ink"); ok {
		node, setting, _ := strings.Cut(strings.TrimPrefix(tail, "-"), " ")
		if form, said := linkForms[head+"ink"], linkSettings[setting]; form != "" && said != "" {
			text := Chinese.Append(Chinese.Append(Chinese.Say(node), form), said)
			if strings.HasPrefix(head, "%") {
				text += " %"
			}
			return text
		}
	}
	return ""
}

// Sayf says a format, and puts values into it.
func (l Language) Sayf(format string, values ...any) string { return l.put(l.Say(format), values) }

// Time is a moment in UTC in an English layout of package time.
func (l Language) Time(layout string, at time.Time) string { return at.UTC().Format(l.Say(layout)) }

// ownSpace stands for a space of a value, which stays, in a text that loses others.
const ownSpace = "\ue000"

// put puts values into a format. In Chinese no space stays between two Han characters, or beside a full-width mark.
func (l Language) put(format string, values []any) string {
	if l != Chinese {
		return fmt.Sprintf(format, values...)
	}
	values = slices.Clone(values)
	for i, v := range values {
		if text, ok := v.(string); ok {
			values[i] = strings.ReplaceAll(text, " ", ownSpace)
		}
	}
	text := []rune(fmt.Sprintf(format, values...))
	var out strings.Builder
	for i, r := range text {
		if r == ' ' && i > 0 && i+1 < len(text) {
			before, after := text[i-1], text[i+1]
			if isHan(before) && isHan(after) || fullWidth(before) || fullWidth(after) {
				continue
			}
		}
		out.WriteRune(r)
	}
	return ownSpaces.Replace(out.String())
}

var ownSpaces = strings.NewReplacer(ownSpace, " ", strings.Trim(strconv.Quote(ownSpace), `"`), " ") // %q writes the latter

// fullWidth reports whether a rune is a mark that has its own space.
func fullWidth(r rune) bool { return strings.ContainsRune("，。：；（）、", r) }

// Bracketed puts a note in brackets behind a text. Beside a Han character they are full-width in Chinese.
func (l Language) Bracketed(text, note string) string {
	last, _ := utf8.DecodeLastRuneInString(text)
	if l == Chinese && (isHan(last) || strings.ContainsFunc(note, isHan)) {
		return text + "（" + note + "）"
	}
	return text + " (" + note + ")"
}

func isHan(r rune) bool { return unicode.Is(unicode.Han, r) }

// Of returns the sentence for the code of a finding, in place of the English one.
func (l Language) Of(code, english string) string {
	if l == Chinese {
		return cmp.Or(chineseSentences[code], chineseKinds[code], english)
	}
	return english
}

// Codes are the codes of the sentences that the language's own tables have.
func (l Language) Codes() (codes []string) {
	if l != Chinese {
		return nil
	}
	codes = slices.Collect(maps.Keys(chineseSentences))
	for key := range chineseKinds {
		if strings.Contains(key, ".") && !strings.Contains(key, " ") {
			codes = append(codes, key)
		}
	}
	return codes
}

// Join puts texts of a list one behind the other.
func (l Language) Join(texts []string) string { return strings.Join(texts, l.Say(", ")) }

// Names puts the texts of a name that are not empty one behind the other.
func (l Language) Names(texts ...string) string {
	return l.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }))
}

// Sentences puts sentences one behind the other.
func (l Language) Sentences(all []string) string {
	if l == Chinese {
		return strings.Join(all, "")
	}
	return strings.Join(all, " ")
}

// Append puts a text behind another. In Chinese it sets the space between them: one between a Han character and a
// Latin letter or digit, none between two Han characters or beside a full-width mark.
func (l Language) Append(text, more string) string {
	head, tail := strings.TrimRight(text, " "), strings.TrimLeft(more, " ")
	last, _ := utf8.DecodeLastRuneInString(head)
	first, _ := utf8.DecodeRuneInString(tail)
	switch before, after := isHan(last), isHan(first); {
	case l != Chinese:
	case before && after, fullWidth(last), fullWidth(first):
		return head + tail
	case before && isLatin(first), isLatin(last) && after:
		return head + " " + tail
	}
	return text + more
}

func isLatin(r rune) bool {
	return r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '%')
}

// Tag is the language as HTML names it (RFC 5646).
func (l Language) Tag() string {
	if l == Chinese {
		return "zh-CN"
	}
	return "en"
}

// Parse reads a language as a user names it: en, zh, or with a country.
func Parse(name string) (Language, error) {
	first, _, _ := strings.Cut(strings.ReplaceAll(strings.ToLower(name), "_", "-"), "-")
	switch first {
	case "en":
		return English, nil
	case "zh":
		return Chinese, nil
	}
	return English, fmt.Errorf("want en or zh, not %q", name)
}

// Variable of the environment names a language. Events as lines of JSON are English, unless EventsVariable names the
// language of the reader whom pelt web shows them to.
const (
	Variable       = "PELT_LANG"
	EventsVariable = "PELT_EVENTS_LANG"
)

// Find chooses by the variables of an environment: PELT_LANG, else LC_ALL, LC_MESSAGES or LANG, of which the first that
// is set decides. Those name a character set, too: without UTF-8 the language is English. An unknown language is English.
func Find(variable func(string) string) Language {
	if name := variable(Variable); name != "" {
		l, _ := Parse(name)
		return l
	}
	for _, name := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		value := variable(name)
		if value == "" {
			continue
		}
		locale, set, _ := strings.Cut(value, ".")
		set, _, _ = strings.Cut(strings.ToLower(set), "@")
		if set != "utf-8" && set != "utf8" {
			return English
		}
		l, _ := Parse(locale)
		return l
	}
	return English
}

// Accepted chooses by the header Accept-Language of a request (RFC 9110 section 12.5.4): the first language in it that
// there is. Browsers list languages in the order of preference.
func Accepted(header string) Language {
	for choice := range strings.SplitSeq(header, ",") {
		name, weight, _ := strings.Cut(choice, ";")
		if l, err := Parse(strings.TrimSpace(name)); err == nil && strings.Trim(strings.TrimSpace(weight), "q=0.") != "" {
			return l
		} else if err == nil && strings.TrimSpace(weight) == "" {
			return l
		}
	}
	return English
}
