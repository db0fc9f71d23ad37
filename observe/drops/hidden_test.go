//go:build !guest

package drops

// hidden is how many drops a run may not see. Some makers' kernels run no tracing program while certain tasks of the system
// are interrupted, such as a virtual machine's agent; what a soft interrupt drops on top of these, no program is told,
// though ftrace shows it. One soft interrupt handles at most 64 packets (net.core.dev_weight). It met 2 of 150 runs here, so
// it meets a run twice once in 10 000 runs. In guests, whose kernels are Debian's, nothing is hidden.
const hidden = 64
