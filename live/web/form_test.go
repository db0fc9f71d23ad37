package web

import (
	"net/url"
	"strings"
	"testing"

	"pelt/finding"
	"pelt/plan"
	"pelt/words"
)

func offersOf(presets ...plan.Preset) (list []Offer) {
	for _, p := range presets {
		list = append(list, Offer{Preset: p, About: "About " + p.Command,
			Make: func(target string, flags map[string][]string) error {
				_, err := p.Plan(plan.Settings{Target: target, Flags: flags})
				return err
			}})
	}
	return list
}

func TestForm(t *testing.T) {
	s := serverOf(t, Options{Offers: offersOf(plan.Curve, plan.Control, plan.Router, plan.Soak)})
	for _, c := range []struct{ form, command, problem string }{
		{"test=curve&target=lab:direct", "pelt curve lab:direct", ""},
		{"test=curve&target=nas&rate=10kpps&payload=64,100&code=otter-17-blue&yes=yes",
			"pelt curve nas --payload=64,100 --rate=10kpps --yes", ""},
		{"test=curve&target=it's", `pelt curve 'it'\''s'`, ""},
		{"test=curve&target=nas&payload=0", "pelt curve nas --payload=0", "--payload: want 1B to 1048576B, not 0"},
		{"test=curve&target=", "pelt curve", "target: give a host or a lab, as lab:direct"},
		{"test=curve&target=--json", "pelt curve --json", "target: give a host or a lab, as lab:direct"},
		{"test=curve&target=nas&json=/etc/passwd", "pelt curve nas",
			"--json: is for the terminal: pages give no flags that read files or run programs"},
		{"test=curve&target=nas&profile=trace=/etc/passwd", "pelt curve nas",
			"--profile: is for the terminal: pages give no flags that read files or run programs"},
		{"test=router&target=a..b&variant=x=reboot", "pelt router a..b --variant=x=reboot",
			"--variant: a command is for the terminal: pages run none"},
		{"test=router&target=lab:router&variant=x=reboot", "pelt router lab:router --variant=x=reboot",
			"--variant: a command is for the terminal: pages run none"},
		{"test=router&target=lab:router&variant=plain%0d%0arules=100",
			"pelt router lab:router --variant=plain --variant=rules=100", ""},
		{"test=tune&target=nas", "pelt", `test: there is no "tune"`},
	} {
		form, err := url.ParseQuery(c.form)
		if err != nil {
			t.Fatal(err)
		}
		a, err := s.ask(form)
		if got := finding.CommandLine(a.args()); got != c.command && a.offer.Command != "" ||
			words.English.Line(err) != c.problem {
			t.Errorf("%s:\n%s\n%q, want\n%s\n%q", c.form, got, words.English.Line(err), c.command, c.problem)
		}
	}
}

// Pages lead to the form only where it starts tests.
func TestLinkToForm(t *testing.T) {
	for want, offers := range map[bool][]Offer{true: offersOf(plan.Curve), false: nil} {
		s := serverOf(t, Options{Offers: offers})
		if got := strings.Contains(ask(s, "GET", "/", nil, nil).Body.String(), `href="/new"`); got != want {
			t.Errorf("%d tests are offered; a link to the form: %v", len(offers), got)
		}
	}
}

// A form that is wrong comes back as it was, with what is wrong.
func TestWrongForm(t *testing.T) {
	s := serverOf(t, Options{Offers: offersOf(plan.Curve)})
	w := ask(s, "POST", "/new", url.Values{"test": {"curve"}, "target": {"nas"}, "rate": {"fast"}}, nil)
	for _, want := range []string{`value="nas"`, `value="fast"`, `role="alert">--rate: `} {
		if w.Code != 422 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%d, without %s", w.Code, want)
		}
	}
}

// TestHints: the form shows no help of the command line, and knows which tests take a field.
func TestHints(t *testing.T) {
	s := serverOf(t, Options{})
	want := map[string]string{"control": "tcp", "receivers": "star", "link": "lab", "loss": "lab", "gro": "udp",
		"payload": "", "variant": "lab"}
	for _, o := range offersOf(plan.Curve, plan.Ndr, plan.Latency, plan.Sweep, plan.Router, plan.Control, plan.Soak) {
		common, more := s.fields(o, url.Values{})
		for _, f := range append(common, more...) {
			if strings.Contains(strings.ReplaceAll(f.Help, "pelt serve --observe-only", ""), "--") ||
				strings.Contains(f.Help, "exit code") || strings.HasPrefix(f.Help, "lab:") && f.For != "" {
				t.Errorf("%s, %s: %q is for the command line", o.Command, f.Flag, f.Help)
			}
			if who, known := want[f.Flag]; known && f.For != who {
				t.Errorf("%s, %s: for %q, want %q", o.Command, f.Flag, f.For, who)
			}
		}
	}
}
