package drops

// The objects are committed, so building needs no clang. They were made with
// clang 14 and libbpf's headers (Debian: clang llvm libbpf-dev).
//go:generate go tool bpf2go -cc clang -cflags "-mcpu=v3 -Wall -Werror" -tags "linux,amd64 linux,arm64" -target bpfel -output-stem drops -type limits -type exit_reason -type site_flags -type by_port -type naming bpf drops.bpf.c
