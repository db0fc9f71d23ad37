package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"pelt/model"
)

const header = `# A plan of pelt, format ` + model.PlanFormat + `. Run it with: pelt run FILE
# Units are in the names: _s seconds, _ns nanoseconds, _bps bits per second, _ratio 0..1.
# rate_pps is packets per second, max, payload bits as 95mbit, or "every 5ms".
`

// Print writes a plan as YAML that Parse reads back to the same plan.
func Print(p model.Plan) ([]byte, error) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(p); err != nil {
		return nil, fmt.Errorf("print plan: %w", err)
	}
	var ordered any
	err := yaml.UnmarshalWithOptions(text.Bytes(), &ordered, yaml.UseOrderedMap())
	if err != nil {
		return nil, fmt.Errorf("print plan: %w", err)
	}
	out, err := yaml.MarshalWithOptions(ordered, yaml.CustomMarshaler(quoted))
	if err != nil {
		return nil, fmt.Errorf("print plan: %w", err)
	}
	return append([]byte(header), out...), nil
}

var plainText = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._/:-]*( [A-Za-z0-9._/-]+)*$`)

// quoted leaves a text bare if no YAML reader takes it for anything but text.
func quoted(s string) ([]byte, error) {
	words := []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"}
	if plainText.MatchString(s) && !strings.HasSuffix(s, ":") && !strings.Contains(s, ": ") &&
		!slices.Contains(words, strings.ToLower(s)) {
		return []byte(s), nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(s)
	return bytes.TrimSpace(b.Bytes()), err
}
