package lab

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"pelt/internal/netns"
	"pelt/model"
)

type attached struct {
	lab    *Lab
	kernel []kernelWay
	conn   *net.UnixConn // ends when the holder does
}

// Attach opens the held lab's nodes in this process. Closing it closes only
// this process's copies. The error is a *UsageError if there is no such lab.
func Attach(name string) (*Lab, error) {
	a, err := attach(name)
	if err != nil {
		return nil, err
	}
	l := a.lab
	l.holder = &client{name: name, conn: a.conn}
	ways, err := l.Links()
	if err == nil {
		err = l.know(ways, a.kernel)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("attach to lab %s: %w", name, err), l.Close())
	}
	return l, nil
}

func attach(name string) (a *attached, err error) {
	conn, err := connect(name)
	if err != nil {
		return nil, err
	}
	a = &attached{conn: conn, lab: &Lab{}}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("attach to lab %s: %w", name, err), a.lab.Close(), conn.Close())
			a = nil
		}
	}()
	for from := 0; ; {
		r, handles, err := ask(conn, request{Do: namespaces, From: from})
		a.lab.held = append(a.lab.held, handles...)
		if err != nil {
			return a, err
		}
		if len(handles) != r.Count || r.Count == 0 || r.Held == nil || from+r.Count > r.Held.Spaces || len(r.Held.Nodes) > r.Count {
			return a, errors.New("the holder sent another number of namespaces than it said")
		}
		for i, info := range r.Held.Nodes {
			a.lab.nodes = append(a.lab.nodes, &Node{ns: a.lab.held[from+i], info: info})
		}
		a.lab.tbfs = append(a.lab.tbfs, r.Held.Tbfs...)
		a.kernel = append(a.kernel, r.Held.Kernel...)
		from += r.Count
		if from == r.Held.Spaces {
			if err := a.lab.whole(); err != nil {
				return a, err
			}
			a.lab.facts = r.Held.Facts
			// Only the holder's end matters from here on.
			return a, conn.SetDeadline(time.Time{})
		}
	}
}

// whole reports what a holder told of places that are none.
func (l *Lab) whole() error {
	no := func(place, of int) bool { return place < 0 || place >= of }
	for _, t := range l.tbfs {
		if no(t.Space, len(l.held)) {
			return fmt.Errorf("the holder shapes %s to %s in namespace %d of %d", t.From, t.To, t.Space, len(l.held))
		}
	}
	for _, n := range l.nodes {
		if len(n.info.Interfaces) == 0 {
			return fmt.Errorf("the holder told of no interface of %s", n.info.Name)
		}
	}
	return nil
}

// know makes the links of a lab that is held of what its holder told.
func (l *Lab) know(ways []LinkWay, kernel []kernelWay) error {
	for ; len(ways) > 1; ways = ways[2:] {
		k := &Link{Ends: [2]string{ways[0].From, ways[0].To}}
		switch ways[0].Backend {
		case ByUser:
			k.by.backend = model.BackendUser
		case model.BackendKernel:
			if len(kernel) < 2 {
				return fmt.Errorf("the holder does not tell where it emulates %s to %s", k.Ends[0], k.Ends[1])
			}
			k.by.backend, k.kernel, kernel = model.BackendKernel, kernel[:2:2], kernel[2:]
			for _, w := range k.kernel {
				if w.Space < 0 || w.Space >= len(l.held) || len(w.Entries) == 0 {
					return fmt.Errorf("the holder emulates %s to %s in namespace %d of %d, by %d interfaces", w.From, w.To, w.Space, len(l.held), len(w.Entries))
				}
				k.relay = l.held[w.Space]
			}
		default:
			continue
		}
		l.links = append(l.links, k)
	}
	return nil
}

// connect reaches the holder of this user's lab.
func connect(name string) (*net.UnixConn, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	return connectTo(socketName(os.Geteuid(), name), name)
}

func connectTo(socket, name string) (*net.UnixConn, error) {
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: socket, Net: "unixpacket"})
	if errors.Is(err, unix.ECONNREFUSED) {
		return nil, &UsageError{fmt.Sprintf("no lab %q is held here; lab list shows those that are, lab up makes one", name)}
	}
	if err != nil {
		return nil, fmt.Errorf("reach lab %s: %w", name, err)
	}
	return conn, nil
}

// ask sends one request and reads its reply. The handles are the caller's even
// when there is an error.
func ask(conn *net.UnixConn, req request) (reply, []*netns.Handle, error) {
	packet, oob, err := roundTrip(conn, req, requestTimeout)
	if err != nil {
		return reply{}, nil, err
	}
	handles, err := takeNamespaces(oob)
	if err != nil {
		return reply{}, handles, err
	}
	r, err := parseReply(packet)
	return r, handles, err
}

// roundTrip sends one request and waits for the packet that answers it, and for the
// descriptors that come with it, as the kernel gives them.
func roundTrip(conn *net.UnixConn, req request, patience time.Duration) (packet, oob []byte, err error) {
	req.Format = holderFormat
	b, err := json.Marshal(req)
	if err != nil {
		return nil, nil, err
	}
	if len(b) > maxRequest {
		return nil, nil, fmt.Errorf("that is too much at once: %d B, and a holder takes %d", len(b), maxRequest)
	}
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return nil, nil, err
	}
	if _, err := conn.Write(b); err != nil {
		return nil, nil, err
	}
	packet, oob = make([]byte, maxReply), make([]byte, unix.CmsgSpace(4*fdsAtOnce))
	n, oobn, flags, _, err := conn.ReadMsgUnix(packet, oob)
	if err != nil {
		return nil, nil, err
	}
	if n == 0 {
		return nil, nil, io.EOF
	}
	if flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
		return nil, nil, errors.Join(errors.New("the holder's reply is too long"), closeAll(oob[:oobn]))
	}
	return packet[:n], oob[:oobn], nil
}

func takeNamespaces(oob []byte) (handles []*netns.Handle, err error) {
	fds, err := takeFDs(oob)
	errs := []error{err}
	for _, fd := range fds {
		h, err := netns.FromFD(fd)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		handles = append(handles, h)
	}
	return handles, errors.Join(errs...)
}

// List finds the labs held in this network namespace: this user's, or
// everybody's for root. They are sorted by name. A lab that could not be asked
// is listed with Err set.
func List() ([]Info, error) {
	text, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return nil, fmt.Errorf("list labs: %w", err)
	}
	uid := os.Geteuid()
	if uid == 0 {
		uid = -1
	}
	var list []Info
	for _, socket := range parseSockets(string(text), uid) {
		list = append(list, inquire(socket))
	}
	slices.SortFunc(list, func(a, b Info) int { return cmp.Or(cmp.Compare(a.Name, b.Name), a.UID-b.UID) })
	return list, nil
}

func inquire(socket string) (info Info) {
	info.Name = path.Base(socket)
	conn, err := connectTo(socket, info.Name)
	if err != nil {
		info.Err = err
		return info
	}
	defer conn.Close()
	if cred, err := peer(conn); err == nil {
		info.PID, info.UID = int(cred.Pid), int(cred.Uid)
	}
	r, handles, err := ask(conn, request{Do: describe})
	for _, h := range handles { // an honest holder sends none
		err = errors.Join(err, h.Close())
	}
	if err != nil || r.Held == nil {
		info.Err = errors.Join(errors.New("the holder did not answer"), err)
		return info
	}
	info.Topology, info.Nodes, info.Backends = r.Held.Facts.Topology, r.Held.Facts.Nodes, r.Held.Facts.Backends
	info.Started, info.Refused, info.Garbled = r.Held.Started, r.Held.Refused, r.Held.Garbled
	return info
}

// Down takes a held lab down and waits, until ctx ends, for its holder to be
// gone. The error is a *UsageError if there is no such lab.
func Down(ctx context.Context, name string) error {
	conn, err := connect(name)
	if err != nil {
		return err
	}
	defer conn.Close()
	cred, err := peer(conn)
	if err != nil {
		return fmt.Errorf("take down lab %s: %w", name, err)
	}
	process, pidErr := unix.PidfdOpen(int(cred.Pid), 0) // before it can end and its number be used again
	if pidErr == nil {
		defer unix.Close(process)
	}
	_, _, err = ask(conn, request{Do: down})
	if err != nil && !errors.Is(err, unix.ECONNRESET) && !errors.Is(err, unix.EPIPE) && !errors.Is(err, io.EOF) { // those: it is just ending
		return fmt.Errorf("take down lab %s: %w", name, err)
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })()
	if _, err := conn.Read(make([]byte, 1)); ctx.Err() != nil {
		return fmt.Errorf("take down lab %s: the holder, process %d, is still there: %w", name, cred.Pid, errors.Join(ctx.Err(), err))
	}
	if pidErr != nil || int(cred.Pid) == os.Getpid() {
		return nil
	}
	return waitGone(ctx, name, process, int(cred.Pid))
}

// waitGone waits for the end of a process, which makes its pidfd readable.
func waitGone(ctx context.Context, name string, pidfd, pid int) error {
	const slice = 50 // ms between looks at ctx
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, slice)
		if n > 0 {
			return nil
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("take down lab %s: %w", name, err)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("take down lab %s: the holder, process %d, is still there: %w", name, pid, ctx.Err())
		}
	}
}
