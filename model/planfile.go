package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"

	"pelt/unit"
)

// planFile is a plan as files hold it: settings stand under their names in the table of knobs.
type planFile struct {
	Format   string        `json:"format"`
	Command  string        `json:"command"`
	Target   string        `json:"target"`
	Near     string        `json:"near,omitempty"`
	Hosts    []string      `json:"hosts,omitempty"`
	Links    []Link        `json:"links,omitempty"`
	Set      settings      `json:"set"`
	Flows    []flowFile    `json:"flows"`
	Factors  []Factor      `json:"factors,omitempty"`
	Cells    []Cell        `json:"cells,omitempty"`
	Search   *Search       `json:"search,omitempty"`
	Variants []Variant     `json:"variants,omitempty"`
	Timed    []TimedChange `json:"timed,omitempty"`
}

// flowFile is a flow, with the settings in which it differs from others.
type flowFile struct {
	Name    string   `json:"name"`
	From    string   `json:"from"`
	To      string   `json:"to"`
	Set     settings `json:"set,omitempty"`
	Profile *Profile `json:"profile,omitempty"`
}

// settings are values by the names of their knobs.
type settings map[string]json.RawMessage

// MarshalJSON writes the plan as a file holds it.
func (p Plan) MarshalJSON() ([]byte, error) {
	file := planFile{Format: p.Format, Command: p.Command, Target: p.Target, Near: p.Near, Hosts: p.Hosts,
		Links: p.Links, Set: settingsOf(p.field), Flows: make([]flowFile, len(p.Flows)), Factors: p.Factors,
		Cells: p.Design.Cells, Search: p.Design.Search, Variants: p.Variants, Timed: p.Timed}
	for i, f := range p.Flows {
		file.Flows[i] = flowFile{f.Name, f.From, f.To, settingsOf(f.field), f.Profile}
	}
	for _, k := range knobs { // what is the same of all flows stands once
		if k.of == nil || len(p.Flows) == 0 {
			continue
		}
		text := file.Flows[0].Set[k.Name]
		if slices.ContainsFunc(file.Flows, func(f flowFile) bool { return !bytes.Equal(f.Set[k.Name], text) }) ||
			text == nil {
			continue
		}
		file.Set[k.Name] = text
		for _, f := range file.Flows {
			delete(f.Set, k.Name)
		}
	}
	return json.Marshal(file)
}

// field points to what a knob sets in the plan, or is nil.
func (p *Plan) field(k Knob) any {
	if k.in == nil {
		return nil
	}
	return k.in(p)
}

// field points to what a knob sets in the flow, or is nil.
func (f *Flow) field(k Knob) any {
	if k.of == nil {
		return nil
	}
	return k.of(f)
}

// settingsOf are those fields that are set.
func settingsOf(field func(Knob) any) settings {
	s := settings{}
	for _, k := range knobs {
		v, set := getField(field(k))
		if !set && (!k.Must || field(k) == nil) {
			continue
		}
		s[k.Name], _ = json.Marshal(v) // a number of a plan is finite
		if k.Kind == Switch {
			s[k.Name], _ = json.Marshal(v.Number != 0)
		}
	}
	return s
}

// fill writes the settings into those fields that there are. Of a stored run, whatever its pelt
// wrote is read; of a user, only what a knob can have.
func (s settings) fill(field func(Knob) any, stored bool) error {
	for _, k := range knobs {
		raw, to := s[k.Name], field(k)
		if raw == nil || to == nil {
			continue
		}
		v, err := k.read(raw)
		if err == nil && !stored {
			err = k.check(v)
		}
		if err == nil {
			err = setField(to, v)
		}
		if err != nil {
			return wrong(k.Name, "%v", err)
		}
	}
	return nil
}

func (k Knob) read(raw json.RawMessage) (v Value, err error) {
	var on bool
	switch {
	case k.Kind == Switch && json.Unmarshal(raw, &on) != nil:
		return v, k.check(Word(string(raw)))
	case k.Kind == Switch:
		return onOff(on), nil
	case k.Kind == OneText && k.Unit == unit.Count && raw[0] != '"': // has more digits than a float64
		return Word(string(raw)), nil
	}
	return v, json.Unmarshal(raw, &v)
}

// checkPlanFormat refuses a plan of another format.
func checkPlanFormat(b []byte) error {
	var head struct {
		Format string `json:"format"`
	}
	if err := json.Unmarshal(b, &head); err == nil && head.Format != "" && head.Format != PlanFormat {
		return wrong("format", "is %q; this pelt reads %s, as --print-plan writes it", clip(head.Format), PlanFormat)
	}
	return nil
}

// UnmarshalJSON reads the plan of a stored run. Settings of a later pelt are left out.
func (p *Plan) UnmarshalJSON(b []byte) error {
	var file planFile
	if err := cmp.Or(checkPlanFormat(b), json.Unmarshal(b, &file)); err != nil {
		return err
	}
	return file.fill(p, true)
}

// ReadPlan reads a plan of a user. What it does not know is an error.
func ReadPlan(b []byte) (p Plan, err error) {
	if err := checkPlanFormat(b); err != nil {
		return p, err
	}
	var file planFile
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return p, err
	}
	for name := range file.Set {
		if k, _ := FindKnob(name); k.in == nil && k.of == nil {
			return p, wrong(name, "is no setting of a plan")
		}
	}
	for _, f := range file.Flows {
		for name := range f.Set {
			if k, _ := FindKnob(name); k.of == nil {
				return p, wrong(name, "is no setting of a flow")
			}
		}
	}
	if err := file.fill(&p, false); err != nil {
		return p, err
	}
	return p, p.Check()
}

// fill makes the plan that the file describes.
func (f planFile) fill(p *Plan, stored bool) error {
	*p = Plan{Format: f.Format, Command: f.Command, Target: f.Target, Near: f.Near, Hosts: f.Hosts, Links: f.Links,
		Factors: f.Factors, Design: Design{Cells: f.Cells, Search: f.Search}, Variants: f.Variants, Timed: f.Timed}
	if err := f.Set.fill(p.field, stored); err != nil {
		return err
	}
	for _, one := range f.Flows {
		flow := Flow{Name: one.Name, From: one.From, To: one.To, Profile: one.Profile}
		if err := cmp.Or(f.Set.fill(flow.field, stored), one.Set.fill(flow.field, stored)); err != nil {
			return err
		}
		p.Flows = append(p.Flows, flow)
	}
	return nil
}
