package lab

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"pelt/model"
)

// Between a holder and its clients each message is one packet of a unix
// SOCK_SEQPACKET socket with one JSON value.
const (
	maxRequest = 4 << 10
	maxReply   = 128 << 10
	fdsAtOnce  = 32 // below the kernel's SCM_MAX_FD of 253, net/core/scm.c
)

type verb string

const (
	describe   verb = "describe"
	namespaces verb = "namespaces" // reply carries descriptors from From on
	down       verb = "down"
	links      verb = "links"   // reply carries a file with the directions of the links
	set        verb = "set"     // ... with those that were reached
	watch      verb = "watch"   // begins to list what emulated links do to a trial
	collect    verb = "collect" // ... ends that: reply carries a file with the accounts, then verdicts
)

type request struct {
	Format string `json:"format"`
	Do     verb   `json:"do"`
	From   int    `json:"from,omitempty"`

	Changes []model.LinkChange `json:"changes,omitempty"`
	Dry     bool               `json:"dry,omitempty"`  // change nothing, find out only
	Lent    bool               `json:"lent,omitempty"` // put back once the connection ends
	Trial   uint16             `json:"trial,omitempty"`
}

type reply struct {
	Format string      `json:"format"`
	Error  string      `json:"error,omitempty"`
	Held   *heldRecord `json:"held,omitempty"`
	Count  int         `json:"count,omitempty"` // descriptors that come with the reply
	Bulk   *bulk       `json:"bulk,omitempty"`  // of the file that comes with it
	Usage  bool        `json:"usage,omitempty"` // the error is of what was asked
}

// bulk is what a file holds that is too long for a packet.
type bulk struct {
	JSONBytes int `json:"json_bytes"`
	Verdicts  int `json:"verdicts"` // behind that
}

const maxBulkJSON = 16 << 20

// heldRecord is a held lab as its holder describes it.
type heldRecord struct {
	Name    string         `json:"name"`
	Started time.Time      `json:"started"`
	Facts   model.LabFacts `json:"facts"`
	Nodes   []nodeInfo     `json:"nodes"`            // of the namespaces that come with the reply
	Spaces  int            `json:"spaces"`           // namespaces: the nodes' in their order, then hidden ones
	Tbfs    []tbfPlace     `json:"tbfs,omitempty"`   // a part of them, from twice the first namespace on
	Kernel  []kernelWay    `json:"kernel,omitempty"` // likewise, by links that the kernel emulates
	Refused uint64         `json:"refused"`          // connections turned away: foreign user, or too many
	Garbled uint64         `json:"garbled"`          // requests that made no sense
}

const holderFormat = "pelt/lab/4"

func parseRequest(packet []byte) (request, error) {
	var r request
	if err := strict(packet, &r); err != nil {
		return request{}, err
	}
	switch {
	case r.Format != holderFormat:
		return request{}, fmt.Errorf("format %.40q: this lab is held by a pelt that speaks %s; use the same version", r.Format, holderFormat)
	case !slices.Contains([]verb{describe, namespaces, down, links, set, watch, collect}, r.Do):
		return request{}, fmt.Errorf("unknown request %.40q", r.Do)
	case r.From < 0 || r.From != 0 && r.Do != namespaces:
		return request{}, fmt.Errorf("request %s from %d: out of range", r.Do, r.From)
	case (len(r.Changes) > 0) != (r.Do == set), (r.Dry || r.Lent) && r.Do != set, r.Trial != 0 && r.Do != watch:
		return request{}, fmt.Errorf("request %s: holds what belongs to another", r.Do)
	}
	if len(r.Changes) == 0 {
		r.Changes = nil
	}
	for _, c := range r.Changes {
		if err := c.Check(); err != nil {
			return request{}, err
		}
	}
	return r, nil
}

func parseReply(packet []byte) (reply, error) {
	var r reply
	if err := json.Unmarshal(packet, &r); err != nil {
		return reply{}, fmt.Errorf("read the holder's reply: %w", err)
	}
	if r.Format != holderFormat {
		return reply{}, fmt.Errorf("the lab is held by another version of pelt (it speaks %.40q, this one %s); take it down with that one", r.Format, holderFormat)
	}
	if r.Error != "" && r.Usage {
		return reply{}, &UsageError{r.Error}
	}
	if r.Error != "" {
		return reply{}, errors.New(r.Error)
	}
	if b := r.Bulk; b != nil && (b.JSONBytes < 0 || b.JSONBytes > maxBulkJSON || b.Verdicts < 0 || b.Verdicts > maxBulk) {
		return reply{}, errors.New("the holder's reply is too long")
	}
	return r, nil
}

// strict decodes exactly one JSON value without unknown fields.
func strict(packet []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(packet))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return fmt.Errorf("malformed request: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("malformed request: more than one value")
	}
	return nil
}

// CheckName reports whether a held lab may be called name. The error is a *UsageError.
func CheckName(name string) error {
	if !regexp.MustCompile(`^[a-z0-9-]{1,32}$`).MatchString(name) {
		return &UsageError{fmt.Sprintf("lab name %q: want 1 to 32 of a-z, 0-9 and -", name)}
	}
	if _, err := findTopology(name); err == nil {
		return &UsageError{fmt.Sprintf("lab name %q is a topology's; choose another", name)}
	}
	return nil
}

// socketName is the abstract name of a holder's socket; the leading @ stands
// for the NUL byte, as in package net and in /proc/net/unix.
func socketName(uid int, name string) string { return fmt.Sprintf("@pelt/lab/%d/%s", uid, name) }

// parseSockets finds the labs of a user, or of all with uid below 0, in the
// text of /proc/net/unix.
func parseSockets(text string, uid int) (names []string) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 8 || !strings.HasPrefix(fields[7], "@pelt/lab/") {
			continue
		}
		const listening = "00010000" // __SO_ACCEPTCON, include/uapi/linux/net.h
		var owner int
		var name string
		if _, err := fmt.Sscanf(fields[7], "@pelt/lab/%d/%s", &owner, &name); err != nil || CheckName(name) != nil || fields[3] != listening {
			continue
		}
		if uid < 0 || owner == uid {
			names = append(names, fields[7])
		}
	}
	return names
}
