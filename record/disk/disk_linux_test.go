package disk

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"pelt/internal/testenv"
)

func TestBlocksAreInTheFileInOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "record")
	testenv.Must(t, os.WriteFile(path, []byte("what was there before"), 0o600))
	f, err := Create(path, []byte("head"))
	testenv.Must(t, err)
	if b, err := os.ReadFile(path); err != nil || string(b) != "head" {
		t.Fatalf("after Create it holds %q, %v", b, err)
	}
	want := []byte("head")
	for i := range byte(100) {
		block := bytes.Repeat([]byte{i}, int(i))
		want = append(want, block...)
		f.Append(Key{Trial: uint32(i % 2)}, int(i), block)
	}
	if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, want) {
		t.Fatalf("it holds %d B, want %d, %v", len(b), len(want), err)
	}
	even, odd := f.Written(Key{Trial: 0}), f.Written(Key{Trial: 1})
	if even != (Written{2450, 2450}) || odd != (Written{2500, 2500}) {
		t.Errorf("accounts %+v and %+v", even, odd)
	}
	testenv.Must(t, f.Close())
}

// A file that may grow no further stands for a disk that is full.
func TestAFullDiskLeavesWholeBlocks(t *testing.T) {
	var before syscall.Rlimit
	testenv.Must(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before))
	limit := before
	limit.Cur = 100_000
	path := filepath.Join(t.TempDir(), "record")
	f, err := Create(path, []byte("head"))
	testenv.Must(t, err)
	testenv.Must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
	defer func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
			t.Error(err)
		}
	}()
	block := bytes.Repeat([]byte("b"), 999)
	for range 300 {
		f.Append(Key{}, 1, block)
	}
	if !errors.Is(f.Broken(), syscall.EFBIG) {
		t.Fatalf("it is broken by %v, want %v", f.Broken(), syscall.EFBIG)
	}
	info, err := os.Stat(path)
	testenv.Must(t, err)
	w := f.Written(Key{})
	if w.Packets == 0 || w.Packets >= 300 || info.Size() != 4+int64(w.Packets)*999 {
		t.Errorf("the file has %d B, the account %d blocks of 999 B", info.Size(), w.Packets)
	}
	if err := f.Close(); !errors.Is(err, syscall.EFBIG) {
		t.Errorf("closed with %v", err)
	}
}

// What was given is on the disk a second later, whether more comes or not.
func TestSyncs(t *testing.T) {
	f, err := Create(filepath.Join(t.TempDir(), "record"), nil)
	testenv.Must(t, err)
	defer f.Close()
	f.Append(Key{}, 1, []byte("block"))
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		f.mu.Lock()
		due := f.due
		f.mu.Unlock()
		if due == nil {
			return
		}
		if time.Since(begun) > testenv.Patience {
			t.Fatal("the sync is still due")
		}
	}
}

func TestManyWriters(t *testing.T) {
	f, err := Create(filepath.Join(t.TempDir(), "record"), nil)
	testenv.Must(t, err)
	var done sync.WaitGroup
	for range 4 {
		done.Go(func() {
			for range 1000 {
				f.Append(Key{}, 1, make([]byte, 100))
			}
		})
	}
	done.Wait()
	testenv.Must(t, f.Close())
	if w := f.Written(Key{}); w != (Written{4000, 400_000}) {
		t.Errorf("written %+v", w)
	}
}

func TestNoSuchDirectory(t *testing.T) {
	if _, err := Create(filepath.Join(t.TempDir(), "none", "record"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}
