package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"pelt/finding"
	"pelt/model"
	"pelt/words"
)

// Between a holder and its clients each message is one JSON value on a unix socket. Files
// come with the white space before a reply.
const holderFormat = "pelt/lab/9"

type verb string

const (
	describe verb = "describe" // heldLab
	join     verb = "join"     // heldLab and its namespaces: the nodes' in their order, then hidden ones
	links    verb = "links"    // []LinkWay
	set      verb = "set"      // []LinkChanged
	watch    verb = "watch"    // begins to list what emulated links do to a trial
	collect  verb = "collect"  // ends that: []LinkAccount
	down     verb = "down"
)

type request struct {
	Format    string       `json:"format"`
	Do        verb         `json:"do"`
	Changes   []model.Link `json:"changes,omitempty"`
	Dry       bool         `json:"dry,omitempty"`       // change nothing, find out only
	Temporary bool         `json:"temporary,omitempty"` // put back once the connection ends
	Trial     uint16       `json:"trial,omitempty"`
	Flows     int          `json:"flows,omitempty"`
}

type reply struct {
	Format string        `json:"format"`
	Fault  *model.Reason `json:"fault,omitempty"`
	Usage  bool          `json:"usage,omitempty"` // the fault is of what was asked
	Value  any           `json:"value,omitempty"`
}

func replyOf(value any, err error) reply {
	if err == nil {
		return reply{Format: holderFormat, Value: value}
	}
	why, usage := finding.ReasonOf(err), errors.As(err, new(*UsageError))
	if why.Code == model.HostFault { // its text is a sentence of this program
		if why.Text = model.SystemSaid(err); usage {
			why = model.Reason{Code: model.LabRefuses} // the client checks before it asks, and says what is wrong
		}
	}
	return reply{Format: holderFormat, Fault: &why, Usage: usage}
}

func (r reply) err() error {
	switch {
	case r.Format != holderFormat:
		return finding.NewFault(model.LabVersion, "version", model.Clip(r.Format), "own_version", holderFormat)
	case r.Fault == nil:
		return nil
	case r.Usage:
		return &UsageError{&finding.Fault{Reason: *r.Fault}}
	}
	return &finding.Fault{Reason: *r.Fault}
}

// heldLab is a lab as its holder describes it.
type heldLab struct {
	Facts model.LabFacts `json:"facts"`
	Nodes []nodeInfo     `json:"nodes"`
	Links []heldLink     `json:"links"`
}

type heldLink struct {
	Emulated bool      `json:"emulated"`
	Shapers  [2]shaper `json:"shapers"`
	Made     linkPlan  `json:"made"`
	Plan     linkPlan  `json:"plan"`
}

// client is a connection to the process that holds a lab. What it watches or
// borrows ends with it.
type client struct {
	name string
	pid  int // of the holder; 0 if it is in a PID namespace that this process does not see

	mu    sync.Mutex // one request at a time
	conn  *net.UnixConn
	in    *json.Decoder
	out   *json.Encoder
	files []*os.File // came with the reply that is being read
}

// replyTime is how long a holder may take to answer.
const replyTime = 10 * time.Second

// ask sends a request and decodes the value of its reply. The error is a *UsageError for
// what the lab cannot do.
func (c *client) ask(req request, value any) error {
	files, err := c.askForFiles(req, value)
	closeFiles(files)
	return err
}

// askForFiles is ask for a reply that comes with files; the caller closes them.
func (c *client) askForFiles(req request, value any) (files []*os.File, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer func() {
		if files, c.files = c.files, nil; err != nil {
			closeFiles(files)
			files = nil
		}
	}()
	req.Format = holderFormat
	r := reply{Value: value}
	err = c.conn.SetDeadline(time.Now().Add(replyTime))
	if err == nil {
		err = c.out.Encode(req)
	}
	if err == nil {
		err = c.in.Decode(&r)
	}
	if err == nil || r.Format != "" {
		err = errors.Join(r.err(), err)
	}
	if err != nil && !errors.As(err, new(*UsageError)) {
		return nil, words.Errorf("ask the process that keeps lab %s up: %w", c.name, err)
	}
	return nil, errors.Join(err, c.conn.SetDeadline(time.Time{}))
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // nothing was written
	}
}

// CheckName reports whether a held lab may be called name. The error is a *UsageError.
func CheckName(name string) error {
	if !regexp.MustCompile(`^[a-z0-9-]{1,32}$`).MatchString(name) {
		return usagef("lab name %q: want 1 to 32 of a-z, 0-9 and -", name)
	}
	if _, err := findTopology(name); err == nil || name == "loopback" { // lab:loopback is this host's interface
		return usagef("lab name %q is a topology's; choose another", name)
	}
	return nil
}

// socketName is the abstract name of a holder's socket; the leading @ stands
// for the NUL byte, as in package net and in /proc/net/unix.
func socketName(uid int, name string) string { return fmt.Sprintf("@pelt/lab/%d/%s", uid, name) }

// parseSockets finds the labs of a user in the text of /proc/net/unix.
func parseSockets(text string, uid int) (names []string) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 8 || !strings.HasPrefix(fields[7], "@pelt/lab/") {
			continue
		}
		const listening = "00010000" // __SO_ACCEPTCON, include/uapi/linux/net.h
		_, name, _ := strings.Cut(strings.TrimPrefix(fields[7], "@pelt/lab/"), "/")
		if fields[7] == socketName(uid, name) && CheckName(name) == nil && fields[3] == listening {
			names = append(names, fields[7])
		}
	}
	return names
}
