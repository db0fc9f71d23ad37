package web

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"pelt/finding"
	"pelt/model"
	"pelt/plan"
	"pelt/render"
	"pelt/words"
)

// Offer is a test that users can start from a page.
type Offer struct {
	plan.Preset
	About string // in a line
	// Make makes the plan of a target and flags, as the command does, and checks it.
	Make func(target string, flags map[string][]string) error
}

// closed is the flag that no page gives: it reads files of this host.
const closed = "profile"

// linkField is the form's field of a lab's links, which no knob is.
const linkField = "link"

// asked is a test that a form asks for.
type asked struct {
	offer  Offer
	target string
	flags  map[string][]string
	yes    bool
}

// field is an entry of the form.
type field struct {
	Flag, Label, Help, Value, Default string
	For                               string   // lab, star, tcp or udp: no other test takes it; "": all do
	Words                             []string // to choose from
	Switch, Several                   bool
}

// hints stand in place of the help of the command line.
var hints = map[string]string{
	linkField:  "each link of the lab: rate=1gbit,queue=100,delay=20ms,loss=1%",
	"max-loss": "most that a combination may lose: 0.1%; in ndr the goals: 0,0.5%",
}

var flagInHelp = regexp.MustCompile("--([a-z]+(?:-[a-z]+)*)")

// hint is the help of a flag in words of the form, and what test takes it.
func hint(flag, help string, only model.Protocol) (text, who string) {
	text, ofLab := strings.CutPrefix(cmp.Or(hints[flag], help), "lab: ")
	text = flagInHelp.ReplaceAllStringFunc(text, func(name string) string {
		if slices.ContainsFunc(model.Knobs(), func(k model.Knob) bool { return k.Flag == name[2:] }) {
			return label(name[2:])
		}
		return name // of another command
	})
	switch {
	case flag == "receivers":
		who = "star"
	case ofLab || flag == linkField || flag == "variant":
		who = "lab"
	default:
		who = string(only)
	}
	return text, who
}

// fields are those of a test, the common ones first.
func (s *Server) fields(o Offer, values url.Values) (common, more []field) {
	for _, k := range model.Knobs() {
		if !o.HasFlag(k.Flag) || k.Flag == closed {
			continue
		}
		f := field{Flag: k.Flag, Label: label(k.Flag), Value: strings.Join(values[k.Flag], "\n"),
			Default: o.Default(k.Flag), Words: k.Words, Switch: k.Kind == model.Switch, Several: k.Kind == model.Texts}
		f.Help, f.For = hint(k.Flag, k.Help, k.Only)
		if k.Group != "" {
			common = append(common, f)
		} else {
			more = append(more, f)
		}
	}
	link := field{Flag: linkField, Label: label(linkField), Value: values.Get(linkField)}
	link.Help, link.For = hint(linkField, "", "")
	return append(common, link), more
}

// label is a flag in words.
func label(flag string) string {
	words := strings.ReplaceAll(flag, "-", " ")
	return strings.ToUpper(words[:1]) + words[1:]
}

// ask reads a form. The test is there also where something is wrong, as far as it was understood.
func (s *Server) ask(form url.Values) (a asked, err error) {
	i := slices.IndexFunc(s.o.Offers, func(o Offer) bool { return o.Command == form.Get("test") })
	if i < 0 {
		return a, words.Errorf("test: there is no %q", form.Get("test"))
	}
	a = asked{offer: s.o.Offers[i], target: strings.TrimSpace(form.Get("target")), flags: map[string][]string{},
		yes: form.Get("yes") != ""}
	for key, texts := range form {
		open := key == linkField || a.offer.HasFlag(key) && key != closed
		for _, text := range texts {
			switch text = strings.TrimSpace(text); {
			case text == "" || slices.Contains([]string{"test", "target", "yes", "code"}, key):
			case !open:
				err = words.Errorf("--%s: is for the terminal: pages give no flags that read files or run programs",
					key)
			default:
				a.flags[key] = append(a.flags[key],
					strings.FieldsFunc(text, func(r rune) bool { return r == '\r' || r == '\n' })...)
			}
		}
	}
	switch {
	case err != nil:
	case slices.ContainsFunc(a.flags["variant"], func(text string) bool {
		inLab := strings.HasPrefix(a.target, "lab:")
		return !inLab || model.ParseVariant(text, inLab).Command != ""
	}):
		err = words.Errorf("--variant: a command is for the terminal: pages run none")
	case a.target == "" || strings.HasPrefix(a.target, "-"):
		err = words.Errorf("target: give a host or a lab, as lab:direct")
	default:
		err = a.offer.Make(a.target, a.flags)
	}
	return a, err
}

// args are the command's. Flags stand in the order of the table of knobs.
func (a asked) args() []string {
	args := []string{a.offer.Command}
	if a.target != "" {
		args = append(args, a.target)
	}
	add := func(flag string) {
		for _, text := range a.flags[flag] {
			args = append(args, "--"+flag+"="+text)
		}
	}
	for _, k := range model.Knobs() {
		add(k.Flag)
	}
	add(linkField)
	if a.yes {
		args = append(args, "--yes")
	}
	return args
}

func (s *Server) newTest(w http.ResponseWriter, r *http.Request) {
	values := r.URL.Query()
	if values.Get("test") == "" && len(s.o.Offers) > 0 {
		values.Set("test", s.o.Offers[0].Command)
	}
	s.showForm(w, r, http.StatusOK, values, "")
}

func (s *Server) showForm(w http.ResponseWriter, r *http.Request, status int, values url.Values, wrong string) {
	i := slices.IndexFunc(s.o.Offers, func(o Offer) bool { return o.Command == values.Get("test") })
	if i < 0 {
		s.fail(w, r, http.StatusNotFound, "There is no such test.")
		return
	}
	s.show(w, r, frame{Title: "New test", Here: "/new", Status: status, Scripts: []string{"words.js", "form.js"},
		Styles: []string{"test.css"}, Body: func(m *render.Markup) { s.form(m, s.o.Offers[i], values, wrong) }})
}

// checkTest tells what a form makes: its command, and what is wrong with it.
func (s *Server) checkTest(w http.ResponseWriter, r *http.Request) {
	a, err := s.ask(r.PostForm)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{"command": finding.CommandLine(a.args()),
		"problem": of(r).Line(err)})
}

// startTest starts the test of a form, and leads to its page.
func (s *Server) startTest(w http.ResponseWriter, r *http.Request, form url.Values) {
	a, err := s.ask(form)
	if err != nil {
		s.showForm(w, r, http.StatusUnprocessableEntity, form, of(r).Line(err))
		return
	}
	t, err := s.tests.start(a.args(), form.Get("code"), of(r), form)
	if err != nil {
		s.showForm(w, r, http.StatusConflict, form, of(r).Line(err))
		return
	}
	http.Redirect(w, r, "/test/"+t.ID, http.StatusSeeOther)
}
