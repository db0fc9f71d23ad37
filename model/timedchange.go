package model

import (
	"fmt"
	"strings"

	"pelt/unit"
	"pelt/words"
)

// TimedChange is something that becomes another in a lab while its trials run. Exactly
// one of Router and Link is set.
type TimedChange struct {
	AtSeconds float64 `json:"at_s"`             // after the start of each trial's measured part
	Router    string  `json:"router,omitempty"` // what the lab's router is made to be, see package lab
	Link      *Link   `json:"link,omitempty"`
}

const MaxTimedChanges = 256

// ParseTimedChange reads "80s:router=rules=1000", "2m:link=loss=1%,delay=20ms" or "2m:link-receiver=loss=1%".
func ParseTimedChange(text string) (TimedChange, error) {
	when, what, ok := strings.Cut(text, ":")
	key, value, both := strings.Cut(what, "=")
	if !ok || !both || value == "" {
		return TimedChange{}, unit.Wrong("change", text,
			words.Errorf("want TIME:router=WORDS or TIME:link[-NODE]=SETTINGS, as 80s:router=rules=1000"))
	}
	at, err := unit.ParseDuration(when)
	if err != nil {
		return TimedChange{}, err
	}
	c := TimedChange{AtSeconds: at.Seconds()}
	node, link := strings.CutPrefix(key, "link-")
	switch {
	case key == "router":
		c.Router = value
	case key == "link" || link && node != "":
		if key == "link" {
			node = ""
		}
		change, err := ParseLinkChange(node, value)
		if err != nil {
			return TimedChange{}, err
		}
		c.Link = &change
	default:
		return TimedChange{}, unit.Wrong("change", text,
			words.Errorf("there is no %.40q; want router, link or link-NODE", key))
	}
	return c, nil
}

// Words says what is changed, as ParseTimedChange reads it after the colon.
func (c TimedChange) Words() string {
	if c.Link == nil {
		return "router=" + c.Router
	}
	return strings.TrimSuffix(linkPrefix(c.Link.Node), ".") + "=" + c.Link.Words()
}

type MadeChange struct {
	AtS     float64 `json:"at_s"`   // when it was done, after the start of the measured part
	TookS   float64 `json:"took_s"` // it was begun so long before
	Words   string  `json:"words"`
	Failure Reasons `json:"failure,omitempty"` // why it was not made; none if it was
}

func (p Plan) checkTimed() error {
	if len(p.Timed) > 0 && !strings.HasPrefix(p.Target, "lab:") {
		return wrong("timed", "pelt can change only a lab; want lab:NAME")
	}
	if len(p.Timed) > MaxTimedChanges {
		return wrong("timed", "want at most %d changes, not %d", MaxTimedChanges, len(p.Timed))
	}
	one := p.Design.Repeats == 1 && len(p.Design.Cells) == 0
	for _, f := range p.Factors {
		one = one && len(f.Levels) == 1
	}
	if len(p.Timed) > 0 && !one {
		return wrong("timed", "what changes stays so for the next trial; want a plan of one trial")
	}
	before := 0.0
	for i, c := range p.Timed {
		at := fmt.Sprintf("timed[%d]", i)
		switch {
		case !(c.AtSeconds >= before && c.AtSeconds < p.Timing.MeasureSeconds):
			return wrong(at+".at_s", "want times in order, within the %v of a trial, not %vs", p.Timing.Measure(),
				c.AtSeconds)
		case (c.Router == "") == (c.Link == nil):
			return wrong(at, "want a router or a link that changes")
		case c.Router != "" && !printable(c.Router):
			return wrong(at+".router", "want a short word, not %q", clip(c.Router))
		case c.Link != nil:
			if err := c.Link.checkChange(); err != nil {
				return wrong(at+".link", "%s", err)
			}
		}
		before = c.AtSeconds
	}
	return nil
}
