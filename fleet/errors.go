package fleet

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"syscall"

	"github.com/nats-io/nats.go"

	"pelt/engine"
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

func (e *HostError) reason() model.Reason {
	why := ReasonOf(e.err)
	if e.node == "" {
		return why
	}
	return model.Reason{Code: model.AtHost, Node: e.node, Name: e.at, Of: model.Reasons{why}}
}

func (e *HostError) Error() string { return finding.Clause(e.reason()) }

func (e *HostError) SaidIn(l words.Language) string { return finding.ClauseIn(l, e.reason()) }

func (e *HostError) Unwrap() error { return e.err }

// ReasonOf is the reason of an error of this package or of an engine: the outermost that has one decides. An error
// without a code is told in its own words.
func ReasonOf(err error) model.Reason {
	for at := err; at != nil; {
		switch x := at.(type) {
		case *HostError:
			return x.reason()
		case *finding.Fault:
			return x.Reason
		case *engine.Refusal:
			return x.Why
		case *engine.Fault:
			return x.Why
		}
		all, several := at.(interface{ Unwrap() []error })
		if !several {
			at = errors.Unwrap(at)
			continue
		}
		switch list := all.Unwrap(); len(list) {
		case 0:
			at = nil
		case 1:
			at = list[0]
		default:
			why := model.Reason{Code: model.Several}
			for _, one := range list {
				why.Of = append(why.Of, ReasonOf(one))
			}
			return why
		}
	}
	return model.Reason{Code: model.HostFault, Text: err.Error()}
}

// errVersion is wrapped by the error of a host that does not speak this protocol.
var errVersion = errors.New("another protocol version")

// otherVersion says which of two hosts needs an upgrade. here and there are versions of pelt.
func otherVersion(host, here, there string, protocol int) error {
	there, here = cmp.Or(there, "?"), cmp.Or(here, "?")
	if protocolVersion > protocol {
		return words.Errorf("%s runs pelt %s (protocol %d), this is pelt %s (protocol %d): upgrade pelt on %s%w",
			host, there, protocol, here, protocolVersion, host, silent{errVersion})
	}
	return words.Errorf("%s runs pelt %s (protocol %d), this is pelt %s (protocol %d): upgrade pelt here%w",
		host, there, protocol, here, protocolVersion, silent{errVersion})
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

// silent keeps an error findable by errors.Is without showing its text.
type silent struct{ error }

func (silent) Error() string   { return "" }
func (s silent) Unwrap() error { return s.error }
