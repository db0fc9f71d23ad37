package fleet

import (
	"bytes"
	"errors"
	"net"
	"strconv"
)

// maxOperation bounds one line of NATS's protocol.
const maxOperation = 4 << 10

var errForeign = errors.New("what answers there does not speak as pelt serve does")

// incoming holds what the server says to NATS's protocol in its strict form, with no message longer than a
// hub of this program sends one: the client's parser takes any length, and memory for it.
type incoming struct {
	net.Conn
	line    []byte // so far
	payload int    // bytes that are still to come
	within  bool   // a message, whose end of line is still to come
}

func (c *incoming) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if !c.follow(b[:n]) {
		return 0, errForeign
	}
	return n, err
}

// follow reports whether the next bytes are as they have to be.
func (c *incoming) follow(b []byte) bool {
	for {
		skip := min(c.payload, len(b))
		c.payload, b = c.payload-skip, b[skip:]
		end := bytes.IndexByte(b, '\n')
		c.line = append(c.line, b[:max(end, 0)]...)
		if end < 0 {
			c.line = append(c.line, b...)
			return len(c.line) <= maxOperation
		}
		if b = b[end+1:]; len(c.line) > maxOperation || !c.operation() {
			return false
		}
		c.line = c.line[:0]
	}
}

// operation takes a line without its last byte. A message's line ends with how long it is.
func (c *incoming) operation() bool {
	line, ended := bytes.CutSuffix(c.line, []byte{'\r'})
	switch {
	case !ended || bytes.IndexByte(line, '\r') >= 0:
		return false
	case c.within:
		c.within = false
		return len(line) == 0
	case len(line) == 0 || !bytes.ContainsAny(line[:1], "MmHh"):
		return true
	}
	size, err := strconv.ParseUint(string(line[bytes.LastIndexAny(line, " \t")+1:]), 10, 32)
	c.payload, c.within = int(size), true
	return err == nil && size <= maxPayload
}
