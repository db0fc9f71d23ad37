package counters

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"pelt/internal/nic"
	"pelt/model"
)

// knobs gathers settings in order.
type knobs struct {
	list []model.Knob
}

func (k *knobs) add(name, value string) {
	if value != "" {
		k.list = append(k.list, model.Knob{Name: name, Value: value})
	}
}

func (k *knobs) number(name string, n uint32) { k.add(name, decimal(uint64(n))) }

func (k *knobs) has(name string) bool {
	return slices.ContainsFunc(k.list, func(k model.Knob) bool { return k.Name == name })
}

// Knobs reads the settings of the host and of one interface in the namespace
// that do runs functions in; iface may be "". What the kernel or the driver does
// not have, or does not show to this user, is left out. Sysctls bear the names
// of sysctl(8), settings of the interface come after its name: eth0.rx_ring in
// descriptors, eth0.txqueuelen in packets, eth0.coalesce_rx_usecs.
func Knobs(do func(func() error) error, iface string) []model.Knob {
	k := &knobs{}
	_ = do(func() error { // a namespace that cannot be entered has none
		for _, name := range hostSysctls {
			k.sysctl(name)
		}
		k.memory()
		if validInterface(iface) {
			for _, pattern := range interfaceSysctls {
				k.sysctl(sysctlName(pattern, iface))
			}
			l := k.device(iface)
			k.driver(iface)
			k.files(l)
		}
		return nil
	})
	k.firstNamespace()
	k.add("cpu.governor", governor())
	return k.list
}

func (k *knobs) sysctl(name string) {
	b, err := os.ReadFile(sysctlPath(name))
	if err == nil {
		k.add(name, oneLine(b))
	}
}

// memory adds what UDP and the reassembly hold at present, and the unit of udp_mem.
func (k *knobs) memory() {
	b, _ := os.ReadFile("/proc/thread-self/net/sockstat") // empty if it cannot be read
	parseSockstat(b, func(group, key []byte, value uint64) {
		switch string(group) + "." + string(key) {
		case "UDP.mem":
			k.add("sockstat.udp_mem_pages", decimal(value))
		case "FRAG.memory":
			k.add("sockstat.frag_memory_bytes", decimal(value))
		}
	})
	k.number("page_size_bytes", uint32(os.Getpagesize()))
}

// firstNamespace adds the sysctls that the namespace lacks and the first one
// has. The thread that looks there ends with its goroutine.
func (k *knobs) firstNamespace() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		missing := func() (names []string) {
			for _, name := range hostSysctls {
				if strings.HasPrefix(name, "net.core.") || name == "net.ipv4.udp_mem" {
					if !k.has(name) {
						names = append(names, name)
					}
				}
			}
			return names
		}
		for _, name := range missing() {
			k.sysctl(name) // in the process's own namespace
		}
		if len(missing()) == 0 {
			return
		}
		runtime.LockOSThread() // for good
		fd, err := unix.Open("/proc/1/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return
		}
		defer unix.Close(fd)
		if unix.Setns(fd, unix.CLONE_NEWNET) != nil {
			return
		}
		for _, name := range missing() {
			k.sysctl(name)
		}
	}()
	<-done
}

// device adds what rtnetlink tells, and returns the interface; one without a name
// if there is none.
func (k *knobs) device(iface string) (l link) {
	c, err := netlink.Dial(unix.NETLINK_ROUTE, nil)
	if err != nil {
		return link{}
	}
	defer c.Close()
	links, _ := listLinks(c) // empty if it fails
	i := slices.IndexFunc(links, func(l link) bool { return l.name == iface })
	if i < 0 {
		return link{}
	}
	l = links[i]
	k.number(iface+".mtu", l.mtu)
	k.number(iface+".txqueuelen", l.txQueue)
	k.add(iface+".kind", l.kind)
	k.add(iface+".xdp", l.xdp)
	qdiscs, _ := listQdiscs(c)
	for _, q := range qdiscs {
		if q.link != l.index || q.parent != rootHandle {
			continue
		}
		k.add(iface+".qdisc", q.kind)
		if q.limitPackets > 0 {
			k.number(iface+".qdisc_limit_packets", q.limitPackets)
		}
		if q.limitFlow > 0 {
			k.number(iface+".qdisc_flow_limit_packets", q.limitFlow)
		}
		if q.limitBytes > 0 {
			k.number(iface+".qdisc_limit_bytes", q.limitBytes)
		}
		if q.kind == "pfifo_fast" { // it has no limit of its own (net/sched/sch_generic.c, pfifo_fast_init)
			k.number(iface+".qdisc_limit_packets", l.txQueue)
		}
	}
	return l
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// driver adds what the driver tells.
func (k *knobs) driver(iface string) {
	h, err := nic.Open()
	if err != nil {
		return
	}
	defer h.Close()
	name, _ := h.Driver(iface) // "" is left out
	k.add(iface+".driver", name)
	for _, s := range h.Settings(iface) {
		k.add(iface+"."+s.Name, s.Value)
		if s.Max > 0 {
			k.number(iface+"."+s.Name+"_max", s.Max)
		}
	}
	if all, err := h.Features(iface); err == nil {
		for _, name := range features {
			if on, known := all[name]; known {
				k.add(iface+"."+name, onOff(on))
			}
		}
	}
}

// files adds what only sysfs tells. The one at /sys shows the namespace it was
// mounted in, so the calling thread's is looked at through a mount of its own
// that stands nowhere and ends with its descriptor.
func (k *knobs) files(l link) {
	iface := l.name
	if iface == "" {
		return
	}
	root, err := mountSysfs()
	own := err == nil
	if !own { // no right to, or too old a kernel
		if root, err = unix.Open("/sys", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
			return
		}
	}
	defer unix.Close(root)
	at := "class/net/" + iface
	if !own && !sameDevice(l, fileAt(root, at+"/ifindex"), fileAt(root, at+"/address")) {
		return
	}
	k.add(iface+".threaded", fileAt(root, at+"/threaded"))
	k.add(iface+".gro_flush_timeout", fileAt(root, at+"/gro_flush_timeout"))
	k.add(iface+".napi_defer_hard_irqs", fileAt(root, at+"/napi_defer_hard_irqs"))
	var names, masks, flows []string
	for i := 0; ; i++ {
		name := "rx-" + strconv.Itoa(i)
		mask := fileAt(root, at+"/queues/"+name+"/rps_cpus")
		if mask == "" {
			break
		}
		names, masks = append(names, name), append(masks, mask)
		flows = append(flows, fileAt(root, at+"/queues/"+name+"/rps_flow_cnt"))
	}
	if len(names) > 0 {
		k.number(iface+".rx_queues", uint32(len(names)))
		k.add(iface+".rps_cpus", sameOrEach(names, masks))
		k.add(iface+".rps_flow_cnt", sameOrEach(names, flows))
	}
}

// mountSysfs needs CAP_SYS_ADMIN and Linux 5.2 or later.
func mountSysfs() (root int, err error) {
	fs, err := unix.Fsopen("sysfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return 0, fmt.Errorf("mount sysfs: %w", err)
	}
	defer unix.Close(fs)
	if err := unix.FsconfigCreate(fs); err != nil {
		return 0, fmt.Errorf("mount sysfs: %w", err)
	}
	attributes := unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC
	if root, err = unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, attributes); err != nil {
		return 0, fmt.Errorf("mount sysfs: %w", err)
	}
	return root, nil
}

// fileAt returns a small file's text, "" if it cannot be read.
func fileAt(root int, path string) string {
	fd, err := unix.Openat(root, path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	b := make([]byte, 4096)
	n, err := unix.Read(fd, b)
	if err != nil {
		return ""
	}
	return oneLine(b[:n])
}

// governor returns the processors' frequency governor, each if they differ.
func governor() string {
	var found []string
	for cpu := range runtime.NumCPU() {
		b, err := os.ReadFile(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/cpufreq/scaling_governor", cpu))
		if err == nil && !slices.Contains(found, oneLine(b)) {
			found = append(found, oneLine(b))
		}
	}
	return strings.Join(found, " ")
}
