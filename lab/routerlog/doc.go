// Package routerlog writes a line for each packet that a router's filter logs, as
// a router's logging daemon does: it takes the packets one by one as the kernel
// sends them (nfnetlink_log), and keeps the last lines in memory. It makes no
// rule that logs.
package routerlog

// Counts are what a log did since it was opened.
type Counts struct {
	Lines  uint64 // written
	Missed uint64 // packets that came faster than lines were written; known from the next one that came
}

// tailBytes are what is kept of the lines, as OpenWrt's logd does by default.
const tailBytes = 64 << 10
