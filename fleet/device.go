package fleet

import (
	"context"
	"time"

	"pelt/engine"
	"pelt/model"
)

// Device is a router between the ends, as it tells of itself throughout one run. Its
// methods may be called concurrently, but for one trial after the other.
type Device interface {
	// Facts are what it is, with its texts of before the first trial.
	Facts() model.RouterFacts
	// Begin watches one trial; drops says how closely its kernel is watched, "" for
	// its processors alone. What it cannot do stands in what the watch tells.
	Begin(trial uint16, drops model.DropMode) DeviceWatch
	// Finish returns all facts, with the texts of after the last trial.
	Finish(ctx context.Context) model.RouterFacts
	Close() error
}

// DeviceWatch watches a Device during one trial.
type DeviceWatch interface {
	engine.Observation
	// Watched tells of the measured part: from its moment on, and so long.
	Watched(measured time.Duration) (model.RouterWatch, []model.Series)
}

// OpenDevice begins to watch the router that this process runs on; ctx bounds the
// opening only.
type OpenDevice func(ctx context.Context) (Device, error)

// The orders that an observer obeys, and nothing else but hello.
const (
	verbOpen    = "open"
	verbKeep    = "keep"
	verbBegin   = "begin"
	verbTrack   = "track"
	verbMoment  = "moment"
	verbAccount = "account"
	verbEnd     = "end"
	verbFacts   = "facts"
	verbClose   = "close"
)

// openOrder opens a watch, of one run.
type openOrder struct {
	Protocol int    `json:"protocol"`
	Version  string `json:"version"`
	Watch    string `json:"watch"` // CLIENT.WATCH, as a session's name
}

// watchOrder is keep and close.
type watchOrder struct {
	Watch string `json:"watch"`
}

// beginOrder is begin, and end without Drops.
type beginOrder struct {
	Watch string         `json:"watch"`
	Trial uint16         `json:"trial"`
	Drops model.DropMode `json:"drops,omitempty"`
}

// trackOrder names the ports of a flow's streams on one side of the router.
type trackOrder struct {
	Watch        string        `json:"watch"`
	Trial        uint16        `json:"trial"`
	Flow         string        `json:"flow"`
	Packets      uint64        `json:"packets,omitempty"` // of the whole flow, 0 if unknown
	PayloadBytes int           `json:"payload_bytes"`
	Tuples       []model.Tuple `json:"tuples"`
}

type momentOrder struct {
	Watch  string       `json:"watch"`
	Trial  uint16       `json:"trial"`
	Moment model.Moment `json:"moment"`
	Lost   bool         `json:"lost,omitempty"` // with the moment end: packets are missing
}

// accountOrder asks for one part of the observation, or, with MeasuredNanos, of what
// the router did during so long a measured part.
type accountOrder struct {
	Watch         string `json:"watch"`
	Trial         uint16 `json:"trial"`
	MeasuredNanos int64  `json:"measured_ns,omitempty"`
	Part          int    `json:"part"`
}

// factsOrder asks for one part of the facts; with Final those of after the last trial.
type factsOrder struct {
	Watch string `json:"watch"`
	Final bool   `json:"final"`
	Part  int    `json:"part"`
}

// deviceWatched is what the router did during the measured part.
type deviceWatched struct {
	Watch  model.RouterWatch `json:"watch"`
	Series []model.Series    `json:"series,omitempty"`
}
