// Package xdp runs one end of one UDP flow for one trial past the sockets:
// frames leave through BPF_PROG_RUN in live mode, and an XDP program takes them
// off the interface and accounts for each. It implements engine.Engine.
//
// The sockets of the flow exist all the same: another engine opens them, and
// consent is given over them before a frame leaves, so that nobody can be
// flooded who did not agree, the ports are held, and neighbours are known. The
// test header is that of every engine, so either end may use sockets instead.
//
//	sender     worker_linux.go starts send.bpf.c for each frame: pacing, sequence,
//	           time and checksum are written in the kernel (frame.go lays out the rest)
//	receiver   receive.bpf.c keeps a bit for each sequence, and histograms;
//	           window.go settles what is old while the flow goes on
//
// Counts come from the programs' maps only, never from how often they were
// asked to run. What the device refused is counted by tracepoints. Programs are
// held by file descriptors alone: they are gone with the process, and no setting
// of the host is changed.
package xdp

// The objects are committed, so building needs no clang. They were made with
// clang 14 and libbpf's headers (Debian: clang llvm libbpf-dev).
//go:generate go tool bpf2go -cc clang -cflags "-mcpu=v3 -Wall -Werror" -tags "linux,amd64 linux,arm64" -target bpfel -output-stem send -type limits -type phase send send.bpf.c
//go:generate go tool bpf2go -cc clang -cflags "-mcpu=v3 -Wall -Werror" -tags "linux,amd64 linux,arm64" -target bpfel -output-stem receive receive receive.bpf.c
