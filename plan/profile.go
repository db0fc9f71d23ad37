package plan

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"pelt/model"
	"pelt/unit"
)

// profile is one that was read, with the rate that it has itself; zero if it has none.
type profile struct {
	model.Profile
	rate unit.Rate
}

// readProfile reads --profile, and the file that it may name. A profile with a rate of its own
// leaves no default one.
func (d *draft) readProfile() error {
	texts := d.words("profile")
	if len(texts) > 1 {
		for _, text := range texts {
			if _, _, err := model.ParseProfile(text); err != nil && text != model.ConstantGap {
				return flagError("profile", "%v; a trace stands alone", err)
			}
		}
	}
	if len(texts) != 1 || texts[0] == model.ConstantGap {
		return nil
	}
	path, times := strings.CutPrefix(texts[0], "trace=")
	path, gaps := strings.CutPrefix(path, "gaps=")
	p, rate, err := model.ParseProfile(texts[0])
	if err != nil && d.Open != nil {
		p, rate, err = d.openTrace(path, gaps, times || gaps, err)
	}
	if err != nil {
		return flagError("profile", "%v", err)
	}
	paced := d.given("rate", "interval")
	switch {
	case p.Kind == model.Ramp && paced:
		return flagError("profile", "a ramp says its rates itself; want no --rate and no --interval")
	case !paced && rate.IsMax() && slices.Contains([]string{"max", ""}, d.defaultOf("rate")):
		return flagError("profile", "needs --rate or --interval: how many packets are spread over time")
	}
	d.profile = &profile{p, rate}
	return nil
}

// openTrace opens the file of a trace. Where the text does not say that it is one and there is no
// such file, the error is the one before.
func (d *draft) openTrace(path string, gaps, trace bool, before error) (p model.Profile, r unit.Rate, err error) {
	file, err := d.Open(path)
	var failed *os.PathError
	switch {
	case err != nil && !trace:
		return p, r, before
	case errors.As(err, &failed):
		return p, r, fmt.Errorf("%s: %w", path, failed.Err)
	case err != nil:
		return p, r, err
	}
	p, r, err = readTrace(file, path, gaps)
	return p, r, errors.Join(err, file.Close())
}

// setProfile gives the flows the profile that was read.
func (d *draft) setProfile() error {
	if d.profile == nil {
		return nil
	}
	for i := range d.plan.Flows {
		f := &d.plan.Flows[i]
		p := d.profile.Profile
		if f.Profile = &p; !d.given("rate", "interval") && !d.profile.rate.IsMax() {
			f.Rate = d.profile.rate
		}
	}
	return nil
}
