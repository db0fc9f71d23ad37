package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"pelt/finding"
	"pelt/lab/userlink"
	"pelt/model"
)

type holder struct {
	lab      *Lab
	identify userlink.Identify
	stop     func()

	mu     sync.RWMutex // held for reading while a request is served
	closed bool
}

// Hold opens a lab under a name and keeps it until Down is called for it or ctx
// ends; then it closes the lab and returns nil. It tells the StartHolder that began this
// process that others can attach, or why not. identify reads the test packets of those who let emulated links be
// watched. The lab is reached by an abstract unix socket, which lives in this
// process's network namespace and vanishes with the process: only processes of
// the same user in the same network namespace find it. Errors are
// those of Open, and *UsageError for a bad or taken name.
func Hold(ctx context.Context, name, topology string, links []model.Link, identify userlink.Identify) (err error) {
	defer func() {
		if err != nil {
			_ = reportReady(err)
		}
	}()
	if err := errors.Join(CheckName(name), Check(topology, links)); err != nil {
		return err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socketName(os.Geteuid(), name), Net: "unix"})
	if errors.Is(err, unix.EADDRINUSE) {
		return &UsageError{finding.NewFault(model.LabTaken, "name", name)}
	}
	if err != nil {
		return fmt.Errorf("hold lab %s: %w", name, err)
	}
	defer listener.Close()
	l, err := Open(ctx, topology, links)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	h := &holder{lab: l, identify: identify, stop: cancel}
	var clients sync.WaitGroup
	serving, letGo := context.WithCancel(context.Background())
	defer func() {
		cancel()
		h.mu.Lock()
		h.closed = true
		err = errors.Join(err, l.Close())
		h.mu.Unlock()
		// Clients are let go last: one that waits for the end of its connection
		// knows that the lab is closed.
		letGo()
		clients.Wait()
	}()
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	if err := reportReady(nil); err != nil {
		return fmt.Errorf("hold lab %s: who asked for it is gone: %w", name, err)
	}
	for {
		conn, err := listener.AcceptUnix()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("hold lab %s: %w", name, err)
		}
		clients.Go(func() {
			defer conn.Close()
			defer context.AfterFunc(serving, func() { _ = conn.Close() })()
			if cred, err := peer(conn); err == nil && int(cred.Uid) == os.Geteuid() {
				h.serve(conn)
			}
		})
	}
}

func peer(conn *net.UnixConn) (cred *unix.Ucred, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	control := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	return cred, errors.Join(control, err)
}

// serve answers requests until the client leaves, errs or the lab goes down.
func (h *holder) serve(conn *net.UnixConn) {
	s := session{holder: h, conn: conn}
	defer s.end()
	in, out := json.NewDecoder(conn), json.NewEncoder(conn)
	for {
		var r request
		if in.Decode(&r) != nil {
			return
		}
		// a client that does not read would hold up the end of the lab
		if conn.SetWriteDeadline(time.Now().Add(replyTime)) != nil {
			return
		}
		answer := replyOf(s.answer(r))
		if out.Encode(answer) != nil {
			return
		}
		if r.Do == down && answer.Fault == nil {
			h.stop()
		}
	}
}

// session is what a holder keeps for one connection, and gives up with it.
type session struct {
	holder  *holder
	conn    *net.UnixConn
	watch   *LinkWatch            // of one trial; nil: none
	restore map[[2]int]model.Link // what directions of links were before this client changed them
}

func (s *session) answer(r request) (any, error) {
	h := s.holder
	h.mu.RLock()
	defer h.mu.RUnlock()
	switch {
	case r.Format != holderFormat:
		return nil, finding.NewFault(model.LabVersion, "version", holderFormat, "own_version", model.Clip(r.Format))
	case h.closed:
		return nil, finding.NewFault(model.LabEnds)
	}
	switch r.Do {
	case describe:
		return h.describe(), nil
	case join:
		return h.describe(), sendFiles(s.conn, h.files())
	case links:
		return h.lab.Links()
	case set:
		list, before, err := h.lab.setLinks(r.Changes, r.Dry)
		if err == nil && r.Temporary && !r.Dry {
			maps.Copy(before, s.restore) // the first is what goes back
			s.restore = before
		}
		return list, err
	case watch:
		if s.watch != nil {
			return nil, finding.NewFault(model.LabWatches)
		}
		var err error
		s.watch, err = h.lab.WatchLinks(r.Trial, r.Flows, h.identify)
		return nil, err
	case collect:
		w := s.watch
		if s.watch = nil; w == nil {
			return nil, finding.NewFault(model.LabWatchesNone)
		}
		return w.Collect()
	case down:
		return nil, nil
	}
	return nil, finding.NewFault(model.OrderUnknown, "name", model.Clip(string(r.Do)))
}

func (h *holder) describe() heldLab {
	told := heldLab{Facts: h.lab.Facts()}
	for _, n := range h.lab.nodes {
		told.Nodes = append(told.Nodes, n.info)
	}
	h.lab.mu.Lock() // another client may change them
	defer h.lab.mu.Unlock()
	for _, k := range h.lab.links {
		shapers := [2]shaper{k.ways[0].shaper, k.ways[1].shaper}
		told.Links = append(told.Links, heldLink{k.emulated, shapers, k.made, k.plan})
	}
	return told
}

// files are the namespaces that the lab holds.
func (h *holder) files() (list []*os.File) {
	for _, ns := range h.lab.held {
		list = append(list, ns.File())
	}
	return list
}

// end gives up what the client had.
func (s *session) end() {
	s.holder.mu.RLock()
	defer s.holder.mu.RUnlock()
	if s.holder.closed {
		return
	}
	if s.watch != nil {
		_, _ = s.watch.Collect() // nobody is there to hear it
	}
	_ = s.holder.lab.putBack(s.restore) // as above; the settings that stay are shown
}

// readyFD is where a holder started by StartHolder reports how it went: the
// first of exec.Cmd.ExtraFiles.
const (
	readyFD  = 3
	readyEnv = "PELT_LAB_READY_FD"
)

// unstarted is why no process keeps the lab up: what the system said, or nothing where that process ended by itself.
func unstarted(err error) error {
	return finding.NewFault(model.LabUnstarted, "text", model.SystemSaid(err)).From(err)
}

// StartHolder runs this very program again with args as a background process
// that outlives this one, and waits until its Hold reports. Its stdio is
// /dev/null. The error is what the holder reported, or says that it ended
// without a word; then no process is left.
func StartHolder(ctx context.Context, args []string, env ...string) (pid int, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return 0, unstarted(err)
	}
	defer r.Close()
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(append(os.Environ(), fmt.Sprintf("%s=%d", readyEnv, readyFD)), env...)
	cmd.Dir = "/"
	cmd.ExtraFiles = []*os.File{w}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	_ = w.Close()
	if err != nil {
		return 0, unstarted(err)
	}
	defer context.AfterFunc(ctx, func() { _ = r.SetReadDeadline(time.Now()) })()
	var answer reply
	if err = json.NewDecoder(r).Decode(&answer); err == nil {
		err = answer.err()
	} else if ctx.Err() != nil {
		err = unstarted(ctx.Err())
	} else {
		err = unstarted(err)
	}
	if err == nil {
		pid = cmd.Process.Pid // before Release, which sets it to -1
		return pid, cmd.Process.Release()
	}
	_ = cmd.Process.Kill() // it may have ended already
	_ = cmd.Wait()
	return 0, err
}

// reportReady tells a StartHolder that the lab stands (nil) or why it does not, the first
// time that it is called. The error says that nobody listens any more.
func reportReady(err error) error {
	if os.Getenv(readyEnv) != fmt.Sprint(readyFD) {
		return nil
	}
	_ = os.Unsetenv(readyEnv)
	f := os.NewFile(readyFD, "ready")
	return errors.Join(json.NewEncoder(f).Encode(readyReply(err)), f.Close())
}

// readyReply says of an error without a code all that is known: a person reads it, and nobody stores it.
func readyReply(err error) reply {
	r := replyOf(nil, err)
	if r.Fault != nil && r.Fault.Code == model.HostFault {
		r.Fault.Text = err.Error()
	}
	return r
}
