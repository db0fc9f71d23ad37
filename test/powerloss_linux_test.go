package test

import (
	"bufio"
	"bytes"
	bytesOrder "encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pelt/internal/peltproc"
	"pelt/internal/testenv"
	"pelt/model"
)

// diskBytes is the size of the disk: room for ext4, its journal and a run.
const diskBytes = 16 << 20

// disk is a disk whose write cache is lost with the power: a file over FUSE, below a loop device. A write is safe once the
// kernel has flushed what came before it.
type disk struct {
	initial []byte

	mu   sync.Mutex
	now  []byte // with all writes
	done []diskWrite
}

// diskWrite without data is a flush.
type diskWrite struct {
	at   int64
	data []byte
}

// writes is how many writes and flushes there were so far.
func (d *disk) writes() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.done)
}

// after is what the disk holds when the power goes after so many writes: all that was flushed, and of the rest what chance
// had brought there.
func (d *disk) after(writes int) []byte {
	image := bytes.Clone(d.initial)
	flushed := 0
	for i, w := range d.done[:writes] {
		if w.data == nil {
			flushed = i
		}
	}
	for i, w := range d.done[:writes] {
		if i < flushed || rand.IntN(2) == 0 {
			copy(image[w.at:], w.data)
		}
	}
	return image
}

// serve answers the kernel's FUSE requests until the file is unmounted.
func (d *disk) serve(fuse int) error {
	const (
		getattr, setattr, open, read, write, statfs, release, fsync, flush, initialize = 3, 4, 14, 15, 16, 17, 18, 20, 25, 26
		forget, interrupt, batchForget                                                 = 2, 36, 42
		header                                                                         = 40
	)
	le := bytesOrder.LittleEndian
	attributes := make([]byte, 104)
	le.PutUint64(attributes, 3600) // seconds that they hold
	le.PutUint64(attributes[16:], 1)
	le.PutUint64(attributes[24:], diskBytes)
	le.PutUint32(attributes[76:], unix.S_IFREG|0o600)
	le.PutUint32(attributes[80:], 1)
	in := make([]byte, 1<<20)
	for {
		n, err := unix.Read(fuse, in)
		switch {
		case errors.Is(err, unix.ENODEV):
			return nil
		case errors.Is(err, unix.EINTR) || errors.Is(err, unix.ENOENT): // ENOENT: the request was taken back
			continue
		case errors.Is(err, unix.EPERM): // not mounted yet
			time.Sleep(time.Millisecond)
			continue
		case err != nil:
			return err
		}
		body, answer, status := in[header:n], []byte{}, int32(0)
		switch le.Uint32(in[4:]) {
		case forget, interrupt, batchForget:
			continue
		case initialize:
			answer = make([]byte, 64)
			le.PutUint32(answer, 7)
			le.PutUint32(answer[4:], 31)
			le.PutUint32(answer[12:], 1<<5) // writes of more than a page
			le.PutUint32(answer[20:], 128<<10)
		case getattr, setattr:
			answer = attributes
		case open:
			answer = make([]byte, 16)
		case statfs:
			answer = make([]byte, 80)
		case read:
			from, size := le.Uint64(body[8:]), uint64(le.Uint32(body[16:]))
			answer = d.now[min(from, diskBytes):min(from+size, diskBytes)]
		case write:
			w := diskWrite{int64(le.Uint64(body[8:])), bytes.Clone(body[40:])}
			d.note(w)
			answer = make([]byte, 8)
			le.PutUint32(answer, uint32(len(w.data)))
		case fsync:
			d.note(diskWrite{})
		case flush, release:
		default:
			status = -int32(unix.ENOSYS)
		}
		out := make([]byte, 16, 16+len(answer))
		le.PutUint32(out, uint32(cap(out)))
		le.PutUint32(out[4:], uint32(status))
		copy(out[8:16], in[8:16])
		if _, err := unix.Write(fuse, append(out, answer...)); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
}

func (d *disk) note(w diskWrite) {
	d.mu.Lock()
	defer d.mu.Unlock()
	copy(d.now[w.at:], w.data)
	d.done = append(d.done, w)
}

// apart starts a shell script in a mount namespace of its own, with $WORK, $DATA and $PELT.
func apart(t *testing.T, work, script string) *exec.Cmd {
	t.Helper()
	c := exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-ec", script)
	c.Env = append(os.Environ(), "WORK="+work, "PELT_DATA="+filepath.Join(work, "data"), "PELT="+peltproc.Binary)
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return c
}

// TestNightlyPowerLoss takes the power away at random moments of a run: every trial that was told as finished is still there, and
// what is there can be read.
func TestNightlyPowerLoss(t *testing.T) {
	testenv.Nightly(t)
	t.Parallel()
	testenv.Root(t)
	testenv.Tool(t, "unshare", "mount", "mkfs.ext4")
	const losses = 40
	work := t.TempDir()
	image := filepath.Join(work, "image")
	if err := errors.Join(os.WriteFile(image, make([]byte, diskBytes), 0o600), os.WriteFile(filepath.Join(work, "file"), nil, 0o600),
		os.Mkdir(filepath.Join(work, "data"), 0o700)); err != nil {
		t.Fatal(err)
	}
	output(t, "mkfs.ext4", "-q", "-F", image)
	initial, err := os.ReadFile(image)
	if err != nil {
		t.Fatal(err)
	}
	d := &disk{initial: initial, now: bytes.Clone(initial)}
	told := d.measure(t, work)
	kept := 0
	for range losses {
		writes := told[0] + rand.IntN(len(d.done)-told[0]+1)
		finished := 0
		for finished < len(told) && told[finished] <= writes {
			finished++
		}
		if err := os.WriteFile(image, d.after(writes), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := apart(t, work, "mount -o loop $WORK/image $PELT_DATA; $PELT report last --json -").Output()
		var document model.Document
		if err == nil {
			err = json.Unmarshal(out, &document)
		}
		if err != nil || len(document.Results) < finished {
			t.Errorf("power lost after %d of %d writes: %d of %d finished trials are there, %v", writes, len(d.done),
				len(document.Results), finished, err)
		}
		kept += finished
	}
	t.Logf("%d losses of power in a run of %d trials and %d writes: all %d trials that were told are there",
		losses, len(told), len(d.done), kept)
}

// measure makes a run that is kept on the disk, and returns how many writes there were when each trial was told.
func (d *disk) measure(t *testing.T, work string) (told []int) {
	t.Helper()
	fuse, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		testenv.Lacks(t, "FUSE: %v", err)
	}
	// The server is not in the mount namespace: the kernel writes to the disk while that one ends.
	c := apart(t, work, `mount -i -t fuse -o fd=3,rootmode=100000,user_id=0,group_id=0 disk $WORK/file
		exec 3>&-
		mount -o loop $WORK/file $PELT_DATA
		$PELT curve lab:loopback --payload 64,256 --rate 2kpps --burst 1000 --time 50ms --warmup 0s --repeats 6 || [ $? = 4 ]
		umount $PELT_DATA $WORK/file`)
	c.ExtraFiles = []*os.File{fuse}
	stderr, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { defer fuse.Close(); served <- d.serve(int(fuse.Fd())) }()
	var said bytes.Buffer
	trial := regexp.MustCompile(`^ *\d+/12 `)
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		fmt.Fprintln(&said, lines.Text())
		if trial.MatchString(lines.Text()) {
			told = append(told, d.writes())
		}
	}
	if err := errors.Join(c.Wait(), <-served); err != nil || len(told) != 12 {
		t.Fatalf("%d of 12 trials were told: %v\n%s", len(told), err, &said)
	}
	return told
}
