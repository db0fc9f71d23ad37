package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"pelt/model"
)

// CompareJSON writes a comparison as one indented JSON document. Lists are never null.
func CompareJSON(w io.Writer, c model.Comparison) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(model.Finite(c)); err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	return nil
}

// CompareCSV writes a header and a row per effect, in the order of the document: the
// sides' names, the settings they share, then the names of the JSON document.
func CompareCSV(w io.Writer, c model.Comparison) error {
	seen := map[string]bool{}
	for _, e := range c.Effects {
		for k := range e.Cell {
			seen[k] = true
		}
	}
	knobs := slices.Sorted(maps.Keys(seen))
	header := []string{"side", "baseline"}
	for _, k := range knobs {
		if k == "loss_ratio" {
			k = "set_" + k
		}
		header = append(header, csvText(k))
	}
	header = append(header, "flow", "metric", "kind", "baseline_mean", "baseline_low", "baseline_high", "other_mean", "other_low", "other_high",
		"change", "low", "high", "test", "repeats", "p", "family_p", "separable", "could_hide", "repeats_for_5_percent", "same_as", "text")
	out := csv.NewWriter(w)
	_ = out.Write(header) // Flush reports the first error
	for _, e := range c.Effects {
		record := []string{csvText(c.Sides[e.Side].Name), csvText(c.Sides[0].Name)}
		for _, k := range knobs {
			record = append(record, csvLevel(e.Cell, k))
		}
		record = append(record, csvText(e.Flow), csvText(e.Metric), e.Kind, csvFloat(e.Baseline.Mean), csvFloat(e.Baseline.Low), csvFloat(e.Baseline.High),
			csvFloat(e.Other.Mean), csvFloat(e.Other.Low), csvFloat(e.Other.High), csvFloat(e.Change), csvFloat(e.Low), csvFloat(e.High), e.Test, strconv.Itoa(e.Repeats),
			csvFloat(e.P), csvFloat(e.FamilyP), strconv.FormatBool(e.Separable), csvFloat(e.Hidden), strconv.Itoa(e.Needed), csvText(e.SameAs), csvText(e.Text))
		_ = out.Write(record)
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("writing CSV: %w", err)
	}
	return nil
}
