package fleet

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"syscall"

	"github.com/nats-io/nats.go"

	"pelt/finding"
	"pelt/model"
	"pelt/words"
)

// ErrWrongCode is wrapped by the error of a connection whose code the hub did not accept.
var ErrWrongCode = errors.New("wrong code")

// errNoCode is of a connection to a hub without a code.
var errNoCode = errors.New("no code was given")

// errNobody is the answer of a hub on which nobody takes an order.
var errNobody = finding.NewFault(model.NobodyThere)

// errMute is of a listener that ends a connection without a word.
var errMute = errors.New("it ended the connection")

// errOtherTLS is of a TLS server that does not speak pelt's protocol.
var errOtherTLS = errors.New("another TLS server")

// errLost is wrapped by the error of an order that could not be given because
// the connection to the hub is gone.
var errLost = finding.NewFault(model.ControlGone)

// errLate is of an order that was not answered within its time.
var errLate = finding.NewFault(model.AnswerLate)

// ErrTaken is wrapped by the error of a trial whose hosts take part in the test of another controller.
var ErrTaken = errors.New("that host takes part in another test")

// errTaken is what an agent says then.
var errTaken = finding.NewFault(model.HostTaken).From(ErrTaken)

// HostError is the error of an order to one host, or of its silence before a trial.
type HostError struct {
	Host string // ID of its agent
	node string // on the path; "" if err has it
	at   string // its address, if it is far
	err  error
}

func (e *HostError) Because() model.Reason {
	why := finding.ReasonOf(e.err)
	if e.node == "" {
		return why
	}
	return model.Reason{Code: model.AtHost, Node: e.node, Name: e.at, Of: model.Reasons{why}}
}

func (e *HostError) Error() string { return finding.Clause(e.Because()) }

func (e *HostError) SaidIn(l words.Language) string { return finding.ClauseIn(l, e.Because()) }

func (e *HostError) Unwrap() error { return e.err }

// errVersion is wrapped by the error of a host that does not speak this protocol.
var errVersion = errors.New("another protocol version")

// otherVersion says which of two hosts needs an upgrade. here and there are versions of pelt.
func otherVersion(host, here, there string, protocol int) error {
	why := finding.NewFault(model.OtherVersion, "host", host, "version", cmp.Or(there, "?"), "protocol", protocol,
		"own_version", cmp.Or(here, "?"), "own_protocol", protocolVersion)
	if protocolVersion > protocol {
		why.Names["there"] = "yes"
	}
	return why.From(errVersion)
}

// natsError says in words of this program why something failed that was done over NATS.
func natsError(err error) error {
	switch {
	case errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrDisconnected),
		errors.Is(err, nats.ErrConnectionReconnecting):
		return errLost
	case errors.Is(err, nats.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return finding.NewFault(model.HubLate)
	case errors.Is(err, nats.ErrMaxPayload):
		return finding.NewFault(model.MessageLong)
	}
	return finding.NewFault(model.HubForbids)
}

// isErrno compares with a POSIX errno or its Winsock number, which differs
// from package syscall's constant there.
func isErrno(err error, posix syscall.Errno, winsock syscall.Errno) bool {
	var errno syscall.Errno
	return errors.As(err, &errno) && (errno == posix || runtime.GOOS == "windows" && errno == winsock)
}

// Refuses reports whether an error is of a host that is there and does not let this client in: waiting mends nothing.
func Refuses(err error) bool { return errors.Is(err, ErrWrongCode) || errors.Is(err, errVersion) }
