//go:build !(mips || mipsle || mips64 || mips64le)

package store

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"testing"
	"time"
)

// rows counts what the index holds.
func rows(t *testing.T, s *Store) (n int) {
	t.Helper()
	err := s.withIndex("ro", func(ctx context.Context, db *sql.DB) error {
		return db.QueryRowContext(ctx, "SELECT count(*) FROM run").Scan(&n)
	})
	if err != nil {
		t.Fatalf("read the index: %v", err)
	}
	return n
}

func list(t *testing.T, s *Store) []Summary {
	t.Helper()
	l, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestIndexFollowsTheFiles(t *testing.T) {
	s := open(t)
	if l := list(t, s); len(l) != 0 {
		t.Fatalf("an empty store lists %v", l)
	}
	if _, err := os.Stat(s.dir); err == nil {
		t.Error("listing an empty store made its directory")
	}
	a, b := stored(t, s, "fine"), stored(t, s)
	first := list(t, s)
	want := []Summary{
		{ID: a, Started: document().Started, Command: "curve", Target: "lab:router", Trials: 2, State: Complete, Headline: "fine"},
		{ID: b, Started: document().Started, Command: "curve", Target: "lab:router", Trials: 2, State: Cut},
	}
	if !reflect.DeepEqual(first, want) {
		t.Errorf("List:\n got %+v\nwant %+v", first, want)
	}
	if n := rows(t, s); n != 2 {
		t.Errorf("%d rows, want 2", n)
	}
	files, err := s.entries()
	if err != nil {
		t.Fatal(err)
	}
	if known := s.readIndex(files); len(known) != 2 || !reflect.DeepEqual(known[files[0]], want[0]) {
		t.Errorf("the index knows %+v", known)
	}
	if err := os.Remove(s.file(a)); err != nil {
		t.Fatal(err)
	}
	r, _, err := s.Resume(b)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Append(result(64, 1)); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if l := list(t, s); len(l) != 1 || l[0].Trials != 3 || rows(t, s) != 1 {
		t.Errorf("after a removal and an append: %+v, %d rows", l, rows(t, s))
	}
}

func TestBrokenIndex(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, s *Store){
		"missing": func(t *testing.T, s *Store) {
			if err := os.Remove(s.indexFile()); err != nil {
				t.Fatal(err)
			}
		},
		"garbage": func(t *testing.T, s *Store) {
			write(t, s, []byte("this is no database, and it is long enough to be read as one, surely."))
		},
		"empty": func(t *testing.T, s *Store) { write(t, s, nil) },
		"half zero": func(t *testing.T, s *Store) {
			b, err := os.ReadFile(s.indexFile())
			if err != nil {
				t.Fatal(err)
			}
			clear(b[100:])
			write(t, s, b)
		},
		"another schema": func(t *testing.T, s *Store) {
			err := s.withIndex("rwc", func(ctx context.Context, db *sql.DB) error {
				_, err := db.ExecContext(ctx, "DROP TABLE run; CREATE TABLE run (x); PRAGMA user_version = 7")
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			stored(t, s, "fine")
			stored(t, s)
			want := list(t, s)
			spoil(t, s)
			if got := list(t, s); !reflect.DeepEqual(got, want) {
				t.Errorf("List with a spoilt index:\n got %+v\nwant %+v", got, want)
			}
			if n := rows(t, s); n != 2 {
				t.Errorf("the index was not rebuilt: %d rows", n)
			}
		})
	}
}

func write(t *testing.T, s *Store, b []byte) {
	t.Helper()
	if err := os.WriteFile(s.indexFile(), b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestUselessIndexPlace(t *testing.T) {
	s := open(t)
	if err := os.MkdirAll(filepath.Join(s.indexFile(), "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	stored(t, s, "fine")
	if l := list(t, s); len(l) != 1 || l[0].Headline != "fine" {
		t.Errorf("with a directory in the index's place: %+v", l)
	}
}

func TestLockedIndex(t *testing.T) {
	s := open(t)
	stored(t, s, "fine")
	list(t, s)
	err := s.withIndex("rwc", func(ctx context.Context, db *sql.DB) error {
		if _, err := db.ExecContext(ctx, "BEGIN EXCLUSIVE"); err != nil {
			return err
		}
		stored(t, s)
		hasty := &Store{dir: s.dir, indexTime: 300 * time.Millisecond}
		if l := list(t, hasty); len(l) != 2 {
			t.Errorf("with a locked index: %+v", l)
		}
		_, err := db.ExecContext(ctx, "ROLLBACK")
		return err
	})
	if err != nil {
		t.Fatal("lock the index:", err)
	}
	if l := list(t, s); len(l) != 2 || rows(t, s) != 2 {
		t.Errorf("after the lock: %+v, %d rows", l, rows(t, s))
	}
}

func TestManyAtOnce(t *testing.T) {
	s := open(t)
	var all sync.WaitGroup
	for range 4 {
		other := openAt(t, s.dir)
		all.Go(func() {
			for range 5 {
				stored(t, other, "fine")
				if _, err := other.List(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if l := list(t, s); len(l) != 20 || rows(t, s) != 20 {
		t.Errorf("%d runs, %d rows, want 20", len(l), rows(t, s))
	}
}
