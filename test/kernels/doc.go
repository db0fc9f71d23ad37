// Package kernels runs this module's tests and its binary under older Linux
// kernels, which differ in what they tell of a dropped packet.
//
// Its tests take a series' newest Debian cloud kernel (6.1, 6.12), pack it with
// statically linked test binaries into an initramfs, start that in QEMU without
// hardware acceleration, and turn each test that ran in the guest into a subtest
// here:
//
//	host                                      guest
//	go test -c, cpio ──── kernel, initramfs ──▶ Boot: mounts, modules
//	                                            runs each Command
//	outcome ◀──────────── Records, COM2 ─────── after each: what did it leave?
//	console ◀──────────── kernel's log, COM1 ──
//
// A guest test that skips counts as failed unless its message names the Linux
// version that it needs, and that is newer than the guest's.
//
// The package itself holds what host and guest share, and the guest's first
// process. It needs no rights on the host and changes nothing there; kernels are
// kept unpacked in PELT_KERNEL_DIR, or pelt-kernels in the user's cache
// directory (remove it to get newer ones). On CI whatever is missing is a
// failure, elsewhere the tests skip.
package kernels

// Order is what the guest is to do, in the file OrderFile of its initramfs.
type Order struct {
	Modules  []string // files, each after those it depends on
	Commands []Command
}

// OrderFile is where the guest finds its Order.
const OrderFile = "/order.json"

// GuestEnv is set in the environment of all that runs in a guest.
const GuestEnv = "PELT_GUEST"

// Command is one program run in the guest as root.
type Command struct {
	Name     string
	Args     []string // the program first
	Dir      string
	TimeoutS float64 // then it is killed
}

// Record is one line of JSON from the guest. Exactly one field is set.
type Record struct {
	Up     *Up     `json:",omitempty"`
	Start  *Start  `json:",omitempty"`
	Output []byte  `json:",omitempty"` // of the running command, stdout and stderr
	Exit   *Exit   `json:",omitempty"`
	End    *string `json:",omitempty"` // last record of every guest: "", or why it could not go on
}

// Up is sent once the guest is ready.
type Up struct {
	Release  string   // as uname -r
	UptimeS  float64  // since the kernel started
	BTF      bool     // the kernel has type information of its own
	Settings []string // sysctls that decide what a tracer sees, as name=value
	Missing  []string // what could not be mounted or loaded, one line each
}

// Start says that a command begins.
type Start struct{ Name string }

// Exit says how the command that began last ended.
type Exit struct {
	Code    int // -1 if a signal ended it or it could not be started
	Why     string
	Seconds float64
	Left    []string // processes, links, mounts, and BPF programs it left behind
}
