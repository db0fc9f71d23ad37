package test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"pelt/internal/testenv"
)

var update = flag.Bool("update", false,
	"draw docs/architecture.md's picture and write the golden reports of pages anew")

// TestHouse: the picture of docs/architecture.md has a room for each package of this module and an arrow for each
// import, except those that others imply.
func TestHouse(t *testing.T) {
	const path, begin, end = "../docs/architecture.md", "```mermaid\n", "```\n"
	imports := map[string]map[string]bool{}
	for _, p := range goList(t, "../...") {
		room, ok := roomOf(p.ImportPath)
		if !ok {
			continue
		}
		if imports[room] == nil {
			imports[room] = map[string]bool{}
		}
		for _, i := range p.Imports {
			if other, ok := roomOf(i); ok && other != room {
				imports[room][other] = true
			}
		}
	}
	var picture strings.Builder
	picture.WriteString(begin + "flowchart TD\n")
	for _, from := range slices.Sorted(maps.Keys(imports)) {
		rooms := slices.DeleteFunc(slices.Sorted(maps.Keys(imports[from])),
			func(to string) bool { return implied(imports, from, to) })
		if len(rooms) > 0 {
			fmt.Fprintf(&picture, "    %s --> %s\n", from, strings.Join(rooms, " & "))
		}
	}
	picture.WriteString(end)

	text, err := os.ReadFile(path)
	testenv.Must(t, err)
	head, rest, _ := strings.Cut(string(text), begin)
	_, tail, found := strings.Cut(rest, end)
	want := head + picture.String() + tail
	if *update {
		testenv.Must(t, os.WriteFile(path, []byte(want), 0o644))
	} else if !found || want != string(text) {
		t.Errorf("%s does not show the imports; run go test ./test -run House -update. It would be\n%s", path,
			picture.String())
	}
}

// roomOf returns the room of a package: its first folder. Helpers and tests have none.
func roomOf(pkg string) (string, bool) {
	own, ok := strings.CutPrefix(pkg, "pelt/")
	room, _, _ := strings.Cut(own, "/")
	return room, ok && room != "internal" && room != "test"
}

// implied tells whether another import of a room leads to a room as well.
func implied(imports map[string]map[string]bool, from, to string) bool {
	for via := range imports[from] {
		if via != to && (imports[via][to] || implied(imports, via, to)) {
			return true
		}
	}
	return false
}
