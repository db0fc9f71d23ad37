package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"pelt/model"
)

const header = `# A plan of pelt, format ` + model.PlanFormat + `. Run it with: pelt run FILE
# Units are in the names: _s seconds, _ns nanoseconds, _bytes bytes, _bps bits
# per second, _ratio 0..1. A rate is max, packets per second as 150kpps, payload
# bits per second as 95mbit, or an interval between packets as "every 5ms".
`

// Print writes a plan as YAML that Parse reads back to the same plan.
func Print(p model.Plan) ([]byte, error) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(p); err != nil {
		return nil, fmt.Errorf("print plan: %w", err)
	}
	dec := json.NewDecoder(&text)
	dec.UseNumber()
	w := &printer{in: dec}
	w.WriteString(header)
	if err := w.value("", ""); err != nil {
		return nil, fmt.Errorf("print plan: %w", err)
	}
	return w.Bytes(), nil
}

// printer turns JSON into YAML: its fields keep their order, and only what a
// reader could take for something else is quoted.
type printer struct {
	bytes.Buffer
	in *json.Decoder
}

// value writes the next value of the input. first stands before its first line,
// indent before the others.
func (w *printer) value(first, indent string) error {
	t, err := w.in.Token()
	if err != nil {
		return err
	}
	switch t := t.(type) {
	case json.Delim:
		return w.block(t, first, indent)
	case string:
		fmt.Fprintf(w, "%s%s\n", first, quoted(t))
	case nil:
		fmt.Fprintf(w, "%snull\n", first)
	default:
		fmt.Fprintf(w, "%s%v\n", first, t)
	}
	return nil
}

func (w *printer) block(open json.Delim, first, indent string) error {
	if !w.in.More() {
		end, err := w.in.Token()
		fmt.Fprintf(w, "%s%v%v\n", first, open, end)
		return err
	}
	if strings.HasSuffix(first, ": ") { // a block stands on lines of its own
		fmt.Fprintf(w, "%s\n", strings.TrimSuffix(first, " "))
		first = ""
		if open == '{' {
			indent += "  "
		}
	}
	lead := first
	if lead == "" {
		lead = indent
	}
	for w.in.More() {
		if open == '[' {
			if err := w.value(lead+"- ", indent+"  "); err != nil {
				return err
			}
		} else {
			key, err := w.in.Token()
			if err != nil {
				return err
			}
			if err := w.value(fmt.Sprintf("%s%v: ", lead, key), indent); err != nil {
				return err
			}
		}
		lead = indent
	}
	_, err := w.in.Token()
	return err
}

var plainText = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._/:-]*( [A-Za-z0-9._/-]+)*$`)

// quoted leaves a text bare if no YAML reader takes it for anything but text.
func quoted(s string) string {
	words := []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"}
	if plainText.MatchString(s) && !strings.HasSuffix(s, ":") && !strings.Contains(s, ": ") && !slices.Contains(words, strings.ToLower(s)) {
		return s
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always encodes
	return strings.TrimSuffix(b.String(), "\n")
}
