package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"pelt/internal/outfile"
	"pelt/render/plain"
	"pelt/words"
)

// jsonFlag is the --json of commands that print text otherwise.
type jsonFlag string

func (f *jsonFlag) register(s *pflag.FlagSet) {
	s.StringVar((*string)(f), "json", "", "write one JSON document to `FILE` in place of the text, or -")
}

// print writes a value as JSON to where --json says, else as text.
func (f jsonFlag) print(c *cobra.Command, v any, text func(io.Writer) error) error {
	if f == "" {
		return text(c.OutOrStdout())
	}
	return writeTo(c, string(f), func(w io.Writer) error { return encodeJSON(w, v) })
}

// writeTo writes to standard output for "-", else to a file, which is written whole or not at all.
func writeTo(c *cobra.Command, path string, write func(io.Writer) error) error {
	if path == "-" {
		return write(c.OutOrStdout())
	}
	return outfile.Write(path, write)
}

// noTerminal is the size of a file or a pipe: as wide as $COLUMNS says, else 80 columns, without colour.
func noTerminal() (columns, rows int, colour bool) {
	columns, err := strconv.Atoi(os.Getenv("COLUMNS"))
	if err != nil || columns < 1 {
		columns = 80
	}
	return columns, 24, false
}

// spoken is the language of what commands say beside their results.
func spoken() words.Language { return words.Find(os.Getenv) }

// say prints a sentence. Of a terminal it is broken between words.
func say(w io.Writer, text string) {
	lines := []string{text}
	if f, isFile := w.(*os.File); isFile && isTerminal(f) {
		width, _, _ := terminal(f)
		lines = plain.WrapWhole(text, "", "  ", width)
	}
	fmt.Fprintln(w, strings.Join(lines, "\n"))
}

func encodeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// printColumns prints rows in columns below the names of these, which tabs part: as wide as the terminal, or, for a
// script, each row as one line.
func printColumns(w io.Writer, names string, rows [][]string) error {
	width := 0
	if isTerminal(os.Stdout) {
		width, _, _ = terminal(os.Stdout)
	}
	heads := spoken().SayAll(strings.Split(names, "\t"))
	lines := plain.Table(append([][]string{heads}, rows...), width)
	_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
	return err
}

// moreInJSON is what has the rows that a page leaves out, of a command whose one other output is --json.
const moreInJSON = "--json has all"

// tellf says a format beside the results of a command, in one line.
func tellf(c *cobra.Command, format string, values ...any) {
	fmt.Fprintln(c.ErrOrStderr(), spoken().Sayf(format, values...))
}
