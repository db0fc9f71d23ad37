// Package drops watches a Linux kernel drop packets, with an eBPF program on the
// tracepoint that every drop passes.
//
// The trial and ports of test streams come in; for each of their packets that this kernel
// dropped, in whatever network namespace, its sequence, the reason and the place
// go out. A second watch, Live, tells the same of any traffic, by flow instead
// of by sequence. A packet that is delivered costs nothing. What the watch could
// not account for is counted and told, never left out.
//
// It needs Linux 5.5 with type information (BTF) on amd64 or arm64, and the
// right to load BPF programs; without them Open says so in one line. Before Linux
// 5.17 there are no reasons: the function that dropped a packet stands for one. The
// programs are gone with the process.
package drops
