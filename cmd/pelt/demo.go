package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"pelt/plan"
	"pelt/run"
)

func newDemo() *cobra.Command {
	var f commonFlags
	c := &cobra.Command{
		Use:   "demo",
		Short: "See it work in under a minute: a router on this machine, its size curve, a report",
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
			if f.output == (outputFlags{}) {
				f.output = outputFlags{html: "pelt-demo.html", chart: "pelt-demo.png"}
			}
			if err := f.output.check(); err != nil {
				return err
			}
			done, err := viaUserNamespace(p.Target, c.ErrOrStderr())
			if done {
				return err
			}
			if err != nil {
				fmt.Fprintf(c.ErrOrStderr(),
					"no lab here (%v): this demo shows the loopback interface and no router\n", err)
				p.Target, p.Links = "lab:"+run.Loopback, nil
			}
			return f.execute(c, p)
		},
	}
	f.output.register(c.Flags())
	c.Flags().BoolVar(&f.noStore, "no-store", false, "do not keep this run")
	f.yes = true
	return c
}
