package main

import (
	"errors"
	"os"
	"strings"

	"pelt/model"
	"pelt/plan"
	"pelt/unit"
)

const profileHelp = "UDP: how packets are spread over time, in place of even gaps: poisson, burst=64, on=10ms,off=90ms[,random], ramp=10kpps..100kpps, trace=FILE or gaps=FILE (docs/pacing.md)"

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

// profileLevels checks the profiles of a factor.
func profileLevels(list []string) ([]string, error) {
	for _, text := range list {
		if text == model.ConstantGap {
			continue
		}
		if _, _, err := model.ParseProfile(text); err != nil {
			return nil, usagef("--profile: %v; a trace stands alone", err)
		}
	}
	return list, nil
}
