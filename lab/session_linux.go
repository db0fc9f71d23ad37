package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// session is what a holder keeps for one connection, and gives up with it.
type session struct {
	holder *holder
	watch  *LinkWatch       // of one trial; nil: none
	lent   map[[2]int]shape // what directions of links were before this client changed them
}

// Watches of all clients together: each may need the memory of many verdicts.
const maxWatches = 4

// fulfil answers a well-formed request about links.
func (s *session) fulfil(conn *net.UnixConn, req request) error {
	refuse := func(err error) error {
		var usage *UsageError
		return send(conn, reply{Format: holderFormat, Error: err.Error(), Usage: errors.As(err, &usage)}, nil)
	}
	l := s.holder.lab
	switch req.Do {
	case links:
		ways, err := l.Links()
		if err != nil {
			return refuse(err)
		}
		return sendBulk(conn, ways, nil)
	case set:
		list, before, err := l.setLinks(req.Changes, req.Dry)
		if err != nil {
			return refuse(err)
		}
		if req.Lent && !req.Dry {
			if s.lent == nil {
				s.lent = map[[2]int]shape{}
			}
			maps.Copy(before, s.lent) // the first is what goes back
			maps.Copy(s.lent, before)
		}
		return sendBulk(conn, list, nil)
	case watch:
		if s.holder.knows == nil || s.watch != nil {
			return refuse(errors.New("it watches no trial, or watches one already"))
		}
		if s.holder.watches.Add(1) > maxWatches {
			s.holder.watches.Add(-1)
			return refuse(fmt.Errorf("it watches %d trials at once already", maxWatches))
		}
		w, err := l.WatchLinks(req.Trial, s.holder.knows)
		if err != nil {
			s.holder.watches.Add(-1)
			return refuse(err)
		}
		s.watch = w
		return sendBulk(conn, nil, nil)
	}
	if s.watch == nil {
		return refuse(errors.New("it watches no trial"))
	}
	accounts, err := s.unwatch()
	if err != nil {
		return refuse(err)
	}
	verdicts := packVerdicts(accounts, maxBulk)
	return sendBulk(conn, accounts, verdicts)
}

func (s *session) unwatch() ([]LinkAccount, error) {
	w := s.watch
	s.watch = nil
	s.holder.watches.Add(-1)
	return w.Collect()
}

// end gives up what the client had.
func (s *session) end() {
	s.holder.mu.RLock()
	defer s.holder.mu.RUnlock()
	if s.holder.closed {
		return
	}
	if s.watch != nil {
		_, _ = s.unwatch() // nobody is there to hear it
	}
	if len(s.lent) > 0 {
		_ = s.holder.lab.putBack(s.lent) // as above; the settings that stay are shown
	}
}

// sendBulk answers with a file in memory, which ends with its descriptors.
func sendBulk(conn *net.UnixConn, value any, verdicts []byte) (err error) {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	fd, err := unix.MemfdCreate("pelt", unix.MFD_CLOEXEC)
	if err != nil {
		return send(conn, reply{Format: holderFormat, Error: fmt.Sprintf("make a file in memory: %v", err)}, nil)
	}
	f := os.NewFile(uintptr(fd), "bulk")
	defer func() { err = errors.Join(err, f.Close()) }()
	for _, part := range [][]byte{text, verdicts} {
		if _, err := f.Write(part); err != nil {
			return send(conn, reply{Format: holderFormat, Error: err.Error()}, nil)
		}
	}
	return send(conn, reply{Format: holderFormat, Count: 1, Bulk: &bulk{len(text), len(verdicts) / verdictBytes}}, []int{fd})
}

// bulkPatience is how long a holder may take over a long answer.
const bulkPatience = 30 * time.Second

// ask sends a request about links and reads the file that answers it.
func (c *client) ask(req request) (text, verdicts []byte, err error) {
	packet, oob, err := roundTrip(c.conn, req, bulkPatience)
	if err != nil {
		return nil, nil, err
	}
	fds, err := takeFDs(oob)
	var files []*os.File
	for _, fd := range fds {
		unix.CloseOnExec(fd)
		files = append(files, os.NewFile(uintptr(fd), "bulk"))
	}
	defer func() {
		for _, f := range files {
			err = errors.Join(err, f.Close())
		}
	}()
	if err != nil {
		return nil, nil, err
	}
	r, err := parseReply(packet)
	if err != nil {
		return nil, nil, err
	}
	if r.Bulk == nil || len(files) != 1 {
		return nil, nil, errors.New("the holder sent no file with its reply")
	}
	text, verdicts = make([]byte, r.Bulk.JSONBytes), make([]byte, r.Bulk.Verdicts*verdictBytes)
	whole := io.NewSectionReader(files[0], 0, int64(len(text)+len(verdicts)))
	for _, part := range [][]byte{text, verdicts} {
		if _, err := io.ReadFull(whole, part); err != nil {
			return nil, nil, fmt.Errorf("read the holder's file: %w", err)
		}
	}
	return text, verdicts, nil
}

// takeFDs are the descriptors that came with a packet.
func takeFDs(oob []byte) (fds []int, err error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, fmt.Errorf("read the holder's descriptors: %w", err)
	}
	for i := range messages {
		some, err := unix.ParseUnixRights(&messages[i])
		fds = append(fds, some...)
		if err != nil {
			return fds, fmt.Errorf("read the holder's descriptors: %w", err)
		}
	}
	return fds, nil
}

func closeAll(oob []byte) error {
	fds, err := takeFDs(oob)
	for _, fd := range fds {
		err = errors.Join(err, unix.Close(fd))
	}
	return err
}
