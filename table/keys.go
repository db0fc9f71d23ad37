package table

import (
	"slices"
	"strings"

	"pelt/model"
	"pelt/unit"
	"pelt/words"
)

// Key is one thing that rows are told apart by: a setting, or a part of a trial.
type Key struct {
	Name  string // of a knob as in cells, or of the part
	Label string // of columns and axes
	Unit  unit.Unit
	Of    func(Row) Level
	form  string // how a level is said, % for the value; "" is the value alone
	zero  string // what the number 0 is called; "" is no special level
}

// ofWords are the keys whose levels are words of pelt's own, not names.
var ofWords = []string{"direction", "flow", "state"}

func (k Key) Format(l Level) string { return k.FormatIn(words.English, l) }

// FormatIn is Format in a language.
func (k Key) FormatIn(language words.Language, l Level) string {
	text := l.Text
	switch {
	case strings.HasPrefix(k.Name, "control"):
		text = controlName(text)
	case slices.Contains(ofWords, k.Name):
		text = language.Say(text)
	}
	switch {
	case !l.Known:
		return ""
	case text != "" && k.Unit != unit.Word:
		return text
	case text == "" && l.Number == 0 && k.zero != "":
		return language.Say(k.zero)
	case text == "" && k.Unit == unit.Word:
		return l.String()
	case text == "":
		text = k.Unit.Exact(l.Number)
	}
	if k.form == "" {
		return text
	}
	if whole := strings.Replace(k.form, "%", text, 1); language.Say(whole) != whole { // of a level that is a word
		return language.Say(whole)
	}
	text = strings.Replace(language.Say(k.form), "%", text, 1)
	if l.Number == 1 && k.Unit == unit.Count {
		text = strings.TrimSuffix(text, "s") // one stream
	}
	return text
}

// KeyOf returns a key by its name. Any other name is a setting of cells.
func KeyOf(name string) Key {
	if i := slices.IndexFunc(keys, func(k Key) bool { return k.Name == name }); i >= 0 {
		return keys[i]
	}
	return knob(name, setting(name, nil))
}

// knob is the key of a knob: its words and unit are those of the table of knobs.
func knob(name string, of func(Row) Level) Key {
	k, known := model.FindKnob(name)
	switch {
	case !known:
		return Key{Name: name, Label: name, Of: of}
	case k.Kind != model.Numbers:
		k.Unit = unit.Word
	}
	return Key{name, k.Title(), k.Unit, of, k.Phrase, k.Zero}
}

// Settings are the keys that the rows' cells set, sorted as columns show them, but for those named. The rate of a load
// is none: it is what a share of a found rate came to.
func Settings(rows []Row, but ...string) []Key {
	var names []string
	for _, r := range rows {
		_, share := r.Trial.Cell["load_ratio"]
		for name := range r.Trial.Cell {
			rate := name == "rate_pps" || name == "return_pps"
			if !slices.Contains(names, name) && !slices.Contains(but, name) && !(share && rate) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	var out []Key
	for _, k := range keys {
		if i := slices.Index(names, k.Name); i >= 0 {
			out, names = append(out, k), slices.Delete(names, i, i+1)
		}
	}
	for _, name := range names {
		out = append(out, KeyOf(name))
	}
	return out
}

var keys = []Key{
	knob("variant", setting("variant", nil)),
	knob("direction", setting("direction", direction)),
	{"flow", "Flow", unit.Word, of(flowOf, func(f flow) Level { return word(f.Name) }), "", ""},
	knob("pair", setting("pair", nil)),
	{"from", "From", unit.Word, meshHost(func(from, _ string) string { return from }), "", ""},
	{"to", "To", unit.Word, meshHost(func(_, to string) string { return to }), "", ""},
	knob("protocol", of(flowOf, func(f flow) Level { return word(string(f.Protocol)) })),
	knob("connections", setting("connections", connectionMode)),
	knob("control", setting("control", control)),
	{"control_part", "Streams of", unit.Word, of(mixOf, func(m *Mix) Level { return word(m.Control) }), "", ""},
	knob("receivers", setting("receivers", receiverCount)),
	knob("streams", of(flowOf, func(f flow) Level { return positive(f.Streams) })),
	// A cell may say "mtu" where the flow says the bytes.
	knob("payload_bytes", of(flowOf, func(f flow) Level { return positive(f.PayloadBytes) })),
	knob("frame_bytes", of(flowOf, func(f flow) Level { return positive(f.FrameBytes) })),
	{"trial", "Trial", unit.Count, func(r Row) Level { return positive(r.TrialNumber()) }, "trial %", ""},
	{"repeat", "Repeat", unit.Count, func(r Row) Level { return positive(r.Trial.Repeat + 1) }, "repeat %", ""},
	{"state", "State", unit.Word, func(r Row) Level { return word(string(r.Trial.State)) }, "", ""},
	{"engine", "Engine", unit.Word, func(r Row) Level { return word(r.Trial.Engine) }, "", ""},
	{"window_s", "Time", unit.Seconds, window, "", ""},
	{"layer", "Layer", unit.Word, of(lineOf, func(l *model.Line) Level { return word(l.Layer) }), "", ""},
	{"cause", "Cause", unit.Word, of(lineOf, func(l *model.Line) Level { return word(l.Cause) }), "", ""},
	{"host", "Host", unit.Word, lineHost, "", ""},
	{"confidence", "Known from", unit.Word, of(lineOf, func(l *model.Line) Level { return word(l.Confidence) }), "",
		""},
	{"receiver", "Receiver", unit.Word, receiverName, "", ""},
	{"core", "Core", unit.Count, of(coreOf, coreNumber), "core %", ""},
	{"goal_loss_ratio", "Goal", unit.Ratio, of(searchOf, func(s *Search) Level {
		return Level{model.Number(s.Goal.LossRatio), true}
	}), "% loss", "no loss"},
}

func word(s string) Level { return Level{model.Word(s), s != ""} }

func positive(n int) Level { return Level{model.Number(float64(n)), n > 0} }

// setting is a knob as the row's cell sets it, else as the row's flow has it.
func setting(name string, ofFlow func(flow) Level) func(Row) Level {
	return func(r Row) Level {
		if v, ok := r.Trial.Cell[name]; ok || ofFlow == nil {
			return Level{v, ok}
		}
		return ofFlow(r.Flow)
	}
}

// hostsOf are the hosts of a mesh that stand for the sender and the receiver of a row's trial.
func hostsOf(r Row) (sender, receiver string, ok bool) {
	return model.PairHosts(r.Trial.Cell["pair"].Text)
}

// meshHost is a host of a mesh, by the way of the row's flow.
func meshHost(pick func(from, to string) string) func(Row) Level {
	return func(r Row) Level {
		from, to, ok := hostsOf(r)
		if !ok {
			return Level{}
		}
		if r.Flow.From == model.Receiver {
			from, to = to, from
		}
		return word(pick(from, to))
	}
}

// lineHost is where a line of a ledger lost packets.
func lineHost(r Row) Level {
	if r.Line == nil {
		return Level{}
	}
	return word(HostName(r, r.Line.Host))
}

// receiverName is what people call a receiver of a star.
func receiverName(r Row) Level {
	if r.Receiver == nil {
		return Level{}
	}
	return word(HostName(r, r.Receiver.Node))
}

// HostName is the name of a node of a row's trial: of a fleet the host's own, also in "another namespace of sender".
func HostName(r Row, node string) string {
	sender, receiver, ok := hostsOf(r)
	at := strings.LastIndexByte(node, ' ') + 1
	name, star := strings.CutPrefix(node[at:], model.Receiver+"-")
	switch {
	case star && strings.HasPrefix(r.Doc.Plan.Target, model.FleetTarget):
		return node[:at] + name
	case ok && node[at:] == model.Sender:
		return node[:at] + sender
	case ok && node[at:] == model.Receiver:
		return node[:at] + receiver
	}
	return node
}

// direction of a flow by itself, where no cell sets it.
func direction(f flow) Level {
	return Level{model.Word(f.Name), f.Name == "up" || f.Name == "down"}
}

func control(f flow) Level {
	if f.TCP == nil {
		return Level{}
	}
	return word(f.TCP.Control)
}

func connectionMode(f flow) Level {
	if f.Connections == nil {
		return Level{}
	}
	return word(f.Connections.Mode)
}

func receiverCount(f flow) Level { return positive(max(1, len(f.Receivers))) }

// TrialNumber is the place of the row's trial in its run, from 1; 0 if it is in none.
func (r Row) TrialNumber() int {
	if r.number > 0 { // a search among a run's trials for each of them would be slow
		return r.number
	}
	for i := range r.Doc.Results {
		if r.Trial == &r.Doc.Results[i] {
			return i + 1
		}
	}
	return 0
}

// of is a level that a part of the row has, which may be missing.
func of[T any](part func(Row) *T, get func(*T) Level) func(Row) Level {
	return func(r Row) Level {
		if p := part(r); p != nil {
			return get(p)
		}
		return Level{}
	}
}

var controlNames = map[string]string{"bbr": "BBR", "bic": "BIC", "cdg": "CDG", "cubic": "CUBIC", "dctcp": "DCTCP",
	"highspeed": "HighSpeed", "htcp": "H-TCP", "hybla": "Hybla", "illinois": "Illinois", "lp": "TCP-LP", "nv": "NV",
	"reno": "Reno", "scalable": "Scalable", "vegas": "Vegas", "veno": "Veno", "westwood": "Westwood", "yeah": "YeAH"}

func controlName(text string) string {
	names := strings.Split(text, model.MixSeparator)
	for i, name := range names {
		if known, ok := controlNames[name]; ok {
			names[i] = known
		}
	}
	return strings.Join(names, model.MixSeparator)
}

func mixOf(r Row) *Mix         { return r.Mix }
func lineOf(r Row) *model.Line { return r.Line }
func coreOf(r Row) *Core       { return r.Core }
func searchOf(r Row) *Search   { return r.Search }
func flowOf(r Row) flow        { return r.Flow }

func coreNumber(c *Core) Level { return Level{model.Number(float64(c.Core)), true} }

func window(r Row) Level {
	if r.Window == nil {
		return Level{}
	}
	text := r.Sayf("%s to %s", unit.FormatMoment(r.Window.StartS), unit.FormatMoment(r.Window.EndS))
	return Level{model.Value{Number: r.Window.StartS, Text: text}, true}
}
