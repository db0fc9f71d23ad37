package web

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"pelt/finding"
	"pelt/render"
	"pelt/run"
	"pelt/store"
)

// frame is what all pages have.
type frame struct {
	Title   string
	Status  int      // of HTTP; 0: 200
	Here    string   // path of the navigation's entry that this page belongs to
	Outside bool     // for those who are not let in: without navigation
	Scripts []string // names of assets
	Styles  []string // ... beside the one of all pages
	Body    func(*render.Markup)
}

// show writes a page in the language of its reader.
func (s *Server) show(w http.ResponseWriter, r *http.Request, f frame) {
	m := &render.Markup{Language: of(r)}
	m.Put(`<!doctype html>
<html lang="$1">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$2 · pelt</title>
`, m.Tag(), m.Say(f.Title))
	for _, name := range slices.Concat([]string{"style.css"}, f.Styles) {
		m.Put(`<link rel="stylesheet" href="/assets/$1">`+"\n", name)
	}
	for _, name := range f.Scripts {
		m.Put(`<script src="/assets/$1" defer></script>`+"\n", name)
	}
	m.Put("</head>\n<body>\n")
	if !f.Outside {
		m.Put(`<a class="skip" href="#main">{Skip to the content}</a>
<nav aria-label="{Pages}"><b>pelt</b>
`)
		entry(m, "/", m.Say("Kept runs"), f.Here == "/")
		if len(s.o.Offers) > 0 {
			entry(m, "/new", m.Say("New test"), f.Here == "/new")
		}
		m.Put("</nav>\n")
	}
	m.Put(`<main id="main">` + "\n")
	f.Body(m)
	m.Put("</main>\n</body>\n</html>\n")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(cmp.Or(f.Status, http.StatusOK))
	_, _ = io.WriteString(w, m.String()) // who is gone needs no page
}

// fail writes a page that says what is wrong.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, status int, text string) {
	s.show(w, r, frame{Title: http.StatusText(status), Status: status, Outside: status == http.StatusForbidden,
		Body: func(m *render.Markup) { m.Put("<h1>$1</h1>\n", m.Say(text)) }})
}

// entry writes an entry of a navigation.
func entry(m *render.Markup, address, text string, here bool) {
	m.Put(`<a href="$1" aria-current="$2">$3</a>`+"\n", address, when(here, "page"), text)
}

// when returns a text, or an attribute's value, where it is to be there.
func when(there bool, text string) string {
	if there {
		return text
	}
	return ""
}

func (l runList) page(m *render.Markup) {
	m.Put(`<h1>{Kept runs}</h1>
<form role="search" id="search" action="/" method="get">
<label for="q">{Search}</label>
<input type="search" id="q" name="q" value="$1" autocomplete="off" aria-describedby="hint" aria-controls="rows">
<noscript><button>{Search}</button></noscript>
<small id="hint">{Words of the line that pelt list prints: command, target, state, name, #tag, result}</small>
</form>
<div id="removals" role="status">`, l.Query)
	for _, x := range l.Removals {
		after := fmt.Sprintf("%.0f s", undo.Seconds())
		class, text, button := "notice", m.Sayf("Run %s is deleted in %s.", x.ID, after), m.Say("Undo")
		if x.Failed != "" {
			class, button = "notice failed", m.Say("Dismiss")
			text = m.Sayf("Run %s was not deleted: %s", x.ID, x.Failed)
		}
		m.Put(`<form method="post" action="/keep" class="$1"><input type="hidden" name="run" value="$2">
$3 <button>$4</button></form>`, class, x.ID, text, button)
	}
	count := m.Sayf("%d runs", l.Total)
	switch {
	case l.Total == 0:
		count = m.Say("No run is kept yet; this makes one: ")
	case l.Query != "":
		count = m.Sayf("%d of %d runs match.", l.Matching, l.Total)
	case l.Total == 1:
		count = m.Say("1 run")
	}
	m.Put(`</div><p id="count" role="status">$1`, count)
	m.Optional("code", when(l.Total == 0, "pelt demo"), "")
	m.Put(`</p>
<form action="/compare" method="get" id="chosen">
<div class="tray"><p id="tray" role="status">{Choose runs to compare; the first one is the baseline.}</p>
<button>{Compare}</button> <button formaction="/delete" formmethod="post">{Delete}</button>
<button type="reset" hidden>{Clear}</button></div>
<ul class="runs" id="rows">`)
	for _, sum := range l.Rows {
		row(m, sum)
	}
	if l.More != "" {
		m.Put(`<li class="more"><a href="$1" data-more>{Show more}</a></li>`, l.More)
	}
	m.Put("</ul>\n</form>\n")
}

func row(m *render.Markup, sum store.Summary) {
	m.Put(`<li><input type="checkbox" name="run" value="$1" aria-label="$2">
<div><a href="/run/$1">$3</a>`, sum.ID, m.Sayf("Choose %s, %s", Called(sum), sum.ID), Called(sum))
	tags(m, sum.Tags)
	m.Put(" ")
	m.Optional("span", when(sum.State != store.Complete, m.Say(sum.State)), "state")
	m.Sentence("p", run.Headline(m.Language, sum), "")
	far := progress(m.Language, sum)
	m.Put(`<small>$1 · $2$3<span class="id">$4</span></small></div></li>`+"\n",
		sum.Started.Local().Format(m.Say("2 Jan 2006, 15:04")),
		when(sum.Name != "", sum.Command+" "+sum.Target+" · "), when(far != "", far+" · "), sum.ID)
}

func tags(m *render.Markup, tags []string) {
	for _, tag := range tags {
		m.Put(` <span class="tag">#$1</span>`, tag)
	}
}

// tools writes what can be done with a run, above its report.
func tools(m *render.Markup, sum store.Summary) {
	m.Put(`<section class="tools">` + "\n")
	if far := progress(m.Language, sum); sum.State == store.Cut {
		m.Put("<p>$1{Finish it: }<code>pelt run --resume $2</code></p>\n", when(far != "", far+m.Say(".")+" "),
			sum.ID)
	}
	if sum.Name != "" || len(sum.Tags) > 0 {
		m.Put("<p>")
		m.Optional("b", sum.Name, "")
		tags(m, sum.Tags)
		m.Put("</p>\n")
	}
	m.Put(`<p>{Download: }<a href="/run/$1/$1.html" download>{page to share}</a>
<a href="/run/$1/$1.json" download>JSON</a>
<a href="/run/$1/$1.csv" download>CSV</a></p>
<details><summary>{Name and tags}</summary>
<form method="post" action="/run/$1">
<label>{Name} <input id="name" name="name" value="$2" maxlength="80" autocomplete="off"></label>
<label>{Tags} <input id="tags" name="tags" value="$3" autocomplete="off" aria-describedby="taghint"></label>
<small id="taghint">{At most 8 words}</small>
<button>{Save}</button></form></details>
<form method="post" action="/delete"><input type="hidden" name="run" value="$1">
<button>{Delete this run}</button></form>
</section>
`, sum.ID, sum.Name, strings.Join(sum.Tags, " "))
}

// form writes the page of a new test: its fields with their values, and what is wrong with them.
func (s *Server) form(m *render.Markup, here Offer, values url.Values, wrong string) {
	a, _ := s.ask(values) // what is wrong with a form that nobody filled in yet is not told
	common, more := s.fields(here, values)
	started := s.tests.all()
	m.Put(`<h1>{New test}</h1>
<section hidden="$1"><h3>{Tests started here}</h3><ul>
`, when(len(started) == 0, "hidden"))
	for _, t := range started {
		state := m.Say("running")
		if t.Over() {
			state = m.Say("ended")
		}
		m.Put(`<li><a href="/test/$1">$2</a> $3</li>`+"\n", t.ID, t.Line, state)
	}
	m.Put(`</ul></section>
<nav class="kinds" aria-label="{Kinds of test}">` + "\n")
	for _, o := range s.o.Offers {
		entry(m, "/new?test="+o.Command, o.Command, o.Command == here.Command)
	}
	m.Put(`</nav>
<p class="text">$1{.}</p>
<form method="post" action="/new" id="form">
<input type="hidden" name="test" value="$2">
<div class="field"><label for="target">{Target}</label>
<input id="target" name="target" value="$3" required autofocus spellcheck="false" autocapitalize="off"
 aria-describedby="target-help">
<small id="target-help">{A host where pelt serve runs, or a lab of this machine: lab:loopback, lab:direct, lab:router}
</small></div>
<div class="field"><label for="code">{Code}</label>
<input id="code" name="code" type="password" autocomplete="off" aria-describedby="code-help">
<small id="code-help">{that pelt serve printed on the host; a lab has none}</small></div>
`, m.Say(here.About), here.Command, values.Get("target"))
	for _, x := range common {
		x.page(m)
	}
	opened := slices.ContainsFunc(more, func(x field) bool { return x.Value != "" })
	m.Put(`<details class="wide" open="$1"><summary>{More}</summary><div class="fields">`+"\n", when(opened, "open"))
	for _, x := range more {
		x.page(m)
	}
	m.Put(`</div></details>
<label class="check wide"><input type="checkbox" name="yes" value="yes" checked="$1">
{Send to a public address, too: that host is mine. A fast test floods every network between.}</label>
<div class="wide"><code id="line">$2</code>
<p id="problem" class="bad" role="alert">$3</p>
<button>{Start}</button></div>
</form>
`, when(a.yes, "checked"), finding.CommandLine(a.args()), wrong)
}

func (f field) page(m *render.Markup) {
	label, help := m.Say(f.Label), m.Say(f.Help)
	if f.Switch {
		m.Put(`<label class="check field" data-for="$1"><input type="checkbox" name="$2" value="true" checked="$3">
$4 <small>$5</small></label>
`, f.For, f.Flag, when(f.Value != "", "checked"), label, help)
		return
	}
	m.Put(`<div class="field" data-for="$1"><label for="$2">$3</label>`+"\n", f.For, f.Flag, label)
	if f.Several {
		m.Put(`<textarea id="$1" name="$1" rows="2" spellcheck="false" aria-describedby="$1-help">`, f.Flag)
		for line := range strings.Lines(f.Value) {
			m.Put("$1\n", strings.TrimSpace(line))
		}
		m.Put("</textarea>")
		help += m.Say("; one a line")
	} else {
		m.Put(`<input id="$1" name="$1" value="$2" placeholder="$3" spellcheck="false" autocapitalize="off"
 list="$4" aria-describedby="$1-help"><datalist id="$1-words">`,
			f.Flag, f.Value, f.Default, when(len(f.Words) > 0, f.Flag+"-words"))
		for _, word := range f.Words {
			m.Put(`<option value="$1">`, word)
		}
		m.Put("</datalist>")
	}
	m.Put(`<small id="$1-help">$2</small></div>`+"\n", f.Flag, help)
}

// page writes the page of a test while it goes on; its script fills it.
func (t *Test) page(m *render.Markup) {
	m.Put(`<div id="test" data-id="$1">
<header><p><b>{Live}</b> · $2</p>
<h1 id="verdict" aria-live="polite">{No result yet}</h1></header>
<p id="problem" class="bad" role="alert"></p>
<div class="buttons">
<form method="post" action="/test/$1/stop" id="stop"><button>{Stop}</button></form>
`, t.ID, t.Line)
	if t.Again() {
		m.Put(`<form method="post" action="/test/$1/again" id="again" hidden><button>{Repeat}</button></form>`+"\n",
			t.ID)
	}
	m.Put(`<a id="run" hidden>{The run's page}</a>
</div>
<section aria-label="{The trial that runs}">
<p id="status">{Waiting for the first trial}</p>
<progress id="progress" max="1" value="0" aria-label="{Progress of the trial}"></progress>
</section>
<figure hidden><figcaption>{Packets per second}</figcaption>
<div id="rates" class="plot" role="img" aria-label="{Packets sent and received a second, over time}"></div></figure>
<figure hidden><figcaption>{Payload bits per second}</figcaption>
<div id="bits" class="plot" role="img" aria-label="{Payload bits sent and received a second, over time}"></div></figure>
<figure hidden><figcaption>{Packets lost so far in the trial}</figcaption>
<div id="losses" class="plot" role="img" aria-label="{Packets lost so far in the trial, over time}"></div>
<p id="places" class="note"></p></figure>
<section id="cores" hidden><h3>{Processors}</h3></section>
<div id="report"></div>
<section hidden><h3>{Trials that ended}</h3><ul id="trials" class="told"></ul></section>
<section hidden><h3>{Notes}</h3><ul id="notes" class="told"></ul></section>
</div>
`)
}

// compared writes the runs of a comparison, the baseline first.
func compared(m *render.Markup, ids, names []string) {
	m.Put(`<section class="tools">` + "\n<ol>\n")
	for i, id := range ids {
		m.Put(`<li><a href="/run/$1">$2</a> <small>$1</small> `, id, names[i])
		if i == 0 {
			m.Put("{baseline}</li>\n")
			continue
		}
		first := url.Values{"run": slices.Insert(slices.Delete(slices.Clone(ids), i, i+1), 0, id)}
		m.Put(`<a href="/compare?$1">{Compare the others with this one}</a></li>`+"\n", first.Encode())
	}
	m.Put("</ol>\n<p>{In a terminal: }<code>pelt compare $1</code></p>\n</section>\n", strings.Join(ids, " "))
}
