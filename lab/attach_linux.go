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
	"pelt/words"
)

// Attach opens the held lab's nodes in this process. Closing it closes only
// this process's copies. The error is a *UsageError if there is no such lab.
func Attach(name string) (*Lab, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	c, err := connect(socketName(os.Geteuid(), name))
	if err != nil {
		return nil, err
	}
	l := &Lab{holder: c}
	if err := l.attach(); err != nil {
		return nil, errors.Join(words.Errorf("attach to lab %s: %w", name, err), l.Close())
	}
	return l, nil
}

var errOtherLinks = errors.New("the process that keeps it up told of other nodes and links than its topology has")

func (l *Lab) attach() (err error) {
	var told heldLab
	files, err := l.holder.askForFiles(request{Do: join}, &told)
	if err != nil {
		return err
	}
	for i, f := range files {
		ns, err := netns.FromFile(f)
		if err != nil {
			closeFiles(files[i:])
			return err
		}
		l.held = append(l.held, ns)
	}
	if l.spec, err = findTopology(told.Facts.Topology); err != nil {
		return err
	}
	if len(told.Nodes) != len(l.spec.nodes) || len(told.Nodes) > len(l.held) || len(told.Links) != len(l.spec.links) {
		return errOtherLinks
	}
	for i, info := range told.Nodes {
		if len(info.Interfaces) == 0 {
			return fmt.Errorf("the process that keeps it up told of no interface of %s", info.Name)
		}
		l.nodes = append(l.nodes, &Node{ns: l.held[i], info: info})
	}
	for i, one := range told.Links {
		from, to := l.spec.ends(i, 0)
		k := &Link{Ends: [2]string{from, to}, number: i, emulated: one.Emulated}
		for d, s := range one.Shapers {
			if s.Space < 0 || s.Space >= len(l.held) {
				return fmt.Errorf("the process that keeps it up shapes %s to %s in namespace %d of %d", from, to,
					s.Space, len(l.held))
			}
			k.ways[d].shaper = s
		}
		l.links = append(l.links, k)
	}
	l.facts = told.Facts
	return nil
}

// connect reaches the holder of a lab by its socket's name.
func connect(socket string) (*client, error) {
	name := path.Base(socket)
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: socket, Net: "unix"})
	if errors.Is(err, unix.ECONNREFUSED) {
		return nil, noLab(name)
	}
	if err != nil {
		return nil, words.Errorf("reach lab %s: %w", name, err)
	}
	cred, err := peer(conn)
	if err != nil {
		return nil, errors.Join(words.Errorf("reach lab %s: %w", name, err), conn.Close())
	}
	// Any user can take the name first, and programs are started in what a holder hands over.
	if owner := path.Base(path.Dir(socket)); owner != fmt.Sprint(cred.Uid) {
		return nil, errors.Join(usagef("lab %s: user %d answers for it, not user %s: it is left alone", name,
			cred.Uid, owner), conn.Close())
	}
	return newClient(name, int(cred.Pid), conn), nil
}

func newClient(name string, pid int, conn *net.UnixConn) *client {
	c := &client{name: name, pid: pid, conn: conn, out: json.NewEncoder(conn)}
	c.in = json.NewDecoder(&fileReader{conn, &c.files})
	return c
}

// List finds this user's labs held in this network namespace, sorted by name. Others' are left alone: what they
// answer is not to be trusted. A lab that could not be asked is listed with Error set.
func List() ([]Info, error) {
	text, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return nil, fmt.Errorf("list labs: %w", err)
	}
	list := []Info{} // in JSON [] and not null
	for _, socket := range parseSockets(string(text), os.Geteuid()) {
		list = append(list, inquire(socket))
	}
	slices.SortFunc(list, func(a, b Info) int { return cmp.Compare(a.Name, b.Name) })
	return list, nil
}

func inquire(socket string) Info {
	c, err := connect(socket)
	if err != nil {
		return Info{Name: path.Base(socket), Nodes: []string{}, Error: err.Error(), Why: err}
	}
	defer c.conn.Close()
	var told heldLab
	if err := c.ask(request{Do: describe}, &told); err != nil {
		return Info{Name: c.name, Nodes: []string{}, PID: c.pid, Error: err.Error(), Why: err}
	}
	return Info{Name: c.name, Topology: told.Facts.Topology, Nodes: told.Facts.Nodes, PID: c.pid}
}

// Down takes a held lab down and waits, until ctx ends, for its holder to be
// gone. The error is a *UsageError if there is no such lab.
func Down(ctx context.Context, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	c, err := connect(socketName(os.Geteuid(), name))
	if err != nil {
		return err
	}
	defer c.conn.Close()
	process, pidErr := unix.PidfdOpen(c.pid, 0) // before it can end and its number be used again
	if pidErr == nil {
		defer unix.Close(process)
	}
	ending := func(err error) bool {
		return errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE) || errors.Is(err, io.EOF)
	}
	if err := c.ask(request{Do: down}, nil); err != nil && !ending(err) {
		return words.Errorf("take down lab %s: %w", name, err)
	}
	defer context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(time.Now()) })()
	_, err = io.Copy(io.Discard, c.conn) // the holder ends the connection when the lab is closed
	for ctx.Err() == nil && pidErr == nil && c.pid != os.Getpid() {
		const slice = 50 // ms between looks at ctx; the end of a process makes its pidfd readable
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(process), Events: unix.POLLIN}}, slice)
		if n > 0 {
			return nil
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return words.Errorf("take down lab %s: %w", name, err)
		}
	}
	if ctx.Err() != nil {
		return words.Errorf("take down lab %s: process %d, which keeps it up, has not ended: %w", name, c.pid,
			errors.Join(ctx.Err(), err))
	}
	return nil
}
