// Package routerlog writes a line for each packet that a router's filter logs, as
// a router's logging daemon does: it takes the packets one by one as the kernel
// sends them (nfnetlink_log), and keeps some lines in memory. It makes no
// rule that logs. It needs Linux.
package routerlog

// Counts are what a log did since it was opened.
type Counts struct {
	Lines  uint64 // written
	Missed uint64 // packets that came faster than lines were written; known from the next one that came
}
