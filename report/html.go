package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"strings"

	"pelt/model"
	"pelt/report/bench"
	"pelt/report/controls"
	"pelt/report/internal/words"
)

// The parts of the one file. uPlot 1.6.32 is Leon Sorokin's, under the MIT
// licence, which stands before its code in every report.
var (
	//go:embed assets/report.html.tmpl
	htmlTemplate string
	//go:embed assets/bench.html.tmpl
	benchTemplate string
	//go:embed assets/bench.css
	benchCSS string
	//go:embed assets/bench.js
	benchJS string
	//go:embed assets/cc.html.tmpl
	controlTemplate string
	//go:embed assets/cc.css
	controlCSS string
	//go:embed assets/cc.js
	controlJS string
	//go:embed assets/report.css
	htmlCSS string
	//go:embed assets/report.js
	htmlJS string
	//go:embed assets/uplot.min.js
	uplotJS string
	//go:embed assets/uplot.min.css
	uplotCSS string
	//go:embed assets/LICENSE-uPlot
	uplotLicence string
)

// HTML writes the run as one file that fetches nothing: verdict, figures,
// charts, the path with its losses, tables, environment. Without JavaScript all
// but the charts remains.
func HTML(w io.Writer, doc model.Document) error {
	view := newPage(doc)
	charts := newChartData(doc, view.table, view.classes)
	view.MarkNote = markNote(charts.Trials)
	view.HasSeries, view.SeriesLeft = len(charts.Trials) > 0, charts.Left
	data, err := json.Marshal(charts) // escapes <, > and & itself
	if err != nil {
		return fmt.Errorf("writing HTML: %w", err)
	}
	script := "/*! uPlot 1.6.32\n" + uplotLicence + "*/\n" + uplotJS + "\n" + htmlJS
	style := uplotCSS + "\n" + htmlCSS
	if bench.Is(doc) {
		view.Bench = newBenchView(doc, charts)
		script, style = script+"\n"+benchJS, style+"\n"+benchCSS
	}
	if controls.Is(doc) {
		view.Control = newControlView(doc, charts)
		script, style = script+"\n"+controlJS, style+"\n"+controlCSS
	}
	view.Script, view.Data = template.JS(script), template.JS(data) // our own assets, and JSON that json.Marshal escaped
	return view.write(w, "script-src "+cspHash(script)+"; ", style)
}

// ExplainHTML writes the path with its losses and the ledgers of the trials
// asked for, as one file that fetches nothing and needs no script. An *AskError
// means that the run has no such trial.
func ExplainHTML(w io.Writer, doc model.Document, ask Ask) error {
	chosen, err := ask.choose(doc)
	if err != nil {
		return err
	}
	return newExplainPage(doc, chosen).write(w, "", htmlCSS)
}

// write fills the template; scripts is the part of the policy that lets some run.
func (p page) write(w io.Writer, scripts, style string) error {
	t, err := template.New("report").Funcs(template.FuncMap{"keep": keepUnits}).Parse(htmlTemplate)
	if err == nil {
		t, err = t.Parse(benchTemplate)
	}
	if err == nil {
		t, err = t.Parse(controlTemplate)
	}
	if err != nil {
		return fmt.Errorf("writing HTML: %w", err)
	}
	style += string(p.Ledger.Rules)
	p.Style = template.CSS(style) // our own assets
	p.CSP = "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; " + scripts + "style-src " + cspHash(style)
	var b bytes.Buffer
	if err := t.Execute(&b, p); err != nil {
		return fmt.Errorf("writing HTML: %w", err)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("writing HTML: %w", err)
	}
	return nil
}

// keepUnits lets no line break stand between a number and its unit.
func keepUnits(text string) string {
	parts := words.Phrases(text)
	for i, p := range parts {
		parts[i] = strings.ReplaceAll(p, " ", "\u00a0")
	}
	return strings.Join(parts, " ")
}

// cspHash names a block that may run, in the words of CSP 3 section 2.3.1.
func cspHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
