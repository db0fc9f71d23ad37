package changes

import (
	"math"
	"strings"

	"pelt/model"
)

// nature is what a metric's values are, which says how they may scatter at least
// and which changes can be looked for.
type nature int

const (
	aside  nature = iota // tells nothing of a path, or only grows
	beside               // looked at only when another series changed
	rate                 // of what passes: has stalls
	count                // of what was lost: has bursts
	level                // any other
)

// The smallest changes of a level that are believed, as where runs are compared
// (docs/compare.md), and the least scatter of a value, half of that.
const (
	leastRate    = 0.001 // of the level
	leastLevel   = 0.01  // of the level
	leastPackets = 10    // in a burst
)

// natures is what is known of metrics by name; the others are told by their units.
var natures = map[string]nature{
	"receive_pps": rate, "send_pps": rate, "goodput_bps": rate,
	"lost_pps":      count,
	"delay_p50_ns":  level,
	"round_trip_ns": level,

	// Since a connection began: they only grow.
	model.SeriesRetransmits: aside, model.SeriesAcked: aside, model.SeriesBusy: aside,
	model.SeriesRwndLimited: aside, model.SeriesSndbufLimited: aside,
}

// natureOf says what a series of a trial is. What a congestion control does to a
// stream, and what processors do, is never steady: such series explain changes and
// are not searched for any.
func natureOf(s model.Series, all []model.Series) nature {
	n, known := natures[s.Metric]
	switch {
	case !known && strings.HasPrefix(s.Metric, "tcp_bbr_"):
		return aside
	case !known || n != aside && (s.Core != nil || s.Stream != nil):
		return beside
	}
	for _, o := range all {
		same := o.Flow == s.Flow && o.Stream == nil
		switch {
		case !same:
		case s.Metric == "goodput_bps" && o.Metric == "receive_pps":
			return beside // the same again, in bits
		case s.Metric == "lost_pps" && s.Layer != "" && o.Metric == s.Metric && o.Layer == "":
			return beside // a part of that one
		}
	}
	return n
}

// least is the smallest change of a level that is believed. Around is a usual value
// of the series, step its step in seconds.
func (n nature) least(around, step float64) float64 {
	switch n {
	case rate:
		return max(leastRate*math.Abs(around), 1/step)
	case count:
		return 0.5 / step
	}
	return leastLevel * math.Abs(around)
}
