package main

import (
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"pelt/fleet"
	"pelt/model"
	"pelt/run"
)

// dataPort is where a host of a fleet takes test packets: that of pelt serve.
const dataPort = fleet.DefaultPort + 1

func newJoin() *cobra.Command {
	var end endFlags
	var hub hubFlags
	var name, address string
	var port int
	var unit bool
	c := &cobra.Command{
		Use:   "join HUB",
		Short: "Join a fleet, and wait for tests from its hub",
		Long: `join connects this host to a pelt hub, or to NATS servers of yours (--nats), and waits for tests
with other hosts there. It stays until Ctrl-C, also while the hub is away.

Whoever has the hub's code can order tests, within the limits that you set here.`,
		Example: `  pelt join hub.example --code-file /etc/pelt-code --name fra-1 --max-rate 1gbit
  pelt join hub.example --code-file /etc/pelt-code --name fra-1 --print-unit`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			o := run.JoinOptions{Name: name}
			if len(args) == 1 {
				hub.Address = args[0]
			}
			var err error
			if o.EndOptions, err = end.options(c, 0, &port); err != nil {
				return err
			}
			if o.Code, err = hub.settled(c.Context()); err != nil {
				return err
			}
			o.Hub, o.Port = hub.Hub, port
			if o.Name == "" {
				o.Name, _, _ = strings.Cut(ownName(), ".")
			}
			switch {
			case hub.Address == "" && hub.NATS == "":
				return usagef("want the HUB to join, or --nats")
			case !model.IsHostName(o.Name):
				return usagef("--name: want up to 64 letters, digits, - and _, not %q", o.Name)
			case port < 1 || port > 65535:
				return usagef("--port: want 1 to 65535, not %d", port)
			}
			if address != "" {
				if o.Address, err = netip.ParseAddr(address); err != nil {
					return usagef("--address: %q is no IP address", address)
				}
			}
			if unit {
				switch {
				case hub.code != "":
					return usagef("--print-unit: put the code into a file that only root reads, and give --code-file")
				case hub.NATS == "" && (hub.codeFile == "" || len(args) == 0):
					return usagef("--print-unit: a service knows no variables of yours: " +
						"give HUB, and a --code-file that only root reads")
				}
				return printUnit(c.OutOrStdout(), os.Args, hub.codeFile, hub.Credentials)
			}
			o.Ready = func(i fleet.AgentInfo) {
				fmt.Fprint(c.OutOrStdout(), joined(i, port, o.Limits))
				seenCode(c, hub.code != "")
			}
			dropPrivileges(c)
			return run.Join(c.Context(), o)
		},
	}
	f := c.Flags()
	end.register(f, "any other host")
	hub.register(f, "`CODE` that pelt hub printed (or $PELT_CODE)")
	_ = f.MarkHidden("hub") // it is the argument
	f.StringVar(&name, "name", "", "`NAME` of this host in the fleet (default: its host name)")
	f.IntVar(&port, "port", dataPort, "`PORT` for test packets")
	f.StringVar(&address, "address", "", "`ADDRESS` at which other hosts call this one (default: that towards the hub)")
	f.BoolVar(&unit, "print-unit", false, "print a systemd unit for this command, do nothing else")
	return c
}

func ownName() string {
	name, _ := os.Hostname() // none is told as a wrong name
	return name
}

// joined tells the owner of a host what it is on the hub now.
func joined(i fleet.AgentInfo, port int, limits fleet.Limits) string {
	l := spoken()
	called := l.Sayf("other hosts call %v", i.Address)
	if i.Address.IsLoopback() {
		called = l.Sayf("it calls other hosts, which cannot call %v (--address gives them another)", i.Address)
	}
	text := l.Sayf("joined as %s; %s, data on %s\nAllowed: %v\n", i.ID, called, run.DataPorts(l, port), limits.In(l))
	if i.BehindNAT() {
		text += l.Sayf("This host is %v behind a NAT that shows it as %v: it can call hosts that are not, send "+
			"to them\nand receive from them. Two hosts behind NATs of their own cannot be measured with each other.\n",
			i.Address, i.Seen)
	}
	return text
}

// printUnit prints a systemd unit that runs this command, which reads some files, without --print-unit.
func printUnit(w io.Writer, args []string, files ...string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	for _, file := range files {
		if file != "" && !filepath.IsAbs(file) {
			return usagef("--print-unit: a service starts in /; give %s with its whole path", file)
		}
	}
	line := []string{unitWord(program)}
	for _, a := range args[1:] {
		if a != "--print-unit" {
			line = append(line, unitWord(a))
		}
	}
	_, err = fmt.Fprintf(w, `[Unit]
Description=pelt: a host of a fleet
Wants=network-online.target
After=network-online.target

[Service]
ExecStart=%s
Restart=always
RestartSec=30
LimitNOFILE=65536
TasksMax=4096
ProtectSystem=strict
ProtectHome=read-only
PrivateTmp=yes
NoNewPrivileges=yes
CapabilityBoundingSet=CAP_NET_BIND_SERVICE CAP_NET_ADMIN CAP_NET_RAW CAP_SYS_NICE CAP_SYS_RESOURCE CAP_SYSLOG CAP_PERFMON CAP_BPF
RestrictAddressFamilies=AF_INET AF_INET6 AF_NETLINK AF_UNIX
SystemCallArchitectures=native
SystemCallFilter=@system-service bpf perf_event_open
SystemCallErrorNumber=EPERM
RestrictNamespaces=yes
RestrictSUIDSGID=yes
LockPersonality=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelModules=yes

[Install]
WantedBy=multi-user.target
`, strings.Join(line, " "))
	return err
}

// unitWord quotes an argument as systemd reads it.
func unitWord(text string) string {
	text = strings.NewReplacer("%", "%%", "$", "$$").Replace(text)
	if !strings.ContainsAny(text, " \t\"'\\;") && text != "" {
		return text
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}
