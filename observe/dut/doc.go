// Package dut watches a router under test through a shell on it, over the user's
// own ssh or, in a lab, inside the router's node.
//
// A way to start the shell comes in; what the router is, what its processors did
// and what its kernel counted go out. Nothing is installed or changed there: one
// connection holds one /bin/sh, which answers each request with the kernel's own
// files, between two marked lines, and ends with the connection.
//
// A router that does not answer leaves a gap that is said, never a figure: no
// failure here ends a trial. All times within a trial are of the router's uptime
// clock, laid beside this host's monotonic one; neither's time of day matters.
package dut
