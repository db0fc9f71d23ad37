package lab

import (
	"fmt"
	"strings"
)

// SplitWords splits a command line as a POSIX shell does, with its quotes and
// backslashes but without anything that it expands: $, *, ~ and # are letters as
// any other. What would need a shell (pipes, lists, redirections) is refused unless
// it is quoted. The error is a *UsageError.
func SplitWords(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	inWord := false
	for rest := line; rest != ""; {
		c := rest[0]
		rest = rest[1:]
		switch {
		case strings.IndexByte(" \t\r\n", c) >= 0:
			if inWord {
				words = append(words, word.String())
				word.Reset()
			}
			inWord = false
			continue
		case c == '\\' && strings.HasPrefix(rest, "\n"): // the line goes on
			rest = rest[1:]
			continue
		case c == '\\' && rest == "":
			return nil, &UsageError{"command line ends in a backslash: " + clipped(line)}
		case c == '\\':
			word.WriteByte(rest[0])
			rest = rest[1:]
		case c == '\'' || c == '"':
			text, after, ok := quoted(rest, c)
			if !ok {
				return nil, &UsageError{fmt.Sprintf("command line has no closing %c: %s", c, clipped(line))}
			}
			word.WriteString(text)
			rest = after
		case strings.IndexByte("|&;<>()`", c) >= 0:
			return nil, &UsageError{fmt.Sprintf("command line has a %c and no shell reads it; quote it, or write sh -c '...': %s", c, clipped(line))}
		default:
			word.WriteByte(c)
		}
		inWord = true
	}
	if inWord {
		words = append(words, word.String())
	}
	if len(words) == 0 || words[0] == "" {
		return nil, &UsageError{"command line names no program: " + clipped(line)}
	}
	return words, nil
}

// quoted reads up to the quote that closes. Between double quotes a backslash
// keeps its meaning before what is special there only (POSIX.1-2024, XCU 2.2.3).
func quoted(s string, quote byte) (text, rest string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == quote:
			return b.String(), s[i+1:], true
		case c == '\\' && quote == '"' && i+1 < len(s) && strings.IndexByte("$`\"\\\n", s[i+1]) >= 0:
			i++
			if s[i] != '\n' {
				b.WriteByte(s[i])
			}
		default:
			b.WriteByte(c)
		}
	}
	return "", "", false
}

func clipped(line string) string {
	const most = 80
	if len(line) > most {
		line = line[:most] + "..."
	}
	return fmt.Sprintf("%q", line)
}
