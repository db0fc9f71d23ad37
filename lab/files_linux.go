package lab

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// filesPerMessage is how many files the kernel passes at once: SCM_MAX_FD, include/net/scm.h.
const filesPerMessage = 253

// sendFiles hands open files to the process at the other end, with white space that JSON skips.
func sendFiles(conn *net.UnixConn, files []*os.File) error {
	for some := range slices.Chunk(files, filesPerMessage) {
		numbers := make([]int, len(some))
		for i, f := range some {
			numbers[i] = int(f.Fd())
		}
		if _, _, err := conn.WriteMsgUnix([]byte(" "), unix.UnixRights(numbers...), nil); err != nil {
			return fmt.Errorf("hand over %d open files: %w", len(files), err)
		}
	}
	return nil
}

// fileReader reads a connection and keeps the files that come with what it reads. They are closed on exec, as net asks
// for.
type fileReader struct {
	conn  *net.UnixConn
	files *[]*os.File
}

// Read reads the bytes. The error says so if this process may not have all of the files.
func (r *fileReader) Read(p []byte) (int, error) {
	control := make([]byte, unix.CmsgSpace(filesPerMessage*4)) // 4 B each
	n, controlBytes, flags, _, err := r.conn.ReadMsgUnix(p, control)
	if err != nil {
		return 0, err // n may be -1
	}
	messages, err := unix.ParseSocketControlMessage(control[:controlBytes])
	for _, m := range messages {
		numbers, notFiles := unix.ParseUnixRights(&m)
		err = errors.Join(err, notFiles)
		for _, fd := range numbers {
			*r.files = append(*r.files, os.NewFile(uintptr(fd), "a file of the holder"))
		}
	}
	if flags&unix.MSG_CTRUNC != 0 {
		err = errors.Join(err,
			errors.New("this process may not open as many files as the lab has namespaces; "+
				"raise the limit (ulimit -n)"))
	}
	return n, err
}
