package plan

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"pelt/model"
)

// optionNames says which option sets which field of a plan, by the field's last word.
func optionNames() map[string]string {
	return map[string]string{
		"target": "TARGET", "links": "--link", "engine": "--engine",
		"payload_bytes": "--payload", "frame_bytes": "--frame", "rate": "--rate", "direction": "--direction",
		"streams": "--streams", "family": "--family", "dscp": "--dscp", "burst": "--burst", "profile": "--profile", "burst_packets": "--profile", "on_s": "--profile", "off_s": "--profile", "from": "--profile", "trace": "--profile", "file": "--profile",
		"source_port": "--source-port", "receivers": "--receivers", "packets": "--count", "interval_ns": "--interval", "rate_pps": "--rate", "source_addresses": "--source-address", "control": "--control", "protocol": "--proto",
		"dut": "--dut", "near": "TARGET", "variants": "--variant",
		"measure_s": "--time", "warmup_s": "--warmup", "repeats": "--repeats", "max_loss_ratio": "--max-loss",
		"bytes": "--bytes", "http": "--http", "stagger_s": "--stagger", "commands": "--exec-server, --exec-client", "most_repeats": "--max-repeats", "patience_s": "--patience", "at_s": "--at", "timed": "--at",
	}
}

var (
	nestedField = regexp.MustCompile(`^flows\[\d+\]\.\w+: `)
	linkField   = regexp.MustCompile(`^links\[\d+\]`)
	lastWord    = regexp.MustCompile(`\w+$`)
)

// translate names the option in place of the plan's field.
func translate(p model.Plan, err error) error {
	var f *model.FieldError
	if !errors.As(err, &f) {
		return err
	}
	field, want := f.Field, f.Want
	for i, factor := range p.Factors {
		if strings.HasPrefix(field, fmt.Sprintf("factors[%d]", i)) {
			field = factor.Knob
			if _, _, link := model.SplitLinkKnob(factor.Knob); link {
				return &model.FieldError{Field: "--factor", Want: factor.Knob + ": " + want}
			}
		}
	}
	want = nestedField.ReplaceAllString(want, "")
	if linkField.MatchString(field) {
		field = "links"
	}
	if strings.HasPrefix(field, "variants[") {
		field = "variants"
	}
	name, ok := optionNames()[lastWord.FindString(field)]
	if !ok {
		return err
	}
	return &model.FieldError{Field: name, Want: want}
}
