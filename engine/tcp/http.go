package tcp

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"time"
)

// A transfer by HTTP uses the stream's own connection, which both ends have agreed to:
// the sender says one byte when it begins, the receiver asks, and the answer's body is
// the share of the stream.

// goByte tells the receiver that the measured part has begun.
const goByte = 'g'

// headerMost bounds a request, and an answer before its body, in bytes.
const headerMost = 64 << 10

// beginAnswer reads the one request of a stream and writes the answer's header.
func beginAnswer(s *stream, share uint64) error {
	if _, err := s.conn.Write([]byte{goByte}); err != nil {
		return err
	}
	if _, err := http.ReadRequest(bufio.NewReader(io.LimitReader(s.conn, headerMost))); err != nil {
		return err
	}
	_, err := fmt.Fprintf(s.conn,
		"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: %d\r\n"+
			"Connection: close\r\n\r\n", share)
	return err
}

// askHTTP is the receiver's part of a stream: it books the body's bytes.
func (e *end) askHTTP(s *stream, buffer []byte) error {
	var first [1]byte
	if _, err := io.ReadFull(s.conn, first[:]); err != nil {
		return err
	}
	if first[0] != goByte {
		return errors.New("the sender begins with something else than an answer")
	}
	request, err := http.NewRequest(http.MethodGet, "http://pelt/transfer", nil)
	if err != nil {
		return err
	}
	s.asked = time.Since(e.clock.Began)
	if err := request.Write(s.conn); err != nil {
		return err
	}
	limited := &io.LimitedReader{R: s.conn, N: headerMost}
	answer, err := http.ReadResponse(bufio.NewReader(limited), request)
	if err != nil {
		return err
	}
	limited.N = math.MaxInt64
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the sender answers with status %d", answer.StatusCode)
	}
	if share := e.order.Flow.StreamBytes(s.number); answer.ContentLength != int64(share) { // -1 is not told
		return fmt.Errorf("the sender's answer is of %d B; want %d", answer.ContentLength, share)
	}
	for {
		n, err := answer.Body.Read(buffer)
		if n > 0 {
			e.account(s, n, time.Since(e.clock.Began))
		}
		switch {
		case errors.Is(err, io.EOF):
			s.answered = time.Since(e.clock.Began)
			return nil
		case err != nil:
			return err
		}
	}
}
