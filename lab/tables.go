package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"pelt/lab/impair"
	"pelt/model"
)

// ReadTables puts into the links the tables of distributions that stand in
// files; a relative path is one from the working directory. A link that holds
// its table already needs its file no more. The error is a *UsageError.
func ReadTables(links []model.Link) ([]model.Link, error) {
	links = slices.Clone(links)
	for i := range links {
		l := &links[i]
		path := l.DistributionFile()
		if path == "" || l.DistributionTable != "" {
			continue
		}
		values, err := readTable(path)
		if err != nil {
			return nil, &UsageError{err.Error()}
		}
		l.DistributionTable = model.TableText(values)
	}
	return links, nil
}

func readTable(path string) (_ []int16, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read distribution %s: there is no such file", path)
	}
	if err != nil {
		return nil, fmt.Errorf("read distribution %s: %w", path, errors.Unwrap(err))
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	t, err := impair.ReadTable(path, f)
	if err != nil {
		return nil, err
	}
	return t.Values, nil
}
