// Package analysis says in words what a run showed.
//
// A document comes in, findings and warnings go out, each with the numbers it
// rests on. It measures nothing and changes nothing; it uses valid trials only,
// and says less rather than more than they show.
package analysis

// Kinds of findings, in the order they are told.
const (
	KindVerdict         = "verdict"          // exactly one, first
	KindFrameBound      = "frame-bound"      // the number of packets limits
	KindBitBound        = "bit-bound"        // the number of bits limits
	KindKnee            = "knee"             // where one gives way to the other
	KindShare           = "share"            // each size against the best
	KindSenderLimited   = "sender-limited"   // the sender could not send more: the path may carry more
	KindReceiverLimited = "receiver-limited" // the receiver could not take more: the path may carry more
	KindLoss            = "loss"
	KindFragmentation   = "fragmentation" // a size that the path splits, or that does not fit into it
	KindPathMTU         = "path-mtu"      // larger packets vanish, and nobody says so
	KindAsymmetry       = "asymmetry"
	KindTCP             = "tcp"
	KindConnections     = "connections"
	KindChange          = "change"  // what a series did within a trial that is not its noise
	KindEngines         = "engines" // what carried the packets, and what that leaves out
	KindLab             = "lab"     // what an emulated path means for the figures
	KindInvalid         = "invalid"
	KindTooFewRepeats   = "too-few-repeats"

	// Of a soak, beside the above.
	KindTimedChange = "timed-change" // what was changed in the lab while the trial ran
	KindControlGap  = "control-gap"  // how long nothing was heard of a host while it went on

	// Of a router's bench, beside the above.
	KindRouterCPU     = "router-cpu-bound"  // a core of the router had nothing left
	KindRouterLink    = "router-link-bound" // a link is full, and the router is not
	KindRouterOffload = "router-offloaded"  // the packets passed by the router's processors
	KindRouterAsked   = "router-asked"      // what was asked came through
	KindRouterUnknown = "router-unknown-limit"
	KindRouterSizes   = "router-sizes" // what the processors would carry at sizes that were not tried
	KindRouterCost    = "router-cost"  // bits per percent of the processors
	KindRouterDelay   = "router-delay" // idle and under load

	// Of a sweep, which has these instead of what only a curve of sizes can show.
	KindSweepBest       = "sweep-best"           // the cell with the highest goodput
	KindSweepTies       = "sweep-ties"           // the cells not separable from it
	KindSweepSlowest    = "sweep-slowest-sender" // the least send speed that gets nearly as much
	KindSweepFragments  = "sweep-fragments"      // what it costs that a size is split
	KindSweepLimit      = "sweep-limit"          // what the links allow, and how much of it was reached
	KindSweepConditions = "sweep-conditions"     // the best cell under each of several conditions that nobody chooses
	KindSweepFairness   = "sweep-fairness"       // many receivers that did not get the same
	KindSweepAgainst    = "sweep-against"        // the order of its settings beside that of another measurement

	// Of a comparison of congestion controls.
	KindControl    = "control"    // what the controls did under one condition
	KindMathis     = "mathis"     // Reno against the model of Mathis
	KindFairness   = "fairness"   // how streams that compete shared the path
	KindUnfinished = "unfinished" // transfers that the trial's time cut
	KindLimited    = "limited"    // trials held by something else than their congestion control
	KindOffload    = "offload"    // what random loss takes of a buffer of segments
)
