// Package disk keeps a record in a file while it is made: blocks are appended
// whole, and at the latest a second after one was given it is on the disk, so that
// kill -9 costs nothing that was given, a power cut no more than the last second,
// and either leaves a file that can be read.
//
// Blocks come in, a file goes out. The package knows nothing of what is in them.
package disk

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"pelt/internal/outfile"
)

// syncEvery bounds what a power cut costs.
const syncEvery = time.Second

// Key names whose account a block is in.
type Key struct {
	Trial uint32
	Flow  uint16
}

// Written is what of one account is in the file.
type Written struct {
	Packets uint64
	Bytes   uint64
}

// File is a record that is being written. Its methods may be called concurrently.
type File struct {
	f *os.File

	mu      sync.Mutex
	length  int64 // of all whole blocks
	written map[Key]Written
	due     *time.Timer // of the next sync; nil while all is on the disk
	broken  error       // why nothing more is written
}

// Create makes a file, or empties one that is there, and writes what opens it.
// When it returns that much is on the disk.
func Create(path string, opening []byte) (*File, error) {
	f, err := outfile.Create(path)
	if err != nil {
		return nil, fmt.Errorf("record %s: %w", path, outfile.Cause(err))
	}
	d := &File{f: f, length: int64(len(opening)), written: map[Key]Written{}}
	_, err = f.Write(opening)
	if err == nil {
		err = d.sync()
	}
	if err == nil {
		err = outfile.SyncDir(filepath.Dir(path))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("record %s: %w", path, outfile.Cause(err)), f.Close())
	}
	return d, nil
}

// sync puts on the disk what was written; pipes and devices have none.
func (d *File) sync() error {
	err := d.f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// Append writes a block that holds so many packets. It drops the block once the file is
// broken; [File.Written] tells what is in it.
func (d *File) Append(k Key, packets int, block []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.broken != nil {
		return
	}
	if _, err := d.f.Write(block); err != nil {
		d.broken = outfile.Cause(err)
		_ = d.f.Truncate(d.length) // if this fails too, a reader stops at the torn block
		return
	}
	d.length += int64(len(block))
	w := d.written[k]
	d.written[k] = Written{w.Packets + uint64(packets), w.Bytes + uint64(len(block))}
	if d.due == nil {
		d.due = time.AfterFunc(syncEvery, d.syncDue)
	}
}

// syncDue runs beside Append: what is written meanwhile waits for the next sync.
func (d *File) syncDue() {
	d.mu.Lock()
	d.due = nil
	d.mu.Unlock()
	if err := d.sync(); err != nil {
		d.mu.Lock()
		d.broken = cmp.Or(d.broken, outfile.Cause(err))
		d.mu.Unlock()
	}
}

// Written tells what of an account is in the file.
func (d *File) Written(k Key) Written {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.written[k]
}

// Broken says why the file takes no more, nil while it does.
func (d *File) Broken() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.broken
}

// Close syncs and closes the file; its error is why a part of what was given is not in it.
func (d *File) Close() error {
	d.mu.Lock()
	if d.due != nil {
		d.due.Stop()
	}
	d.mu.Unlock()
	err := cmp.Or(d.Broken(), outfile.Cause(d.sync()))
	return errors.Join(err, d.f.Close())
}
