package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

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
	var document yaml.Node // JSON is YAML
	if err := yaml.Unmarshal(text.Bytes(), &document); err != nil {
		return nil, fmt.Errorf("print plan: %w", err)
	}
	plain(&document)
	var out bytes.Buffer
	to := yaml.NewEncoder(&out)
	to.SetIndent(2)
	to.CompactSeqIndent()
	if err := to.Encode(&document); err != nil {
		return nil, fmt.Errorf("print plan: %w", err)
	}
	return append([]byte(header), out.Bytes()...), nil
}

var plainText = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._/:-]*( [A-Za-z0-9._/-]+)*$`)

// plain writes lists and maps over lines, and leaves a text bare if no YAML reader takes it for anything but text.
func plain(n *yaml.Node) {
	words := []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"}
	bare := plainText.MatchString(n.Value) && !strings.HasSuffix(n.Value, ":") && !strings.Contains(n.Value, ": ") &&
		!slices.Contains(words, strings.ToLower(n.Value))
	if n.Kind != yaml.ScalarNode || bare {
		n.Style = 0
	}
	for _, each := range n.Content {
		plain(each)
	}
}
