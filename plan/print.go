package plan

import (
	"encoding/json"
	"fmt"

	"github.com/goccy/go-yaml"

	"pelt/model"
)

const header = `# A plan of pelt, format ` + model.PlanFormat + `. Run it with: pelt run FILE
# Units are in the names: _s seconds, _ns nanoseconds, _bytes bytes, _bps bits
# per second, _ratio 0..1. A rate is max, packets per second as 150kpps, payload
# bits per second as 95mbit, or an interval between packets as "every 5ms".
`

// Print writes a plan as YAML that Parse reads back to the same plan.
func Print(p model.Plan) ([]byte, error) {
	text, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("print plan: %w", err)
	}
	body, err := yaml.JSONToYAML(text)
	if err != nil {
		return nil, fmt.Errorf("print plan: %w", err)
	}
	return append([]byte(header), body...), nil
}
