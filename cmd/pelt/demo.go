package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"pelt/plan"
	"pelt/run"
)

func newDemo() *cobra.Command {
	var f commonFlags
	c := &cobra.Command{
		Use:   "demo",
		Short: "See it work in about a minute: a router on this machine, its size curve, a report",
		Long: `demo sends packets of several sizes through a router of network namespaces, and writes
pelt-demo.html and pelt-demo.png, unless flags name files. Without root it uses a user
namespace or the loopback interface, and says which.`,
		Example: "  pelt demo",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			p, err := plan.Demo()
			if err != nil {
				return err
			}
			if len(f.output.asked()) == 0 {
				f.output.html, f.output.chart = "pelt-demo.html", "pelt-demo.png"
			}
			if err := f.output.check(); err != nil {
				return err
			}
			done, err := viaUserNamespace(p.Target, c.ErrOrStderr())
			if done {
				return err
			}
			if err != nil {
				say(c.ErrOrStderr(), spoken().Sayf("no lab here (%s): this demo shows the loopback interface "+
					"and no router", spoken().Error(err)))
				p.Target, p.Links = "lab:"+run.Loopback, nil
			}
			f.brief = true
			if !isTerminal(os.Stderr) {
				f.progress = 10 * time.Second
			}
			tellf(c, "The demo floods a path on purpose: the packets that are lost show its limit.")
			if err := f.execute(c, p); err != nil {
				return err
			}
			_, err = fmt.Fprint(c.ErrOrStderr(), spoken().Say("\nOn a real network: start pelt serve on a far host, "+
				"and paste the command that it prints.\npelt help start has the steps.\n"))
			return err
		},
	}
	f.output.register(c.Flags())
	c.Flags().BoolVar(&f.noStore, "no-store", false, "do not keep this run")
	f.yes = true
	return c
}
