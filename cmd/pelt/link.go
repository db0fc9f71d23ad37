package main

import (
	"strings"

	"pelt/lab"
	"pelt/model"
)

// nodeLinkArgs turns --link-NODE k=v into --node-link NODE:k=v: the names of
// the nodes belong to the lab, so they cannot be flags known beforehand.
func nodeLinkArgs(args []string) []string {
	var out []string
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			return append(out, args[i:]...)
		}
		name, ok := strings.CutPrefix(args[i], "--link-")
		if !ok || name == "" {
			out = append(out, args[i])
			continue
		}
		node, value, joined := strings.Cut(name, "=")
		if !joined && i+1 < len(args) {
			i++
			value = args[i]
		}
		out = append(out, "--node-link", node+":"+value)
	}
	return out
}

// parseLinks reads --link and --link-NODE; what is said of one node overrides
// what is said of all.
func parseLinks(all, nodes []string) ([]model.Link, error) {
	var links []model.Link
	for _, text := range all {
		l, err := model.ParseLink("", text)
		if err != nil {
			return nil, usagef("--link: %v", err)
		}
		links = append(links, l)
	}
	for _, text := range nodes {
		node, value, _ := strings.Cut(text, ":")
		l, err := model.ParseLink(node, value)
		if err != nil {
			return nil, usagef("--link-%s: %v", node, err) // the node itself is the lab's to know
		}
		links = append(links, l)
	}
	links, err := lab.ReadTables(links)
	if err != nil {
		return nil, usagef("--link: %v", err)
	}
	return links, nil
}
