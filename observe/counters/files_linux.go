package counters

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// procFile is a kernel file that stays open: it belongs to the namespace in
// which it was opened, whichever thread reads it.
type procFile struct {
	*os.File
	what  string
	parse func(r *Reader, s *Snapshot, b []byte) error
}

// maxFile bounds what is read of one file: some 100 B for each socket of
// /proc/net/udp, of which there may be many.
const maxFile = 16 << 20

var errLong = errors.New("longer than 16 MiB")

// netFiles are the files of a namespace. The optional ones are absent where the
// kernel lacks the protocol or the module.
var netFiles = []struct {
	name     string
	optional bool
	parse    func(r *Reader, s *Snapshot, b []byte) error
}{
	{"snmp", false, readPairs},
	{"snmp6", true, func(r *Reader, s *Snapshot, b []byte) error { return parseSNMP6(b, r.cache.addNamed(s)) }},
	{"netstat", false, readPairs},
	{"softnet_stat", false, func(r *Reader, s *Snapshot, b []byte) error {
		rows, err := parseSoftnet(b)
		r.cache.readSoftnet(s, rows)
		return err
	}},
	{"udp", false, readSockets("udp")},
	{"udp6", true, readSockets("udp6")},
}

// openFiles opens the files of the calling thread's namespace. /proc/net is the
// one of the process, hence thread-self.
func (r *Reader) openFiles() {
	for _, f := range netFiles {
		file, err := os.Open("/proc/thread-self/net/" + f.name)
		switch {
		case err == nil:
			r.files = append(r.files, procFile{file, f.name, f.parse})
		case !f.optional || !errors.Is(err, fs.ErrNotExist):
			r.lacks(f.name, err)
		}
	}
	// The neighbour tables count for all namespaces together, in files that only
	// the first one has (net/core/neighbour.c, neigh_table_init).
	for _, table := range []string{"arp_cache", "ndisc_cache"} {
		var file *os.File
		var err error
		for _, task := range []string{"thread-self", "self", "1"} {
			if file, err = os.Open("/proc/" + task + "/net/stat/" + table); err == nil {
				break
			}
		}
		if err != nil {
			if table == "arp_cache" || !errors.Is(err, fs.ErrNotExist) {
				r.lacks(table, err)
			}
			continue
		}
		r.hostwide = append(r.hostwide, procFile{file, table, readNeighbours(table)})
	}
}

func readNeighbours(table string) func(*Reader, *Snapshot, []byte) error {
	return func(r *Reader, s *Snapshot, b []byte) error {
		known := r.cache.single[table+".unresolved_discards"]
		return parseStat(b, func(column []byte, row, value uint64) {
			if string(column) == "unresolved_discards" {
				s.readings = append(s.readings, reading{known, row, value})
			}
		})
	}
}

func readPairs(r *Reader, s *Snapshot, b []byte) error { return parsePairs(b, r.cache.addNamed(s)) }

func readSockets(file string) func(*Reader, *Snapshot, []byte) error {
	return func(r *Reader, s *Snapshot, b []byte) error {
		return parseSockets(b, func(port uint16, inode, drops uint64) {
			r.cache.readSocket(s, file, port, inode, drops)
		})
	}
}

func (r *Reader) readFiles(s *Snapshot) {
	for _, files := range [][]procFile{r.files, r.hostwide} {
		for _, f := range files {
			b, err := r.content(f.File)
			if err == nil {
				err = f.parse(r, s, b)
			}
			if err != nil {
				s.lacks(f.what, err)
			}
		}
	}
}

// content reads a file from its beginning into the Reader's buffer.
func (r *Reader) content(f *os.File) ([]byte, error) {
	for n := 0; ; {
		if n == len(r.buffer) {
			if n >= maxFile {
				return nil, errLong
			}
			r.buffer = append(r.buffer, make([]byte, n)...)
		}
		got, err := f.ReadAt(r.buffer[n:], int64(n))
		n += got
		if errors.Is(err, io.EOF) {
			return r.buffer[:n], nil
		}
		if err != nil {
			return nil, err
		}
	}
}
