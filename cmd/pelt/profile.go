package main

import (
	"errors"
	"os"
	"slices"
	"strings"

	"pelt/model"
	"pelt/plan"
	"pelt/unit"
)

// readProfile reads one --profile, and the file that it may name. The rate is the
// profile's own, zero if it has none.
func readProfile(text string) (*model.Profile, unit.Rate, error) {
	if text == model.ConstantGap {
		return nil, unit.Rate{}, nil
	}
	path, times := strings.CutPrefix(text, "trace=")
	path, gaps := strings.CutPrefix(path, "gaps=")
	if !times && !gaps {
		p, rate, err := model.ParseProfile(text)
		if err == nil {
			return &p, rate, nil
		}
		if _, missing := os.Stat(text); missing != nil {
			return nil, unit.Rate{}, err
		}
	}
	file, err := os.Open(path)
	var failed *os.PathError
	if errors.As(err, &failed) {
		return nil, unit.Rate{}, usagef("%s: %v", path, failed.Err)
	} else if err != nil {
		return nil, unit.Rate{}, err
	}
	defer file.Close()
	p, rate, err := plan.ReadTrace(file, path, gaps)
	if err != nil {
		return nil, unit.Rate{}, err
	}
	return &p, rate, nil
}

func setProfile(o *plan.Options, text string) (err error) {
	o.Profile, o.ProfileRate, err = readProfile(text)
	return err
}

// addProfile adds a level to the factor of profiles.
func addProfile(o *plan.Options, text string) error {
	if text != model.ConstantGap {
		if _, _, err := model.ParseProfile(text); err != nil {
			return usagef("%v; a trace stands alone", err)
		}
	}
	i := slices.IndexFunc(o.Factors, func(f model.Factor) bool { return f.Knob == "profile" })
	if i < 0 {
		i, o.Factors = len(o.Factors), append(o.Factors, model.Factor{Knob: "profile"})
	}
	o.Factors[i].Levels = append(o.Factors[i].Levels, model.Word(text))
	return nil
}
