// Package view says what a report consists of: pages of sections, as data.
//
// Figures and sentences come in from finding and table, sections go out to
// render. It lays nothing out and prints nothing, and its sections know no kind
// of test and no output format.
package view

import (
	"pelt/table"
	"pelt/unit"
	"pelt/words"
)

// Page is a whole report. Its short form in a terminal is Verdict, Why, the first Table and the first of Next.
type Page struct {
	Language words.Language
	Title    string // what was run: "Size curve"
	Subject  string // what was measured, and when
	Verdict  string // the answer: one sentence of at most 16 words
	Why      string // a second sentence
	Facts    []string
	Doubts   []string
	Next     []Step
	Sections []Section
	SetUp    []Section // how it was measured, below all else
}

// Step is what a reader can do next.
type Step struct {
	Text    string
	Command string // to be copied; "" if there is none
}

// Section is a piece of a page: Heading, Text, Tiles, Table, Chart, Times or Path.
type Section interface{ section() }

type Heading struct{ Text string }

type Text struct{ Text string }

// Tiles are the few figures to see first.
type Tiles []Tile

// Tile is one figure in large type. A tile without a value was not measured.
type Tile struct {
	Label, Value, Note string
	Tone               Tone
}

// Tone is a meaning, which each output colours in its own way.
type Tone int

// The tones of cells, points and tiles.
const (
	Plain Tone = iota
	Good
	Bad
	Muted
)

// Table has rows of cells.
type Table struct {
	Title, Note string
	Columns     []Column
	Rows        [][]Cell // each has a cell for each column
	Lead        int      // rows that matter most where not all fit; 0: as many as fit
	Fold        bool     // HTML shows it when asked

	groups []table.Group // of the rows, in their order; nil where rows are of something else
}

// Column is one figure, or one word, of every row.
type Column struct {
	Name  string // of CSV, with the base unit at its end: "goodput_bps"
	Label string
	Unit  unit.Unit // unit.Word: its cells are text
	Right bool      // its words stand on the right, as figures do
	Key   bool      // says what a row is about; such columns come first
	// Detail is for those who look closer: a terminal shows it only where it fits.
	Detail bool
}

// Cell is one figure of a table.
type Cell struct {
	Text      string  // as printed; "" prints Value in the unit of the column
	Value     float64 // in base units; NaN if there is none
	Low, High float64 // the interval of Value; none unless Low < High
	Note      string  // what the figure rests on
	Tone      Tone
	Named     bool // in a row that the verdict names: it is shown where rows are left out
}

// ChartKind is how a chart is drawn.
type ChartKind int

// The kinds of charts. Stack has categories on X, Interval on Y, Heat on both.
const (
	Line ChartKind = iota
	Stack
	Interval
	Heat
)

// Chart is data on scales.
type Chart struct {
	Language    words.Language
	Title, Note string
	Kind        ChartKind
	Hero        bool // the picture of the page: wider, with values at its points
	X, Y        Axis
	Z           Axis // what the shades of a Heat mean
	Series      []Series
	Marks       []Mark
}

// Axis is one scale. Ratios reach from 0 to at least 100 %.
type Axis struct {
	Label      string
	Unit       unit.Unit
	Log        bool
	Categories []string  // in the order to show; points count them from 0
	Ticks      []float64 // the levels that were set, marked instead of round numbers
}

// Series is one line of points, or one part of every bar.
type Series struct {
	Name   string
	Points []Point
	Tone   Tone
	Guest  bool // does not set the scale; an arrow stands for what lies beyond it
}

// Point is one group on a chart. In a Heat, Z is its figure.
type Point struct {
	X, Y, Z   float64
	Low, High float64 // the interval of its figure; none unless Low < High
	Name      string  // shown when pointed at
	Tone      Tone
}

// Mark is a moment or level on X, or a limit on Y.
type Mark struct {
	At   float64
	OnY  bool
	Text string
}

// Times shows samples over the time of a trial: lanes one above the other on one axis of time.
type Times struct {
	Title, Note string
	Lanes       []Lane
	Changes     []Change
	Gaps        []Gap
}

// Lane is one scale of Times.
type Lane struct {
	Label  string
	Unit   unit.Unit
	Traces []Trace
}

// Trace is samples at equal steps, in seconds. A sample that is not finite was not taken.
type Trace struct {
	Name        string
	Start, Step float64
	Values      []float64
	Tone        Tone
}

// Change is a moment, in seconds, at which the samples changed, or were made to.
type Change struct {
	At   float64
	Text string
	Tone Tone
}

// Gap is a span of time, in seconds, without a measurement.
type Gap struct {
	From, To float64
	Text     string
}

// Path shows where packets ended, node by node.
type Path struct {
	Language       words.Language
	Title          string
	Flow           string   // its name, if there are several
	Nodes          []string // in travel order
	Sent, Received uint64
	Losses         []Loss
}

// Loss is a place on a path where packets ended.
type Loss struct {
	Node    int  // counts the nodes from 0; below 0: not known
	Link    bool // on the link behind the node, not at the node
	Packets uint64
	Text    string // the cause: "NIC ring full"
}

func (Heading) section() {}
func (Text) section()    {}
func (Tiles) section()   {}
func (Table) section()   {}
func (Chart) section()   {}
func (Times) section()   {}
func (Path) section()    {}
