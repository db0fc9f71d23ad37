package lab

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"pelt/model"
	"pelt/test/golden"
)

// parseLinks reads "rate=1gbit" or "sender:rate=1gbit" as the command line does.
func parseLinks(texts []string) (links []model.Link, err error) {
	for _, text := range texts {
		node, words, ok := strings.Cut(text, ":")
		if !ok || strings.Contains(node, "=") { // loss=ge:...
			node, words = "", text
		}
		l, _, err := model.ParseLink(node, words)
		if err != nil {
			return nil, err
		}
		links = append(links, l)
	}
	return links, nil
}

// planned are the links of a lab that are not plain cables of 1500 B, a line each.
func planned(topology string, texts []string) (string, error) {
	links, err := parseLinks(texts)
	if err == nil {
		err = Check(topology, links)
	}
	if err != nil {
		return "", err
	}
	spec, err := findTopology(topology)
	if err != nil {
		return "", err
	}
	plans, err := planLinks(spec, links)
	var out strings.Builder
	for i, p := range plans {
		for direction, way := range p.Toward {
			if words := way.Words(); words != "" || p.MTU != 1500 {
				fmt.Fprintln(&out, strings.TrimSpace(fmt.Sprintf("%s: mtu %d %s", spec.wayName(i, direction), p.MTU,
					words)))
			}
		}
	}
	return out.String(), err
}

// TestWords: each line of the file is what a user says of a lab: its links, a change of them, its router, its name.
// Below stands what comes of it, or the one line of what is wrong.
func TestWords(t *testing.T) {
	golden.Table(t, "testdata/words.txt", func(question string) (answer string) {
		words := strings.Fields(question)
		var err error
		switch topology := words[1]; words[0] {
		case "links":
			answer, err = planned(topology, words[2:])
		case "change": // the links, a node or -, what changes
			links, failed := parseLinks(words[2:3])
			must(t, failed)
			err = CheckChanges(topology, links, [][]model.Link{{change(t, strings.Trim(words[3], "-"), words[4])}})
		case "router":
			var setup routerSetup
			text := strings.Join(words[2:], " ")
			if err = CheckRouter(topology, text); err == nil {
				spec, _ := findTopology(topology)
				setup, err = spec.parseRouter(text)
				answer = setup.String()
			}
		case "tbf": // an mtu, the link
			links, failed := parseLinks(words[2:])
			must(t, failed)
			mtu, failed := strconv.Atoi(words[1])
			must(t, failed)
			answer = fmt.Sprintf("%+v", tbfOf(links[0], mtu))
		case "lab":
			answer = noLab(words[1]).Error()
		case "name":
			err = CheckName(words[1])
		default:
			t.Fatalf("no question %q", question)
		}
		if err != nil {
			if strings.Contains(err.Error(), "\n") || words[0] != "links" && !refused(err, "") {
				t.Errorf("%s: several lines, or no word of a user's: %v", question, err)
			}
			return err.Error()
		}
		return answer
	})
}
