package fastpath

// The objects are committed, so building needs no clang. They were made with
// clang 14 and libbpf's headers (Debian: clang llvm libbpf-dev).
//go:generate go tool bpf2go -cc clang -cflags "-mcpu=v3 -Wall -Werror" -tags "linux,amd64 linux,arm64" -target bpfel -output-stem fast -type reason -type limits fast fast.bpf.c
