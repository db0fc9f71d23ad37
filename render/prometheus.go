package render

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"pelt/render/plain"
	"pelt/view"
)

var (
	labelText = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	helpText  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
)

// Prometheus writes gauges in Prometheus' text format 0.0.4.
func Prometheus(w io.Writer, gauges []view.Gauge) error {
	out := bufio.NewWriter(w)
	for _, g := range gauges {
		if len(g.Samples) == 0 {
			continue
		}
		kind := "gauge"
		if g.Counter {
			kind = "counter"
		}
		fmt.Fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", g.Name, helpText.Replace(g.Help), g.Name, kind)
		for _, s := range g.Samples {
			var labels []string
			for _, l := range s.Labels {
				labels = append(labels, l.Name+`="`+labelText.Replace(plain.Text(l.Value))+`"`)
			}
			fmt.Fprintf(out, "%s{%s} %s\n", g.Name, strings.Join(labels, ","),
				strconv.FormatFloat(s.Value, 'g', -1, 64))
		}
	}
	return out.Flush()
}
