// Package bpfloss loses frames in the kernel by an eBPF program at an interface's
// ingress, drawn as lab/impair's exact link draws them: the same seed loses the
// same frames. It loads the program and reads its counts; the caller attaches it,
// as a direct-action classifier ahead of whatever passes frames on, and sees to
// it that frames come singly.
package bpfloss

// Counts are what a program did. Frames are buffers as the kernel hands them over.
type Counts struct{ Frames, Lost uint64 }
