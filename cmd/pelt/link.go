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

// parseLinks reads --link and --link-NODE; what is said of one node overrides what is said
// of all. Settings with several levels are factors, where they may vary.
func parseLinks(all, nodes []string, vary bool) (links []model.Link, factors []model.Factor, err error) {
	add := func(node, text string) error {
		flag := "--link-" + node
		if node == "" {
			flag = "--link"
		}
		l, more, err := model.ParseLink(node, text)
		if err != nil {
			return usagef("%s: %v", flag, err) // whether there is such a node is the lab's to know
		}
		if l != (model.Link{Node: node}) {
			links = append(links, l)
		}
		factors = append(factors, more...)
		return nil
	}
	for _, text := range all {
		if err := add("", text); err != nil {
			return nil, nil, err
		}
	}
	for _, text := range nodes {
		node, value, _ := strings.Cut(text, ":")
		if err := add(node, value); err != nil {
			return nil, nil, err
		}
	}
	if links, err = lab.ReadTables(links); err != nil {
		return nil, nil, usagef("--link: %v", err)
	}
	if len(factors) > 0 && !vary {
		knob, _ := model.LinkKnobWords(factors[0].Knob)
		return nil, nil, usagef("--link: %s has several values; want one: pelt sweep and pelt cc compare several", knob)
	}
	return links, factors, nil
}
