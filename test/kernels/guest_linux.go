package kernels

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Boot is the guest's first process: it prepares the machine, runs its Order,
// and switches it off. Anywhere else it ends the process with an error.
func Boot() {
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "guest: runs only as the first process of a virtual machine")
		os.Exit(1)
	}
	g := guest{}
	why := ""
	if err := g.run(); err != nil {
		why = err.Error()
		fmt.Fprintln(os.Stderr, "guest:", err) // on the kernel's console
	}
	g.send(Record{End: &why})
	if g.port != nil {
		_ = unix.IoctlSetInt(int(g.port.Fd()), unix.TCSBRK, 1) // wait until all is out
	}
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}

type guest struct {
	port    *os.File // to the host
	missing []string
}

func (g *guest) run() error {
	g.mount()
	if err := g.open("/dev/ttyS1"); err != nil {
		return err
	}
	b, err := os.ReadFile(OrderFile)
	if err != nil {
		return err
	}
	var order Order
	if err := json.Unmarshal(b, &order); err != nil {
		return fmt.Errorf("%s: %w", OrderFile, err)
	}
	for _, m := range order.Modules {
		if err := insert(m); err != nil {
			g.missing = append(g.missing, err.Error())
		}
	}
	g.prepare()
	g.send(Record{Up: g.describe()})
	for _, c := range order.Commands {
		g.send(Record{Start: &Start{c.Name}})
		exit := g.command(c)
		g.send(Record{Exit: &exit})
	}
	return nil
}

// mounts are what a usual system has, in order.
var mounts = []struct{ kind, at string }{
	{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"tmpfs", "/tmp"}, {"tmpfs", "/run"}, {"tmpfs",
		"/dev/shm"},
	{"bpf", "/sys/fs/bpf"}, {"cgroup2", "/sys/fs/cgroup"}, {"tracefs", "/sys/kernel/tracing"}, {"debugfs",
		"/sys/kernel/debug"},
}

func (g *guest) mount() {
	for _, m := range mounts {
		err := os.MkdirAll(m.at, 0o755)
		if err == nil {
			err = unix.Mount(m.kind, m.at, m.kind, 0, "")
		}
		if err != nil {
			g.missing = append(g.missing, fmt.Sprintf("mount %s at %s: %v", m.kind, m.at, err))
		}
	}
}

// open opens the line to the host and makes it carry bytes as they are.
func (g *guest) open(path string) error {
	port, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	t, err := unix.IoctlGetTermios(int(port.Fd()), unix.TCGETS)
	if err == nil {
		t.Oflag &^= unix.OPOST
		t.Lflag &^= unix.ECHO | unix.ICANON
		t.Cflag |= unix.CLOCAL
		err = unix.IoctlSetTermios(int(port.Fd()), unix.TCSETS, t)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("%s: %w", path, err), port.Close())
	}
	g.port = port
	return nil
}

func (g *guest) send(r Record) {
	b, err := json.Marshal(r)
	if err == nil && g.port != nil {
		_, err = g.port.Write(append(b, '\n'))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "guest: tell the host:", err)
	}
}

func insert(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.FinitModule(int(f.Fd()), "", 0); err != nil && err != unix.EEXIST {
		return fmt.Errorf("insert %s: %w", path, err)
	}
	return nil
}

// prepare does what a distribution's start-up does and tests take for granted.
func (g *guest) prepare() {
	failed := func(what string, err error) {
		if err != nil {
			g.missing = append(g.missing, what+": "+err.Error())
		}
	}
	failed("name the host", unix.Sethostname([]byte("guest")))
	failed("search path", os.Setenv("PATH", "/bin")) // the kernel gives none, and traces are read by programs
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	failed("loopback", err)
	if err == nil {
		defer unix.Close(fd)
		req, err := unix.NewIfreq("lo")
		if err == nil {
			req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
			err = unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req)
		}
		failed("loopback", err)
	}
	failed("run directory", os.MkdirAll("/run/netns", 0o755))
	failed("small programs", exec.Command("/bin/busybox", "--install", "-s", "/bin").Run()) // those that are not there
}

var settings = []string{
	"kernel.unprivileged_bpf_disabled", "kernel.kptr_restrict", "kernel.perf_event_paranoid",
	"kernel.unprivileged_userns_clone",
	"net.core.bpf_jit_enable", "net.core.rmem_max", "net.core.default_qdisc", "net.ipv4.tcp_congestion_control",
}

func (g *guest) describe() *Up {
	up := Up{Missing: g.missing}
	var name unix.Utsname
	if err := unix.Uname(&name); err == nil {
		up.Release = unix.ByteSliceToString(name.Release[:])
	}
	if b, err := os.ReadFile("/proc/uptime"); err == nil {
		first, _, _ := strings.Cut(string(b), " ")
		up.UptimeS, _ = strconv.ParseFloat(first, 64)
	}
	_, err := os.Stat("/sys/kernel/btf/vmlinux")
	up.BTF = err == nil
	for _, s := range settings {
		if b, err := os.ReadFile("/proc/sys/" + strings.ReplaceAll(s, ".", "/")); err == nil {
			up.Settings = append(up.Settings, s+"="+strings.TrimSpace(string(b)))
		}
	}
	return &up
}

// output sends what a command prints.
type output struct{ g *guest }

func (o output) Write(b []byte) (int, error) {
	o.g.send(Record{Output: b})
	return len(b), nil
}

// environment of every command. CI makes tests fail where they would skip on a
// developer's machine: here everything they may ask for is there.
var environment = []string{
	"PATH=/bin", "HOME=/root", "TMPDIR=/tmp", "CI=true", "PELT_CLOCK=1", "PELT_TEST_BINARY=/bin/pelt",
	"PELT_DATA=/tmp/pelt-data", GuestEnv + "=1",
}

func (g *guest) command(c Command) (exit Exit) {
	before := machine()
	began := time.Now()
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Dir, cmd.Env = c.Dir, environment
	cmd.Stdout, cmd.Stderr = output{g}, output{g}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = time.Second // a child that was left behind may hold the pipe
	err := cmd.Start()
	if err == nil {
		timer := time.AfterFunc(time.Duration(c.TimeoutS*float64(time.Second)), func() {
			_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
		})
		err = cmd.Wait()
		if !timer.Stop() {
			exit.Why = fmt.Sprintf("killed after %g s; ", c.TimeoutS)
		}
	}
	exit.Seconds = time.Since(began).Seconds()
	if err != nil {
		exit.Code = -1
		exit.Why += err.Error()
	}
	if cmd.ProcessState != nil {
		exit.Code = cmd.ProcessState.ExitCode()
	}
	exit.Left = settle(before)
	return exit
}
