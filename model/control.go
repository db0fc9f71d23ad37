package model

import "strings"

const (
	MaxBytes    = 1 << 50
	MaxStagger  = 600.0 // s
	maxControls = 16    // in one mix
)

// MixSeparator stands between the congestion controls of streams that compete: "cubic+bbr".
const MixSeparator = "+"

// Metrics of the series that come from TCP_INFO and that are more than shown; engine/tcpinfo has all.
const (
	SeriesRetransmits   = "tcp_retransmits" // segments since the connection began
	SeriesRTT           = "tcp_rtt_ns"      // smoothed
	SeriesAcked         = "tcp_acked_bytes" // since the connection began
	SeriesBusy          = "tcp_busy_s"      // likewise, as the two that follow
	SeriesRwndLimited   = "tcp_rwnd_limited_s"
	SeriesSndbufLimited = "tcp_sndbuf_limited_s"
)

// Controls are the congestion controls that a flow's streams take in turn; none is the host's default for all.
func (f Flow) Controls() []string {
	if f.Control == "" {
		return nil
	}
	return strings.Split(f.Control, MixSeparator)
}

// StreamControl is the congestion control of one stream, "" for the host's default.
func (f Flow) StreamControl(stream int) string {
	list := f.Controls()
	if len(list) == 0 {
		return ""
	}
	return list[stream%len(list)]
}

// StreamBytes is the part of the flow's bytes that one stream carries.
func (f Flow) StreamBytes(stream int) uint64 {
	n := f.Bytes / uint64(f.Streams)
	if uint64(stream) < f.Bytes%uint64(f.Streams) {
		n++
	}
	return n
}

func (f Flow) checkTransfer() error {
	for _, name := range f.Controls() {
		if name == "" || len(name) > 15 { // TCP_CA_NAME_MAX, include/net/tcp.h
			return wrong("control", "%q is not the name of a congestion control, or several joined by +",
				clip(f.Control))
		}
	}
	own := f.Bytes > 0 || f.HTTP || f.StaggerSeconds != 0 || f.InfoSeconds != 0
	switch {
	case len(f.Controls()) > maxControls:
		return wrong("control", "a mix has at most %d, not %d", maxControls, len(f.Controls()))
	case len(f.Controls()) > f.Streams:
		return wrong("control", "%d controls need at least as many streams, not %d",
			len(f.Controls()), f.Streams)
	case !own:
		return nil
	case !f.Bulk:
		return wrong("bytes", "a transfer is of TCP in bulk")
	case f.Bytes > 0 && f.Bytes < uint64(f.Streams):
		return wrong("bytes", "want at least one for each of %d streams, not %d", f.Streams, f.Bytes)
	case f.HTTP && f.Bytes == 0:
		return wrong("http", "an HTTP answer has a length; want bytes")
	case f.StaggerSeconds > 0 && f.Streams < 2:
		return wrong("stagger_s", "is between streams, and there is one")
	case !f.Rate.IsMax() && (f.Bytes > 0 || f.StaggerSeconds > 0):
		return wrong("rate_pps", "a transfer goes as fast as TCP lets it")
	}
	return nil
}

// checkTime checks what a transfer or a profile makes of a trial's time.
func (f Flow) checkTime(t Timing) error {
	last := f.StaggerSeconds * float64(f.Streams-1)
	switch whole := t.WarmupSeconds + t.MeasureSeconds; {
	case f.Bytes > 0 && t.WarmupSeconds > 0:
		return wrong("bytes", "a transfer counts from its first byte; want no warm-up, not %gs", t.WarmupSeconds)
	case f.StaggerSeconds > 0 && last >= whole:
		return wrong("stagger_s", "the last of %d streams would begin after %gs, and a trial is over after %gs",
			f.Streams, last, whole)
	}
	return f.checkLength(t)
}

// Completion is how a transfer of a number of bytes went.
type Completion struct {
	Bytes   uint64  `json:"bytes"`  // asked for
	Done    bool    `json:"done"`   // all of it; else the trial's time was over first
	Seconds float64 `json:"time_s"` // from its begin to its end, or to where it was cut
	// By is what ended it: "read" when the receiving program had read all, by the one clock of both ends;
	// "acknowledged" when the sender's TCP knew all of it arrived; "answer" of an HTTP client from its request to
	// the answer's last byte.
	By string `json:"by"`
}

const (
	ByRead         = "read"
	ByAcknowledged = "acknowledged"
	ByAnswer       = "answer"
)

type TCPStream struct {
	Control       string  `json:"control"` // read back
	StartSeconds  float64 `json:"start_s"` // after the first one's
	SentBytes     uint64  `json:"sent_bytes"`
	ReceivedBytes uint64  `json:"received_bytes"`
	Retransmits   uint64  `json:"retransmits"`
	// GoodputBPS is over the time in which all streams ran.
	GoodputBPS float64 `json:"goodput_bps"`
}
