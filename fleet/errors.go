package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"syscall"

	"github.com/nats-io/nats.go"

	"pelt/words"
)

// ErrWrongCode is wrapped by the error of a connection whose code the hub did not accept.
var ErrWrongCode = errors.New("wrong code")

// errNoCode is of a connection to a hub without a code.
var errNoCode = errors.New("no code was given")

// errNobody is the answer of a hub on which nobody takes an order.
var errNobody = errors.New("nobody of that name is on the hub any more")

// errMute is of a listener that ends a connection without a word.
var errMute = errors.New("it ended the connection")

// errLost is wrapped by the error of an order that could not be given because
// the connection to the hub is gone.
var errLost = errors.New("the control connection was lost: look whether pelt still runs there, and try again")

// errLate is of an order that was not answered within its time.
var errLate = errors.New("no answer in time: look whether that host is busy, then try again")

// ErrTaken is wrapped by the error of a trial whose hosts take part in the test of another controller.
var ErrTaken = errors.New("that host takes part in another test")

// errTaken is what an agent says then.
var errTaken = words.Errorf("%w: try again when it is over", ErrTaken)

// HostError is the error of an order to one host, or of its silence before a trial.
type HostError struct {
	Host string // ID of its agent
	name string // for people; "" if err has it
	err  error
}

func (e *HostError) Error() string {
	if e.name == "" {
		return e.err.Error()
	}
	return e.name + ": " + e.err.Error()
}

func (e *HostError) Unwrap() error { return e.err }

// errVersion is wrapped by the error of a host that does not speak this protocol.
var errVersion = errors.New("another protocol version")

// otherVersion says which of two hosts needs an upgrade. here and there are versions of pelt.
func otherVersion(host, here, there string, protocol int) error {
	upgrade := "here"
	if protocolVersion > protocol {
		upgrade = "on " + host
	}
	const unknown = "of unknown version"
	return fmt.Errorf("%s runs pelt %s (protocol %d), this is pelt %s (protocol %d): upgrade pelt %s%w", host,
		cmp.Or(there, unknown), protocol, cmp.Or(here, unknown), protocolVersion, upgrade, silent{errVersion})
}

// natsError says in words of this program why something failed that was done over NATS.
func natsError(doing string, err error) error {
	switch {
	case errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrDisconnected),
		errors.Is(err, nats.ErrConnectionReconnecting):
		return errLost
	case errors.Is(err, nats.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return words.Errorf("%s: no answer in time: try again", doing)
	case errors.Is(err, nats.ErrMaxPayload):
		return words.Errorf("%s: the message is too long: try fewer flows or streams", doing)
	}
	return words.Errorf("%s: the hub did not allow it: is it of this version of pelt?", doing)
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
