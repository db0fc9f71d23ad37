package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"pelt/fleet"
	"pelt/run"
	"pelt/store"
)

func newHub() *cobra.Command {
	var listen string
	var flags codeFlags
	var port int
	var figures metricsFlag
	c := &cobra.Command{
		Use:   "hub",
		Short: "Start a fleet: its hosts connect to this one",
		Long: `hub is where hosts join (pelt join) and where tests of a fleet find them. It prints the line to
paste on each host, with a code that stays the same when the hub starts again. The hub sends
and receives no test packets.`,
		Example: `  pelt hub
  pelt mesh fleet: --rate 1kpps --time 10s`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			at, err := listenAddress(c, listen, &port)
			if err != nil {
				return err
			}
			if port < 1 || port > 65535 {
				return usagef("--port: want 1 to 65535, not %d", port)
			}
			code, err := flags.read()
			if err == nil && code == "" {
				if code, err = hubCode(true); err == nil {
					flags.codeFile, err = hubCodeFile()
				}
			}
			switch {
			case err != nil:
				return err
			case len(code) < 8:
				return usagef("--code: want at least 8 characters")
			}
			end, err := figures.serve(c)
			if err != nil {
				return err
			}
			defer end()
			h, err := fleet.StartHub(fleet.HubConfig{Listen: netip.AddrPortFrom(at, uint16(port)), Code: code,
				Joins: true, Events: teller(c)})
			if err != nil {
				return err
			}
			prefix, note := toldCode(code, flags.codeFile)
			fmt.Fprint(c.OutOrStdout(), hubInvitation(at, port, prefix, note))
			seenCode(c, flags.code != "")
			<-c.Context().Done()
			return h.Close()
		},
	}
	f := c.Flags()
	f.StringVar(&listen, "listen", "",
		"`ADDRESS`, ADDRESS:PORT or :PORT to listen on, PORT as in --port (default: every address)")
	f.IntVar(&port, "port", fleet.DefaultPort, "control `PORT`")
	flags.register(f, "use this `CODE`, not the hub's own (or $PELT_CODE)")
	figures.register(f)
	return c
}

// hubCode is the code of this host's own hub, which is made once, if asked for, and kept. As it counts for long, it is
// two codes in one.
func hubCode(make bool) (string, error) {
	file, err := hubCodeFile()
	if err != nil {
		return "", err
	}
	b, err := os.ReadFile(file)
	code := strings.TrimSpace(string(b))
	switch {
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("the hub's code: %w", err)
	case code != "" || !make: // an empty file is one that a full disk did not take
		return code, nil
	}
	first, err := fleet.NewCode()
	if err != nil {
		return "", err
	}
	second, err := fleet.NewCode()
	if err == nil {
		err = os.MkdirAll(filepath.Dir(file), 0o700)
	}
	code = first + "-" + second
	if err == nil {
		err = os.WriteFile(file, []byte(code+"\n"), 0o600)
	}
	return code, err
}

func hubCodeFile() (string, error) {
	dir, err := store.Dir()
	return filepath.Join(dir, "hub-code"), err
}

func hubInvitation(at netip.Addr, port int, code, note string) string {
	addresses := reachedAt(at)
	var b strings.Builder
	l := spoken()
	fmt.Fprint(&b, l.Sayf("pelt hub: control on %d/tcp\n\nOn each host of the fleet, paste, with a name of its own:\n",
		port))
	for i, a := range addresses {
		if i == 1 {
			fmt.Fprintln(&b, l.Say("\nor, if that address is not the one it reaches:"))
		}
		fmt.Fprintf(&b, "\n    %spelt join %s --name NAME\n", code, targetText(a, port))
	}
	local := ""
	switch {
	case at.IsValid() && !at.IsUnspecified():
		local = " --hub " + targetText(at, port)
	case port != fleet.DefaultPort:
		local = " --hub " + targetText(loopback, port)
	}
	if note != "" {
		fmt.Fprint(&b, "\n"+note)
	}
	fmt.Fprint(&b, l.Sayf("\nThen, here: pelt hosts%s\nCtrl-C ends the hub; hosts come back when it starts again.\n",
		local))
	return b.String()
}

// hubFlags say where the hub of a fleet is.
type hubFlags struct {
	run.Hub
	codeFlags
	typed string // code that the user was asked for
}

func (h *hubFlags) register(s *pflag.FlagSet, code string) {
	h.codeFlags.register(s, code)
	s.StringVar(&h.Address, "hub", "", "fleet: `HOST[:PORT]` of the pelt hub (default: this host, or $PELT_HUB)")
	s.StringVar(&h.NATS, "nats", "", "fleet: `URLS` of NATS servers of yours in place of a hub")
	s.StringVar(&h.Credentials, "creds", "", "fleet: `FILE` with the credentials for --nats")
}

// settled finds where the hub is, and returns its code: without another one that of this host's own hub, or what the
// user types.
func (h *hubFlags) settled(ctx context.Context) (string, error) {
	switch {
	case h.NATS != "" && h.Address != "":
		return "", usagef("--nats: give it or --hub, not both")
	case h.NATS != "":
		return "", nil
	case h.Credentials != "":
		return "", usagef("--creds: is for --nats")
	case h.Address == "":
		h.Address = os.Getenv("PELT_HUB")
	}
	code, err := h.read()
	if err == nil && code == "" {
		code, err = hubCode(false)
	}
	if err == nil && code == "" {
		if h.typed == "" {
			h.typed, err = askCode(ctx)
		}
		code = h.typed
	}
	return code, err
}
