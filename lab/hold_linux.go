package lab

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"pelt/lab/userlink"
	"pelt/model"
)

const (
	maxClients     = 256
	requestTimeout = 5 * time.Second // for a new client's first request
)

type holder struct {
	lab     *Lab
	knows   userlink.Identify
	record  heldRecord
	refused atomic.Uint64
	garbled atomic.Uint64
	watches atomic.Int64
	slots   chan struct{}
	stop    func()
	clients sync.WaitGroup

	mu     sync.RWMutex // held for reading while descriptors are sent
	closed bool
}

// Hold opens a lab under a name and keeps it until Down is called for it or ctx
// ends; then it closes the lab and returns nil. It calls ready once others can
// attach. identify reads the test packets of those who let emulated links be
// watched. The lab is reached by an abstract unix socket, which lives in this
// process's network namespace and vanishes with the process: only processes of
// the same user, or root's, in the same network namespace find it. Errors are
// those of Open, and *UsageError for a bad or taken name.
func Hold(ctx context.Context, name, topology string, links []model.Link, identify userlink.Identify, ready func()) (err error) {
	if err := errors.Join(CheckName(name), Check(topology, links)); err != nil {
		return err
	}
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: socketName(os.Geteuid(), name), Net: "unixpacket"})
	if errors.Is(err, unix.EADDRINUSE) {
		return &UsageError{fmt.Sprintf("lab name %q is taken; take that lab down first or choose another name", name)}
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
	h := &holder{lab: l, knows: identify, slots: make(chan struct{}, maxClients), stop: cancel}
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
		h.clients.Wait()
	}()
	h.record = heldRecord{Name: name, Started: time.Now(), Spaces: len(l.held), Tbfs: l.tbfs}
	for _, k := range l.links {
		h.record.Kernel = append(h.record.Kernel, k.kernel...)
	}
	for _, n := range l.nodes {
		h.record.Nodes = append(h.record.Nodes, n.info)
	}
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	ready()
	for {
		conn, err := listener.AcceptUnix()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("hold lab %s: %w", name, err)
		}
		h.admit(serving, conn)
	}
}

// admit serves a client of the same user or root, as long as there is room.
func (h *holder) admit(ctx context.Context, conn *net.UnixConn) {
	cred, err := peer(conn)
	if err != nil || cred.Uid != 0 && int(cred.Uid) != os.Geteuid() {
		h.refused.Add(1)
		_ = conn.Close()
		return
	}
	select {
	case h.slots <- struct{}{}:
	default:
		h.refused.Add(1)
		_ = conn.Close()
		return
	}
	h.clients.Go(func() {
		defer func() { <-h.slots }()
		defer conn.Close()
		defer context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Now()) })()
		h.serve(ctx, conn)
	})
}

func peer(conn *net.UnixConn) (*unix.Ucred, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) { cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return nil, err
	}
	return cred, credErr
}

// serve answers requests until the client leaves, errs or the lab goes down.
func (h *holder) serve(ctx context.Context, conn *net.UnixConn) {
	_ = conn.SetReadDeadline(time.Now().Add(requestTimeout)) // a failure shows in the read
	buf := make([]byte, maxRequest+1)
	client := session{holder: h}
	defer client.end()
	for ctx.Err() == nil {
		n, err := conn.Read(buf)
		if err != nil || n == 0 {
			return
		}
		req, err := parseRequest(buf[:n])
		if n > maxRequest {
			err = fmt.Errorf("malformed request: longer than %d B", maxRequest)
		}
		if err == nil {
			err = h.fulfil(conn, req, &client)
		} else {
			h.garbled.Add(1)
			_ = send(conn, reply{Format: holderFormat, Error: err.Error()}, nil) // the client ends here either way
		}
		if err != nil {
			return
		}
		if ctx.Err() == nil {
			_ = conn.SetReadDeadline(time.Time{})
		}
		if req.Do == down {
			h.stop()
		}
	}
}

// fulfil answers a well-formed request.
func (h *holder) fulfil(conn *net.UnixConn, req request, client *session) error {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if h.closed {
		return send(conn, reply{Format: holderFormat, Error: "the lab is going down"}, nil)
	}
	if slices.Contains([]verb{links, set, watch, collect}, req.Do) {
		return client.fulfil(conn, req)
	}
	record := h.record
	record.Facts = h.lab.Facts()
	record.Refused, record.Garbled = h.refused.Load(), h.garbled.Load()
	answer := reply{Format: holderFormat, Held: &record}
	nodes, tbfs, kernel := record.Nodes, record.Tbfs, record.Kernel
	record.Nodes, record.Tbfs, record.Kernel = nil, nil, nil
	if req.Do != namespaces {
		return send(conn, answer, nil)
	}
	if req.From >= len(h.lab.held) {
		return send(conn, reply{Format: holderFormat, Error: fmt.Sprintf("there are %d namespaces, none from %d on", len(h.lab.held), req.From)}, nil)
	}
	var fds []int
	for _, ns := range h.lab.held[req.From:min(req.From+fdsAtOnce, len(h.lab.held))] {
		fds = append(fds, int(ns.File().Fd()))
	}
	answer.Count = len(fds)
	record.Nodes, record.Tbfs = part(nodes, req.From, fdsAtOnce), part(tbfs, 2*req.From, 2*fdsAtOnce) // a link has two directions
	record.Kernel = part(kernel, 2*req.From, 2*fdsAtOnce)
	return send(conn, answer, fds)
}

// part is what one reply holds of a list, so that it fits.
func part[T any](list []T, from, most int) []T {
	return list[min(from, len(list)):min(from+most, len(list))]
}

func send(conn *net.UnixConn, r reply, fds []int) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_ = conn.SetWriteDeadline(time.Now().Add(requestTimeout))
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	_, _, err = conn.WriteMsgUnix(b, rights, nil)
	return err
}

// readyFD is where a holder started by StartHolder reports how it went: the
// first of exec.Cmd.ExtraFiles.
const (
	readyFD  = 3
	readyEnv = "PELT_LAB_READY_FD"
)

// StartHolder runs this very program again with args as a background process
// that outlives this one, and waits until it calls ReportReady. Its stdio is
// /dev/null. The error is what the holder reported, or says that it ended
// without a word; then no process is left.
func StartHolder(ctx context.Context, args []string, env ...string) (pid int, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return 0, fmt.Errorf("start lab holder: %w", err)
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
		return 0, fmt.Errorf("start lab holder: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = r.SetReadDeadline(time.Now()) })()
	line, err := bufio.NewReader(r).ReadString('\n')
	kind, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
	switch {
	case err == nil && kind == "ready":
		pid = cmd.Process.Pid // before Release, which sets it to -1
		return pid, cmd.Process.Release()
	case err == nil && kind == "usage":
		err = &UsageError{text}
	case err == nil:
		err = errors.New(text)
	case ctx.Err() != nil:
		err = fmt.Errorf("start lab holder: %w", ctx.Err())
	default:
		err = errors.New("start lab holder: it ended without a word")
	}
	_ = cmd.Process.Kill() // it may have ended already
	_ = cmd.Wait()
	return 0, err
}

// ReportReady tells the StartHolder that began this process that the lab stands
// (nil) or why it does not. Without such a StartHolder it does nothing.
func ReportReady(err error) {
	if os.Getenv(readyEnv) != fmt.Sprint(readyFD) {
		return
	}
	_ = os.Unsetenv(readyEnv)
	line := "ready"
	var usage *UsageError
	if errors.As(err, &usage) {
		line = "usage " + usage.Text
	} else if err != nil {
		line = "error " + err.Error()
	}
	f := os.NewFile(readyFD, "ready")
	_, _ = f.WriteString(strings.ReplaceAll(line, "\n", "; ") + "\n") // nobody may be listening any more
	_ = f.Close()
}
