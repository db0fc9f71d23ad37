package testenv

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// HostTraces are the kinds of what programs may leave in the namespaces of the caller, MachineTraces those of what
// they may leave on the whole machine.
var (
	HostTraces    = []string{"link", "address", "route", "qdisc", "rule", "sysctl", "mount"}
	MachineTraces = []string{"process", "namespace", "program"}
)

// traces read all there is of a kind.
var traces = map[string]func() ([]string, error){
	"link":    printed("ip", "-o", "link"),
	"address": printed("ip", "-o", "address"),
	"route":   printed("ip", "route", "show", "table", "all"),
	"qdisc":   printed("tc", "qdisc"),
	"rule":    printed("nft", "list", "ruleset"),
	"mount":   printed("cat", "/proc/self/mounts"),
	"sysctl": func() (list []string, err error) {
		for _, pattern := range []string{"core/*", "ipv4/*", "ipv6/*", "ipv[46]/conf/*/*", "ipv[46]/neigh/lo/*"} {
			files, _ := filepath.Glob("/proc/sys/net/" + pattern)
			for _, file := range files {
				// which may come about by itself
				if b, err := os.ReadFile(file); err == nil && !strings.HasSuffix(file, "_secret") {
					list = append(list, file+"="+string(bytes.TrimSpace(b)))
				}
			}
		}
		return list, nil
	},
	// Those that run a program, but for this one.
	"process": func() (list []string, err error) {
		dirs, _ := filepath.Glob("/proc/[0-9]*")
		for _, d := range dirs {
			pid := filepath.Base(d)
			// Kernel threads have no command line, and neither have zombies.
			if b, _ := os.ReadFile(d + "/cmdline"); pid != strconv.Itoa(os.Getpid()) && len(b) > 0 {
				list = append(list, pid+" "+strings.TrimSpace(strings.ReplaceAll(string(b), "\x00", " ")))
			}
		}
		return list, nil
	},
	// Each that a thread is in, or that somebody has open.
	"namespace": func() (list []string, err error) {
		for _, pattern := range []string{"/proc/[0-9]*/task/*/ns/net", "/proc/[0-9]*/fd/*"} {
			paths, _ := filepath.Glob(pattern)
			for _, p := range paths {
				if to, err := os.Readlink(p); err == nil && strings.HasPrefix(to, "net:[") {
					list = append(list, to)
				}
			}
		}
		return list, nil
	},
	// BPF programs.
	"program": func() (list []string, err error) {
		for attr := (struct{ start, next, flags uint32 }{}); ; attr.start = attr.next {
			_, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_GET_NEXT_ID, uintptr(unsafe.Pointer(&attr)),
				unsafe.Sizeof(attr))
			switch errno {
			case 0:
			case unix.ENOENT:
				return list, nil
			default:
				return nil, errno
			}
			list = append(list, fmt.Sprint(attr.next))
		}
	},
}

func printed(argv ...string) func() ([]string, error) {
	return func() ([]string, error) {
		out, err := exec.Command(argv[0], argv[1:]...).Output()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", strings.Join(argv, " "), err)
		}
		return strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' }), nil
	}
}

// Traces reads all there is of some kinds, each as "kind what". A kind that cannot be read is an error: it would look
// the same before and after.
func Traces(kinds ...string) (all []string, err error) {
	for _, kind := range kinds {
		list, err := traces[kind]()
		if err != nil {
			return nil, fmt.Errorf("read each %s: %w", kind, err)
		}
		for _, what := range list {
			all = append(all, kind+" "+what)
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// Left lists what is there now and was not before, and what is gone. Others end mounts and processes of theirs.
func Left(before, now []string) (list []string) {
	for _, l := range now {
		if !slices.Contains(before, l) {
			list = append(list, l)
		}
	}
	for _, l := range before {
		kind, _, _ := strings.Cut(l, " ")
		if slices.Contains(HostTraces, kind) && kind != "mount" && !slices.Contains(now, l) {
			list = append(list, "gone: "+l)
		}
	}
	return list
}
