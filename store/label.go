package store

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"pelt/model"
)

// Label is what a user calls a stored run.
type Label struct {
	Name string   `json:"name,omitempty"`
	Tags []string `json:"tags,omitempty"`
}

// The longest label leaves a summary short enough for List.
const (
	mostName = 80 // characters
	mostTag  = 24
	mostTags = 8
)

// Text is the label in lists.
func (l Label) Text() string {
	words := []string{}
	if l.Name != "" {
		words = append(words, l.Name)
	}
	for _, t := range l.Tags {
		words = append(words, "#"+t)
	}
	return strings.Join(words, " ")
}

// Check says what is wrong with a label.
func (l Label) Check() error {
	if len(l.Tags) > mostTags {
		return fmt.Errorf("tags: want at most %d, not %d", mostTags, len(l.Tags))
	}
	for _, t := range l.Tags {
		if t == "" || utf8.RuneCountInString(t) > mostTag || model.PrintableText(t) != t || strings.Contains(t, " ") {
			return fmt.Errorf("tags: want words of at most %d characters, not %q", mostTag, t)
		}
	}
	if utf8.RuneCountInString(l.Name) > mostName || model.PrintableText(l.Name) != l.Name {
		return fmt.Errorf("name: want at most %d characters in one line", mostName)
	}
	return nil
}

// SetLabel changes the name and the tags of a run that nobody writes. ref is an id, a prefix or last.
func (s *Store) SetLabel(ref string, l Label) (err error) {
	if err := l.Check(); err != nil {
		return err
	}
	r, err := s.lock(ref)
	if err != nil {
		return fmt.Errorf("name %w", err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	sum, _ := lastSummary(r.file.File)
	doc, err := r.load()
	if err != nil {
		return fmt.Errorf("name run %s: %w", r.id, err)
	}
	if sum.Trials == nil { // there was none, or its writer was cut
		sum = summaryOf(doc, l)
	}
	sum.Label = l
	return r.add(maxFile, record{Summary: &sum})
}
