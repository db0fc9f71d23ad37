// Package gauge measures what a link does before a test relies on it. In go the
// directions of links with their settings; out comes, for those with the same
// settings together, the loss, the delay and the rate that frames of its own met,
// each with its interval and with what the settings come to.
//
//	In ── 64 B frames, few and even ──► link ──► Out   loss, delay
//	In ── full frames at once ────────► link ──► Out   rate
//
// It asks no emulator: the frames are sent and read on the link's two interfaces
// (an Ethernet type of its own, so no address is needed), and their times are the
// kernel's. What the settings come to is computed by the model of links
// (lab/impair), run many times with other seeds on the same frames: so that the
// spread of short samples, of bursts and of correlation is in it. A loss, a median delay
// or a rate beyond all of these runs is said to be off.
package gauge
