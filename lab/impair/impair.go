// Package impair is the model of an emulated link: frames with their times go
// in, and out comes what becomes of each, and when. It never looks at a clock, a
// packet's content or the system; whoever moves the frames does.
package impair

import (
	"time"

	"pelt/unit"
)

// Mode is what the settings' words mean.
type Mode string

// The modes.
const (
	// Exact takes the words as they stand: a ratio is that share of the frames, a
	// correlation that between one draw and the next, the queue waits for the
	// bottleneck only.
	Exact Mode = "exact"
	// Netem does what the kernel's netem does with the same settings, its quirks
	// included, and with the same seed to the same frames (Linux 6.6 and later).
	Netem Mode = "netem"
)

// Settings are those of one direction of a link. A zero field leaves frames alone.
type Settings struct {
	Mode Mode // "" is Exact

	// The bottleneck. A frame takes (max(length, MinFrame) + Overhead) * 8 / Rate.
	Rate     unit.BitRate
	Overhead int // bytes
	MinFrame int // bytes; both are Exact's: netem has its own overhead of 0

	// What may wait. In Exact of frames, or of their bytes, that wait for the
	// bottleneck, the one that it is sending included; in Netem of frames anywhere in the link
	// (QueueBytes does not exist there). 0: any number.
	QueuePackets int
	QueueBytes   int

	// The line behind the bottleneck.
	Delay       time.Duration
	Jitter      time.Duration // uniform: largest deviation; else the distribution's scale, the standard deviation of Normal
	Correlation float64       // of a frame's delay with that of the one before, 0..1
	Shape       *Table        // of the jitter; nil is uniform

	Loss      Loss
	Duplicate Chance
	Corrupt   Chance // one bit of the frame is turned
	Reorder   Chance // such a frame does not wait in the line at all
	Gap       int    // with Reorder: only every Gap-th frame may be

	Seed uint64
}

// Chance is that of something to happen to a frame.
type Chance struct {
	Ratio       float64 // 0..1
	Correlation float64 // with the frame before, 0..1
}

// LossModel says how losses follow each other.
type LossModel string

// The models.
const (
	Random         LossModel = ""                // Chance
	GilbertElliott LossModel = "gilbert-elliott" // two states
	FourState      LossModel = "four-state"      // Salsano's
)

// Loss is that of frames before the bottleneck.
type Loss struct {
	Model  LossModel
	Chance // of Random

	// GilbertElliott, per frame: to the bad state, back to the good one, and the
	// losses in the bad and in the good state.
	P, R, Bad, Good float64

	// FourState, per frame: transition probabilities between 1 received in a gap,
	// 2 received in a burst, 3 lost in a burst, 4 lost in a gap.
	P13, P31, P32, P23, P14 float64
}

// Cause is why a frame did not pass.
type Cause int

// The causes, in the order in which a frame meets them.
const (
	Passes    Cause = iota
	Lost            // drawn
	QueueFull       // of the bottleneck; in Netem of the whole link
)

// Fate is what becomes of one frame.
type Fate struct {
	Cause  Cause // why no copy leaves; Passes if one does
	Copies int   // that leave: 0, 1, or 2 of a duplicated frame
	Copy   [2]Copy
}

// Copy is one frame that leaves the link.
type Copy struct {
	At   int64 // when, in ns on the clock of Offer
	Flip int   // number of the bit to turn, from the frame's first; -1: none
}

// Link is one direction of a link. It is for one goroutine.
type Link struct {
	settings Settings
}

// New makes a link at rest. It panics on settings that Check refuses.
func New(s Settings) *Link { return &Link{settings: s} }

// Offer gives a frame of so many bytes, from the Ethernet header on and without
// its check sequence, to the link at a time in ns. Times must not fall.
func (l *Link) Offer(now int64, bytes int) Fate { panic("not yet") }

// Waiting is how many frames and bytes wait for the bottleneck at a time; in
// Netem how many are anywhere in the link.
func (l *Link) Waiting(now int64) (frames, bytes int) { panic("not yet") }

// Check says in one line what is wrong with the settings, "" if nothing is.
func (s Settings) Check() string { panic("not yet") }

// LossRatio is the expected share of frames that Loss takes, in the settings' mode.
func (s Settings) LossRatio() float64 { panic("not yet") }

// Table is a distribution: quantiles of a deviation in units of the jitter.
type Table struct {
	Name string
	// Values are netem's: 8192 is one unit, in order of the quantile.
	Values []int16
}
