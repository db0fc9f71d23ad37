// Package disk keeps a record in a file while it is made: blocks are appended
// whole, and at the latest a second after one was given it is on the disk, so that
// kill -9 costs no more than the last moment and leaves a file that can be read.
//
// Blocks come in, a file goes out. The package knows nothing of what is in them.
package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const (
	// SyncEvery bounds what a power cut costs.
	SyncEvery = time.Second
	lookEvery = 100 * time.Millisecond
	// maxWaiting is what may wait for a disk that stands still: at three bytes a
	// packet ten seconds of a million packets a second.
	maxWaiting = 32 << 20
)

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

// Cost is what it took to keep the file safe.
type Cost struct {
	Syncs   uint64
	Longest time.Duration // of one
	All     time.Duration
}

// File is a record that is being written. Its methods may be called concurrently.
type File struct {
	f    *os.File
	over sync.WaitGroup
	kick chan struct{} // what waits is wanted in the file now

	mu      sync.Mutex
	news    *sync.Cond
	waiting []byte
	entries []entry // of what waits
	given   uint64  // blocks that were handed over
	done    uint64  // ... that are in the file
	closing bool
	broken  error // why nothing more is written
	length  int64 // of all whole blocks
	written map[Key]Written
	cost    Cost
}

type entry struct {
	Key
	packets, bytes int
}

// Create makes a file, or empties one that is there, and writes what opens it.
// When it returns that much is on the disk.
func Create(path string, opening []byte) (*File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, fmt.Errorf("record %s: %w", path, cause(err))
	}
	d := &File{f: f, kick: make(chan struct{}, 1), written: map[Key]Written{}}
	d.news = sync.NewCond(&d.mu)
	_, err = f.Write(opening)
	if err == nil {
		err = d.sync()
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("record %s: %w", path, cause(err)), f.Close())
	}
	d.length = int64(len(opening))
	d.over.Go(d.work)
	return d, nil
}

func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// sync puts on the disk what was written; pipes and devices have none.
func (d *File) sync() error {
	err := d.f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// Append hands over a block that holds so many packets. It waits while too much
// waits for the disk, and drops the block once the file is broken; [File.Written]
// tells what is in it.
func (d *File) Append(k Key, packets int, block []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.waiting) > maxWaiting && d.broken == nil && !d.closing {
		d.news.Wait()
	}
	if d.broken != nil || d.closing {
		return
	}
	d.waiting = append(d.waiting, block...)
	d.entries = append(d.entries, entry{k, packets, len(block)})
	d.given++
}

// work writes what waits. It gathers it for a moment, so that a fast flow takes few
// system calls.
func (d *File) work() {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	var out []byte
	var entries []entry
	synced, dirty := time.Now(), false
	for {
		d.mu.Lock()
		closing := d.closing
		out, d.waiting = d.waiting, out[:0]
		entries, d.entries = d.entries, entries[:0]
		broken := d.broken
		d.news.Broadcast()
		d.mu.Unlock()
		if len(out) > 0 && broken == nil {
			_, err := d.f.Write(out)
			d.wrote(out, entries, err)
			dirty = dirty || err == nil
		}
		if dirty && (closing || time.Since(synced) >= SyncEvery-2*lookEvery) {
			began := time.Now()
			err := d.sync()
			took := time.Since(began)
			d.mu.Lock()
			d.cost.Syncs++
			d.cost.Longest = max(d.cost.Longest, took)
			d.cost.All += took
			if err != nil && d.broken == nil {
				d.broken = cause(err)
			}
			d.mu.Unlock()
			synced, dirty = time.Now(), false
		}
		d.mu.Lock()
		done := d.closing && len(d.waiting) == 0
		d.mu.Unlock()
		if done && !dirty {
			return
		}
		if closing {
			continue
		}
		select {
		case <-look.C:
		case <-d.kick:
		}
	}
}

// wrote notes what is in the file now. What was written in part is taken off again.
func (d *File) wrote(out []byte, entries []entry, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.news.Broadcast()
	if err != nil {
		d.broken = cause(err)
		_ = d.f.Truncate(d.length) // if this fails too, a reader stops at the torn block
		return
	}
	d.length += int64(len(out))
	d.done += uint64(len(entries))
	for _, e := range entries {
		w := d.written[e.Key]
		w.Packets += uint64(e.packets)
		w.Bytes += uint64(e.bytes)
		d.written[e.Key] = w
	}
}

// Settle waits until all that was handed over before is in the file, or it is broken;
// not for what others hand over meanwhile.
func (d *File) Settle() {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := d.given
	d.wake()
	for d.done < all && d.broken == nil {
		d.news.Wait()
	}
}

func (d *File) wake() {
	select {
	case d.kick <- struct{}{}:
	default:
	}
}

// Written tells what of an account is in the file.
func (d *File) Written(k Key) Written {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.written[k]
}

// Cost tells what syncing took so far.
func (d *File) Cost() Cost {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.cost
}

// Bytes is the length of the file.
func (d *File) Bytes() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.length
}

// Broken says why the file takes no more, nil while it does.
func (d *File) Broken() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.broken
}

// Close writes what waits, syncs and closes the file; its error is why a part of
// what was given is not in it.
func (d *File) Close() error {
	d.mu.Lock()
	d.closing = true
	d.news.Broadcast()
	d.mu.Unlock()
	d.wake()
	d.over.Wait()
	return errors.Join(d.Broken(), d.f.Close())
}
