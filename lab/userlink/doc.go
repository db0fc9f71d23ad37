// Package userlink is a cable between two network namespaces that delays, loses
// and holds back frames as a model says. In go two ends and the settings of each
// direction; out come two interfaces, and the account of what became of every
// frame. It needs no qdisc of the kernel.
//
// Each end is a TAP interface whose other side this process reads and writes:
//
//	namespace a ── TAP ──► read ─► impair.Link ─► heap of what leaves when ─► write ──► TAP ── namespace b
//
// Frames keep the kernel's offloads: a buffer of segments passes whole unless the
// model parts it, and each of its segments has its own fate. A few threads of
// this process, the pumps, move all frames; when the process ends, so do the interfaces.
package userlink
