package counters

import (
	"errors"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// socket asks one of netlink's families in the namespace that do runs functions in. It is opened when it is first
// used, and again after an error: what was left unread on it would be taken for the next answer.
type socket struct {
	do     func(func() error) error
	family int
	conn   *netlink.Conn
}

// answerWithin bounds the wait for an answer; the kernel answers at once.
const answerWithin = 5 * time.Second

func (s *socket) ask(kind uint16, flags netlink.HeaderFlags, body []byte) (answer []netlink.Message, err error) {
	if s.conn == nil {
		err = s.do(func() (err error) {
			s.conn, err = netlink.Dial(s.family, nil)
			return err
		})
	}
	if err == nil {
		err = s.conn.SetDeadline(time.Now().Add(answerWithin))
	}
	if err == nil {
		header := netlink.Header{Type: netlink.HeaderType(kind), Flags: netlink.Request | flags}
		answer, err = s.conn.Execute(netlink.Message{Header: header, Data: body})
	}
	if err != nil {
		_ = s.close() // what failed first tells more
	}
	return answer, err
}

func (s *socket) close() (err error) {
	if s.conn != nil {
		err = s.conn.Close()
		s.conn = nil
	}
	return err
}

// plain is an error without the layers that only name the library's steps.
func plain(err error) string {
	var op *netlink.OpError
	if errors.As(err, &op) {
		return op.Err.Error()
	}
	return err.Error()
}

// maxDumps is how often a listing that changed meanwhile is asked for.
const maxDumps = 5

var errChanging = errors.New("the list kept changing while it was read")

// dump asks for a listing and hands over the messages of the wanted type. A
// listing that changed while it was made is asked for again.
func (s *socket) dump(request, reply uint16, body []byte) (payloads [][]byte, err error) {
	for range maxDumps {
		messages, err := s.ask(request, netlink.Dump, body)
		if err != nil {
			return nil, err
		}
		payloads = payloads[:0]
		whole := true
		for _, m := range messages {
			whole = whole && m.Header.Flags&netlink.DumpInterrupted == 0
			if m.Header.Type == netlink.HeaderType(reply) {
				payloads = append(payloads, m.Data)
			}
		}
		if whole {
			return payloads, nil
		}
	}
	return nil, errChanging
}

// list decodes a listing. A message that cannot be decoded spoils it: what is not understood may be what counts.
func list[T any](s *socket, request, reply uint16, body []byte, decode func([]byte) (T, error)) ([]T, error) {
	payloads, err := s.dump(request, reply, body)
	if err != nil {
		return nil, err
	}
	out := make([]T, len(payloads))
	for i, b := range payloads {
		if out[i], err = decode(b); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func listLinks(c *socket) ([]link, error) {
	const skipStats = 1 << 3 // RTEXT_FILTER_SKIP_STATS: those of IPv6, which are slow to add up
	request := netlink.NewAttributeEncoder()
	request.Uint32(unix.IFLA_EXT_MASK, skipStats)
	mask, err := request.Encode()
	if err != nil {
		return nil, err
	}
	body := append(make([]byte, unix.SizeofIfInfomsg), mask...)
	return list(c, unix.RTM_GETLINK, unix.RTM_NEWLINK, body, decodeLink)
}

func listQdiscs(c *socket) ([]qdisc, error) {
	return list(c, unix.RTM_GETQDISC, unix.RTM_NEWQDISC, make([]byte, 20), decodeQdisc) // struct tcmsg
}
