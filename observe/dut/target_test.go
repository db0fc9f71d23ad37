package dut

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"pelt/finding"
	"pelt/test/golden"
)

// TestTexts: each line of the file is a question and a text from a user or a router. Below stands what is made of it.
func TestTexts(t *testing.T) {
	golden.Texts(t, "testdata/texts.txt", func(what, text string) string {
		answer := ""
		switch what {
		case "target":
			to, err := ParseTarget(text)
			answer = fmt.Sprintf("user %q, host %q, port %d", to.User, to.Host, to.Port)
			if err != nil {
				answer = err.Error()
			}
		case "ssh":
			if why := sshFault(text); why.Code != "" {
				answer = finding.Clause(why)
			}
		case "lines":
			answer = fmt.Sprintf("%q %q", firstLine(text), lastLine(text))
		case "answer":
			for _, r := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text))} {
				got, _, err := marker("@@m").answer(bufio.NewReaderSize(r, 64), 2)
				if err != nil && !errors.Is(err, io.EOF) {
					t.Errorf("%s %q: %v", what, text, err)
				}
				again := fmt.Sprintf("%q, whole %v", got, err == nil)
				if answer != "" && again != answer {
					t.Errorf("%s %q: byte for byte %s, want %s", what, text, again, answer)
				}
				answer = again
			}
		case "bits": // of a machine, as uname -m calls it
			answer = fmt.Sprint(longBits(text))
		case "cpuinfo":
			answer = learn(map[string]string{"cpuinfo": text}, sample{}).facts.CPU
		default:
			t.Fatalf("no question %q", what)
		}
		if strings.ContainsAny(answer, "\r\n") {
			t.Errorf("%s %q: several lines: %q", what, text, answer)
		}
		return answer
	})
}

// check fails unless a value and an error are as wanted; an error is one line.
func check[T comparable](t *testing.T, input string, got, want T, err error, fault string) {
	t.Helper()
	if got != want {
		t.Errorf("%q: got %+v, want %+v", input, got, want)
	}
	if (err == nil) != (fault == "") || err != nil &&
		(!strings.Contains(err.Error(), fault) || strings.Contains(err.Error(), "\n")) {
		t.Errorf("%q: error %v, want one line with %q", input, err, fault)
	}
}

func TestArguments(t *testing.T) {
	got := Target{User: "root", Host: "::1", Port: 2222}.arguments(true)
	for _, want := range [][]string{
		{"-T", "-x", "-a"}, {"-o", "BatchMode=yes"}, {"-o", "ClearAllForwardings=yes"}, {"-o",
			"ServerAliveInterval=10"},
		{"-l", "root", "-p", "2222", "--", "::1", "exec /bin/sh"},
	} {
		if !strings.Contains(strings.Join(got, "\x00")+"\x00", strings.Join(want, "\x00")+"\x00") {
			t.Errorf("%q lacks %q", got, want)
		}
	}
	if got := (Target{Host: "a"}).arguments(false); slices.Contains(got, "BatchMode=yes") ||
		slices.Contains(got, "-l") {
		t.Errorf("%q: want a person asked, and nothing the user's configuration decides", got)
	}
}
