//go:build amd64 || arm64

package drops

import (
	"cmp"
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"pelt/internal/kerneltypes"
	"pelt/model"
)

// kernel is what the running kernel's type information says.
type kernel struct {
	reasons reasons
	rxSock  bool  // the tracepoint tells the receiving socket
	far     bool  // the program loaded last reads payload that is not linear
	old     bool  // Linux 5.5 to 5.16: only the function tells why a packet was dropped
	taps    []tap // needed only where no reason marks a sniffer's copies: before Linux 6.9
}

// examineKernel finds out what the programs must know. Errors are of type *Error.
func examineKernel() (kernel, error) {
	var k kernel
	spec, err := kerneltypes.Cache().Kernel()
	if err != nil {
		if !errors.Is(err, ebpf.ErrNotSupported) && !errors.Is(err, os.ErrNotExist) {
			return k, explain("read the kernel's type information", err)
		}
		return k, refuse(watching, model.Reason{Code: model.NoBTF}, err)
	}
	arguments, err := tracepointArguments(spec, "kfree_skb")
	if err != nil {
		return k, refuse(watching, model.Reason{Code: model.KernelOld, Name: release()}, err)
	}
	// Linux 5.17 added the reason, 6.11 the receiving socket.
	k.old = arguments < 3 || asOld != ""
	k.rxSock = arguments >= 4 && !k.old
	if k.old {
		k.reasons = reasons{names: map[uint32]string{0: notSpecified}}
	} else {
		k.reasons = readReasons(spec)
	}
	if k.reasons.value("PACKET_SOCK_ERROR") == 0 {
		k.taps = kernelTaps()
	}
	return k, nil
}

// asOld makes Linux 5.17 and later be watched as older ones are. Tests set it, some when they are built:
// -ldflags=-X=pelt/observe/drops.asOld=yes
var asOld string

func tracepointArguments(spec *btf.Spec, name string) (int, error) {
	var t *btf.Typedef
	if err := spec.TypeByName("btf_trace_"+name, &t); err != nil {
		return 0, err
	}
	if p, ok := t.Type.(*btf.Pointer); ok {
		if f, ok := p.Target.(*btf.FuncProto); ok {
			return len(f.Params) - 1, nil // the first is the tracepoint's own
		}
	}
	return 0, errors.New("btf_trace_" + name + " is no pointer to a function")
}

// Where reasons of subsystems are named, include/net/dropreason.h: enum, module.
var subsystemReasons = []struct{ enum, module string }{
	{"mac80211_drop_reason", "mac80211"},
	{"ovs_drop_reason", "openvswitch"},
	{"qdisc_drop_reason", ""},
}

const subsystemPrefix = "SKB_DROP_REASON_SUBSYS_"

func readReasons(spec *btf.Spec) reasons {
	r := reasons{names: map[uint32]string{}, subsystems: map[uint32]string{}}
	var e *btf.Enum
	if spec.TypeByName("skb_drop_reason_subsys", &e) == nil {
		for _, v := range e.Values {
			r.subsystems[uint32(v.Value)] = strings.TrimPrefix(v.Name, subsystemPrefix)
		}
	}
	for _, s := range subsystemReasons {
		at := spec
		if at.TypeByName(s.enum, &e) != nil {
			var err error
			if s.module == "" {
				continue
			}
			if at, err = kerneltypes.Cache().Module(s.module); err != nil || at.TypeByName(s.enum, &e) != nil {
				continue // not loaded: drops nothing
			}
		}
		r.add(e, "")
	}
	if spec.TypeByName("skb_drop_reason", &e) == nil { // the tracepoint's argument is one
		r.add(e, reasonPrefix)
	}
	return r
}

func (r reasons) add(e *btf.Enum, prefix string) {
	for _, v := range e.Values {
		if !strings.HasPrefix(v.Name, "__") {
			r.names[uint32(v.Value)] = strings.TrimPrefix(v.Name, prefix)
		}
	}
}

// tapFunctions free the copies that packet sockets had no room for, and, as if
// dropped, the parts of a reassembled packet with the packet itself.
var tapFunctions = []string{"packet_rcv", "tpacket_rcv", "packet_rcv_spkt", "packet_rcv_fanout", "skb_release_data"}

func kernelTaps() []tap {
	f, err := os.Open(kallsyms)
	if err != nil {
		return nil
	}
	defer f.Close()
	taps := findTaps(f, tapFunctions)
	return taps[:min(len(taps), int(bpfLimitsTAPS))]
}

// load loads what the objects name, once change has made the specification fit. The program that reads payload
// anywhere in a packet is tried first; older kernels refuse it.
func (k *kernel) load(objects any, change func(*ebpf.CollectionSpec) error) error {
	if k.old {
		// Before Linux 5.11 maps are locked memory. Where it may not be raised, the kernel says what it lacks.
		_ = unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY})
		return k.loadBeside(nil, objects, change)
	}
	k.far = true
	err := k.loadBeside(nil, objects, change)
	if err != nil && !errors.Is(err, unix.EPERM) {
		k.far = false
		err = k.loadBeside(nil, objects, change)
	}
	return err
}

// loadBeside loads more objects, which share those maps by name that are there already.
func (k *kernel) loadBeside(maps map[string]*ebpf.Map, objects any, change func(*ebpf.CollectionSpec) error) error {
	spec, err := loadBpf()
	if err != nil {
		return refuse(watching, model.Reason{Code: model.WatchFailed, Text: model.SystemSaid(err)}, err)
	}
	var taps [bpfLimitsTAPS]bpfTap
	for i, t := range k.taps {
		taps[i].Begin, taps[i].End = t.begin, t.end
	}
	v := spec.Variables
	if k.old {
		for _, p := range spec.Programs {
			p.Instructions = plain(p.Instructions)
		}
	}
	err = errors.Join(change(spec), v["has_rx_sk"].Set(k.rxSock), v["use_dynptr"].Set(k.far),
		v["old_kernel"].Set(k.old), v["tap_reason"].Set(k.reasons.value("PACKET_SOCK_ERROR")), v["taps"].Set(taps))
	if err != nil {
		return refuse(watching, model.Reason{Code: model.WatchFailed, Text: model.SystemSaid(err)}, err)
	}
	err = spec.LoadAndAssign(objects, &ebpf.CollectionOptions{Cache: kerneltypes.Cache(), MapReplacements: maps})
	if err != nil {
		return explain("load the BPF program", err)
	}
	return nil
}

// plain takes out what old kernels refuse even where a program never comes: functions for bpf_loop to call (5.13),
// instructions that fetch (5.12; 5.18 on arm64), and global functions with pointers (5.12), which become static.
func plain(all asm.Instructions) (kept asm.Instructions) {
	called := map[string]bool{}
	for _, i := range all {
		if i.IsFunctionCall() {
			called[i.Reference()] = true
		}
	}
	var skip bool
	for n, i := range all {
		if f := btf.FuncMetadata(&i); f != nil {
			skip = n > 0 && !called[f.Name]
			static := *f
			static.Linkage = btf.StaticFunc
			i = btf.WithFuncMetadata(i, &static)
		}
		op := i.OpCode
		switch {
		case skip:
			continue
		case i.IsLoadOfFunctionPointer():
			i.Src, i.Constant = asm.R0, 0
			i = i.WithReference("")
		case op.Class() == asm.StXClass && op.Mode() == asm.AtomicMode && op.AtomicOp() != asm.AddAtomic:
			i.OpCode, i.Constant = asm.Mov.Reg(i.Dst, i.Src).OpCode, 0
			i.Offset = 0
		}
		kept = append(kept, i)
	}
	return kept
}

// attach attaches tracing programs, one after the other. An error has detached them again.
func attach(programs ...*ebpf.Program) (hooks []link.Link, err error) {
	for _, p := range programs {
		hook, err := link.AttachTracing(link.TracingOptions{Program: p, AttachType: ebpf.AttachTraceRawTp})
		if err != nil {
			return nil, errors.Join(explain("attach to a tracepoint", err), detach(hooks))
		}
		hooks = append(hooks, hook)
	}
	return hooks, nil
}

// detach takes programs off in reverse: the second takes what the first has not done. Then it
// closes programs and maps, of which those that were never loaded are nil.
func detach(hooks []link.Link, objects ...io.Closer) error {
	var all []error
	for _, hook := range slices.Backward(hooks) {
		all = append(all, hook.Close())
	}
	for _, x := range objects {
		all = append(all, x.Close())
	}
	return errors.Join(all...)
}

// explain makes one line of what the kernel answered.
func explain(doing string, err error) *Error {
	var refused *ebpf.VerifierError
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES) && !errors.As(err, &refused):
		return refuse(doing, model.Reason{Code: model.NoRights}, err)
	case errors.Is(err, unix.ENOSYS):
		return refuse(doing, model.Reason{Code: model.NoBPF}, err)
	case errors.As(err, &refused) && !errors.Is(err, unix.ENOMEM) && !errors.Is(err, unix.EAGAIN):
		line := refused.Error()
		for i := len(refused.Log) - 1; i >= 0; i-- { // the last lines are statistics
			if l := strings.TrimSpace(refused.Log[i]); l != "" && !strings.HasPrefix(l, "processed ") {
				line = l
				break
			}
		}
		return refuse(doing, model.Reason{Code: model.ProgramRefused, Name: release(), Text: line}, refused)
	}
	// An error that the BPF library made itself has no errno.
	text := cmp.Or(model.SystemSaid(err), strings.ReplaceAll(err.Error(), "\n", "; "))
	e := refuse(doing, model.Reason{Code: model.WatchFailed, Text: text}, err)
	e.Passes = !errors.Is(err, ebpf.ErrNotSupported)
	return e
}

func release() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "this kernel"
	}
	return unix.ByteSliceToString(u.Release[:])
}
