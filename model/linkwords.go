package model

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"pelt/unit"
)

// linkSetting is one word of --link: how a link takes its value, how it says it,
// and how it is as if nobody had.
type linkSetting struct {
	key   string
	set   func(l *Link, value string) error
	say   func(l Link) string // what set reads back, "" if nothing is set
	clear func(l *Link)
}

// linkSettings are all of them, in the order the help prints them.
var linkSettings = []linkSetting{
	{"rate", func(l *Link, value string) (err error) { l.Rate, err = unit.ParseBitRate(value); return err },
		func(l Link) string { return sayIf(l.Rate > 0, l.Rate.String()) }, func(l *Link) { l.Rate = 0 }},
	{"queue", (*Link).setQueue, Link.sayQueue, func(l *Link) { l.QueuePackets, l.QueueBytes = 0, 0 }},
	sizeSetting("overhead", func(l *Link) *int { return &l.OverheadBytes }),
	sizeSetting("mtu", func(l *Link) *int { return &l.MTU }),
	durationSetting("delay", func(l *Link) *float64 { return &l.DelaySeconds }),
	durationSetting("jitter", func(l *Link) *float64 { return &l.JitterSeconds }),
	ratioSetting("correlation", func(l *Link) *float64 { return &l.Correlation }),
	{"distribution", func(l *Link, value string) error { l.Distribution = value; return nil },
		func(l Link) string { return l.Distribution }, func(l *Link) { l.Distribution, l.DistributionTable = "", "" }},
	{"loss", (*Link).setLoss, Link.LossText, func(l *Link) { l.LossRatio, l.LossModel, l.LossStates = 0, "", [5]float64{} }},
	ratioSetting("loss-correlation", func(l *Link) *float64 { return &l.LossCorrelation }),
	ratioSetting("duplicate", func(l *Link) *float64 { return &l.DuplicateRatio }),
	ratioSetting("duplicate-correlation", func(l *Link) *float64 { return &l.DuplicateCorrelation }),
	ratioSetting("reorder", func(l *Link) *float64 { return &l.ReorderRatio }),
	ratioSetting("reorder-correlation", func(l *Link) *float64 { return &l.ReorderCorrelation }),
	{"gap", (*Link).setGap, func(l Link) string { return sayIf(l.Gap > 0, strconv.Itoa(l.Gap)) }, func(l *Link) { l.Gap = 0 }},
	ratioSetting("corrupt", func(l *Link) *float64 { return &l.CorruptRatio }),
	ratioSetting("corrupt-correlation", func(l *Link) *float64 { return &l.CorruptCorrelation }),
	wordSetting("mode", func(l *Link) *string { return &l.Mode }),
	{"seed", (*Link).setSeed, func(l Link) string { return sayIf(l.Seed > 0, strconv.FormatUint(l.Seed, 10)) }, func(l *Link) { l.Seed = 0 }},
	wordSetting("buffers", func(l *Link) *string { return &l.Buffers }),
	wordSetting("backend", func(l *Link) *string { return &l.Backend }),
	wordSetting("toward", func(l *Link) *string { return &l.Toward }),
}

func linkKeys() []string {
	keys := make([]string, len(linkSettings))
	for i, s := range linkSettings {
		keys[i] = s.key
	}
	return keys
}

// Words says the link as --link reads it, "" if it leaves packets alone. Of a
// queue of packets and of bytes, which no --link gives, it says both.
func (l Link) Words() string {
	var words []string
	for _, s := range linkSettings {
		if value := s.say(l); value != "" {
			words = append(words, s.key+"="+value)
		}
	}
	if l.Zero != "" {
		for key := range strings.SplitSeq(l.Zero, ",") {
			words = append(words, key+"=0")
		}
	}
	return strings.Join(words, ",")
}

func ratioSetting(key string, of func(*Link) *float64) linkSetting {
	return linkSetting{key, func(l *Link, value string) (err error) { *of(l), err = unit.ParseRatio(value); return err },
		func(l Link) string { return sayIf(*of(&l) > 0, plainNumber(*of(&l))) }, func(l *Link) { *of(l) = 0 }}
}

func durationSetting(key string, of func(*Link) *float64) linkSetting {
	return linkSetting{key, func(l *Link, value string) error {
		d, err := unit.ParseDuration(value)
		*of(l) = d.Seconds()
		return err
	}, func(l Link) string { return sayIf(*of(&l) > 0, durationWord(*of(&l))) }, func(l *Link) { *of(l) = 0 }}
}

func sizeSetting(key string, of func(*Link) *int) linkSetting {
	return linkSetting{key, func(l *Link, value string) error { return parseSize(of(l), key, value) },
		func(l Link) string { return sayIf(*of(&l) > 0, strconv.Itoa(*of(&l))) }, func(l *Link) { *of(l) = 0 }}
}

func wordSetting(key string, of func(*Link) *string) linkSetting {
	return linkSetting{key, func(l *Link, value string) error { *of(l) = value; return nil },
		func(l Link) string { return *of(&l) }, func(l *Link) { *of(l) = "" }}
}

func parseSize(to *int, key, value string) error {
	n, err := unit.ParseBytes(value)
	if err == nil && (n < 1 || n > math.MaxInt32) { // 0 would mean: leave it alone
		return fmt.Errorf("%s %q: want at least 1 and less than 2 GiB", key, value)
	}
	*to = int(n)
	return err
}

func (l *Link) setQueue(value string) error {
	if strings.Trim(value, "0123456789") == "" {
		return parseSize(&l.QueuePackets, "queue", value)
	}
	return parseSize(&l.QueueBytes, "queue", value)
}

func (l Link) sayQueue() string {
	packets, bytes := sayIf(l.QueuePackets > 0, strconv.Itoa(l.QueuePackets)), sayIf(l.QueueBytes > 0, strconv.Itoa(l.QueueBytes)+"B")
	if packets != "" && bytes != "" {
		return packets + ",queue=" + bytes
	}
	return packets + bytes
}

func (l *Link) setGap(value string) (err error) {
	if l.Gap, err = strconv.Atoi(value); err != nil || l.Gap < 1 {
		return fmt.Errorf("gap %q: want a whole number of packets, at least 1", value)
	}
	return nil
}

func (l *Link) setSeed(value string) (err error) {
	if l.Seed, err = strconv.ParseUint(value, 10, 64); err != nil || l.Seed == 0 { // 0 would mean: draw one
		return fmt.Errorf("seed %q: want a whole number, at least 1; without one a seed is drawn", value)
	}
	return nil
}

func sayIf(set bool, value string) string {
	if !set {
		return ""
	}
	return value
}

func plainNumber(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// durationWord is text that unit.ParseDuration reads back: "3s", "500ms".
func durationWord(s float64) string {
	if s >= 1 && s == float64(int64(s)) {
		return fmt.Sprintf("%ds", int64(s))
	}
	return plainNumber(s*1000) + "ms"
}
