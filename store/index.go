//go:build !(mips || mipsle || mips64 || mips64le)

package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite"
)

// schemaVersion is PRAGMA user_version of the index; any other is rebuilt.
const schemaVersion = 1

// Result codes of SQLite that only a new file can cure: https://sqlite.org/rescode.html
const (
	codeCorrupt = 11 // SQLITE_CORRUPT
	codeNotADB  = 26 // SQLITE_NOTADB
)

const schema = `
DROP TABLE IF EXISTS run;
CREATE TABLE run (
  id          TEXT PRIMARY KEY,
  size        INTEGER NOT NULL, -- of the file, bytes
  modified    INTEGER NOT NULL, -- of the file, ns since 1970
  started     TEXT NOT NULL,    -- RFC 3339
  command     TEXT NOT NULL,
  target      TEXT NOT NULL,
  trials      INTEGER NOT NULL,
  state       TEXT NOT NULL,
  headline    TEXT NOT NULL
);
PRAGMA user_version = 1;`

// readIndex returns the summaries of files that have not changed since they
// were indexed. Whatever is wrong with the index, the answer is fewer of them.
func (s *Store) readIndex(files []entry) map[entry]Summary {
	known := map[entry]Summary{}
	if _, err := os.Stat(s.indexFile()); err != nil || len(files) == 0 {
		return known
	}
	err := s.withIndex("ro", func(ctx context.Context, db *sql.DB) error {
		rows, err := db.QueryContext(ctx, "SELECT id, size, modified, started, command, target, trials, state, headline FROM run")
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var e entry
			var sum Summary
			var started string
			if err := rows.Scan(&e.id, &e.size, &e.modified, &started, &sum.Command, &sum.Target, &sum.Trials, &sum.State, &sum.Headline); err != nil {
				return err
			}
			sum.ID = e.id
			if sum.Started, err = time.Parse(time.RFC3339Nano, started); err != nil {
				continue
			}
			known[e] = sum
		}
		return rows.Err()
	})
	if err != nil {
		return map[entry]Summary{}
	}
	return known
}

// writeIndex brings the index up to date, and makes it anew if it is beyond
// repair. It returns nothing: without an index everything works.
func (s *Store) writeIndex(files []entry, fresh map[entry]Summary) {
	if len(fresh) == 0 && len(files) > 0 {
		return
	}
	if info, err := os.Lstat(s.indexFile()); err == nil && !info.Mode().IsRegular() || len(files) == 0 && err != nil {
		return
	}
	update := func(ctx context.Context, db *sql.DB) error { return updateIndex(ctx, db, files, fresh) }
	err := s.withIndex("rwc", update)
	var broken *sqlite.Error
	if errors.As(err, &broken) && (broken.Code()&0xff == codeCorrupt || broken.Code()&0xff == codeNotADB) {
		for _, extra := range []string{"", "-journal", "-wal", "-shm"} {
			if err := os.Remove(s.indexFile() + extra); err != nil && !errors.Is(err, os.ErrNotExist) {
				return
			}
		}
		_ = s.withIndex("rwc", update)
	}
}

func updateIndex(ctx context.Context, db *sql.DB, files []entry, fresh map[entry]Summary) (err error) {
	var version int
	if err := db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, tx.Rollback())
		}
	}()
	if version != schemaVersion {
		if _, err := tx.ExecContext(ctx, schema); err != nil {
			return err
		}
	}
	for e, sum := range fresh {
		_, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO run VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
			e.id, e.size, e.modified, sum.Started.UTC().Format(time.RFC3339Nano), sum.Command, sum.Target, sum.Trials, sum.State, sum.Headline)
		if err != nil {
			return err
		}
	}
	if err := forget(ctx, tx, files); err != nil {
		return err
	}
	return tx.Commit()
}

// forget drops the rows of runs whose file is gone.
func forget(ctx context.Context, tx *sql.Tx, files []entry) error {
	var count int
	if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM run").Scan(&count); err != nil || count <= len(files) {
		return err
	}
	there := map[string]bool{}
	for _, e := range files {
		there[e.id] = true
	}
	rows, err := tx.QueryContext(ctx, "SELECT id FROM run")
	if err != nil {
		return err
	}
	var gone []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return errors.Join(err, rows.Close())
		}
		if !there[id] {
			gone = append(gone, id)
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	for _, id := range gone {
		if _, err := tx.ExecContext(ctx, "DELETE FROM run WHERE id = ?", id); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) withIndex(mode string, f func(context.Context, *sql.DB) error) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), s.indexTime)
	defer cancel()
	path := filepath.ToSlash(s.indexFile())
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/... : https://sqlite.org/uri.html
	}
	name := url.URL{Scheme: "file", Path: path,
		RawQuery: url.Values{"mode": {mode}, "_pragma": {fmt.Sprintf("busy_timeout(%d)", (s.indexTime / 3).Milliseconds())}, "_txlock": {"immediate"}}.Encode()}
	db, err := sql.Open("sqlite", name.String())
	if err != nil {
		return fmt.Errorf("open index: %w", err)
	}
	db.SetMaxOpenConns(1)
	return errors.Join(f(ctx, db), db.Close())
}
