package counters

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// longBits is the width of the kernel's unsigned long as far as this program
// can tell; a wider one only makes fewer counters wrap.
const longBits = strconv.IntSize

// number reads a whole number that may carry a minus sign, as MaxConn does;
// negative ones are 0, since no counter is.
func number(text []byte) (uint64, bool) {
	digits, negative := bytes.CutPrefix(text, []byte("-"))
	n, err := strconv.ParseUint(string(digits), 10, 64)
	if negative {
		n = 0
	}
	return n, err == nil
}

// hex reads a hexadecimal number without a prefix.
func hex(text []byte) (uint64, bool) {
	n, err := strconv.ParseUint(string(text), 16, 64)
	return n, err == nil
}

func cutLine(b []byte) (line, rest []byte) {
	line, rest, _ = bytes.Cut(b, []byte("\n"))
	return line, rest
}

// cutField takes the first word off a line; it is empty at the end.
func cutField(line []byte) (field, rest []byte) {
	start := 0
	for start < len(line) && line[start] <= ' ' {
		start++
	}
	end := start
	for end < len(line) && line[end] > ' ' {
		end++
	}
	return line[start:end], line[end:]
}

// parsePairs reads /proc/net/snmp or netstat: lines in pairs, names over values,
// each after the group's name and a colon. It goes on past what is broken and
// returns the first fault.
func parsePairs(b []byte, emit func(group, name []byte, part, value uint64)) (fault error) {
	for len(b) > 0 {
		names, rest := cutLine(b)
		if len(bytes.TrimSpace(names)) == 0 {
			b = rest
			continue
		}
		values, after := cutLine(rest)
		group, names, ok := bytes.Cut(names, []byte(":"))
		again, values, ok2 := bytes.Cut(values, []byte(":"))
		if !ok || !ok2 || !bytes.Equal(group, again) {
			fault = cmp.Or(fault, fmt.Errorf("line %.40q is not followed by its values", group))
			b = rest // perhaps the next line begins a pair
			continue
		}
		b = after
		for {
			var name, value []byte
			name, names = cutField(names)
			value, values = cutField(values)
			if len(name) == 0 || len(value) == 0 {
				if len(name) != len(value) {
					fault = cmp.Or(fault, fmt.Errorf("%.40s: not as many values as names", group))
				}
				break
			}
			if n, ok := number(value); ok {
				emit(group, name, 0, n)
			} else {
				fault = cmp.Or(fault, fmt.Errorf("%.40s.%.40s is %.40q, not a number", group, name, value))
			}
		}
	}
	return fault
}

// parseSNMP6 reads /proc/net/snmp6: a name and a value a line, the group's name
// being what ends in the first 6.
func parseSNMP6(b []byte, emit func(group, name []byte, part, value uint64)) (fault error) {
	for line := range bytes.Lines(b) {
		name, rest := cutField(line)
		if len(name) == 0 {
			continue
		}
		value, _ := cutField(rest)
		n, ok := number(value)
		if six := bytes.IndexByte(name, '6'); !ok {
			fault = cmp.Or(fault, fmt.Errorf("%.40q is %.40q, not a number", name, value))
		} else if six >= 0 {
			emit(name[:six+1], name[six+1:], 0, n)
		}
	}
	return fault
}

// softnetRow is one processor's line of /proc/net/softnet_stat.
type softnetRow struct {
	cpu    uint64
	values [11]uint32 // missing columns are 0
	given  int        // columns there
}

// parseSoftnet reads /proc/net/softnet_stat: columns of 32-bit hexadecimal
// numbers, 9 in old kernels, 10 with RPS (2.6.35), 11 with flow limits (3.11),
// 13 with backlog length and processor (5.10), 15 with both queues (6.3). A
// kernel that does not name the processors lists the online ones in order.
func parseSoftnet(b []byte) (rows []softnetRow, fault error) {
	for n := uint64(0); len(b) > 0; {
		var line []byte
		line, b = cutLine(b)
		row := softnetRow{cpu: n}
		for field := range bytes.FieldsSeq(line) {
			v, ok := hex(field)
			if !ok || v > math.MaxUint32 {
				const format = "row %d, column %d is %.40q, not a 32-bit hexadecimal number"
				fault = cmp.Or(fault, fmt.Errorf(format, n+1, row.given+1, field))
				row.given = 0
				break
			}
			if row.given < len(row.values) {
				row.values[row.given] = uint32(v)
			} else if row.given == 12 {
				row.cpu = v
			}
			row.given++
		}
		if row.given >= 2 {
			rows = append(rows, row)
			n++
		} else if row.given == 1 {
			fault = cmp.Or(fault, fmt.Errorf("row %d has one column only", n+1))
		}
	}
	if len(rows) == 0 {
		fault = cmp.Or(fault, errors.New("no processor listed"))
	}
	return rows, fault
}

// parseStat reads a file of /proc/net/stat: a line of column names, then a row
// of hexadecimal numbers for each processor.
func parseStat(group, b []byte, emit func(group, column []byte, row, value uint64)) (fault error) {
	names, b := cutLine(b)
	for row := uint64(0); len(b) > 0; row++ {
		var line []byte
		line, b = cutLine(b)
		for columns := names; ; {
			var name, field []byte
			name, columns = cutField(columns)
			field, line = cutField(line)
			if len(name) == 0 || len(field) == 0 {
				break
			}
			if v, ok := hex(field); ok {
				emit(group, name, row, v)
			} else {
				const format = "row %d, %.40s is %.40q, not a hexadecimal number"
				fault = cmp.Or(fault, fmt.Errorf(format, row+1, name, field))
			}
		}
	}
	return fault
}

// parseSockets reads the local port, inode and drops of /proc/net/udp or udp6;
// sockets that dropped nothing are passed over. Without the column of drops
// (before Linux 2.6.27) there is nothing to tell.
func parseSockets(b []byte, emit func(port uint16, inode, drops uint64)) (fault error) {
	const (
		localColumn = 1 // address:port in hexadecimal
		inodeColumn = 9
		dropsColumn = 12
	)
	_, b = cutLine(b)
	for line := range bytes.Lines(b) {
		var local, inode, drops []byte
		columns := 0
		for field := range bytes.FieldsSeq(line) {
			switch columns {
			case localColumn:
				local = field
			case inodeColumn:
				inode = field
			case dropsColumn:
				drops = field
			}
			columns++
		}
		if columns == 0 || columns == dropsColumn || string(drops) == "0" {
			continue
		}
		port, ok1 := hex(local[bytes.IndexByte(local, ':')+1:])
		i, ok2 := number(inode)
		n, ok3 := number(drops)
		if !ok1 || !ok2 || !ok3 || port > math.MaxUint16 {
			fault = cmp.Or(fault, fmt.Errorf("line %.60q does not name a socket and its drops", line))
			continue
		}
		emit(uint16(port), i, n)
	}
	return fault
}

// Bounds of /proc/net/dev.
const (
	maxDevName    = 15 // IFNAMSIZ, a byte of which ends the name
	maxDevColumns = 32 // it has 16
)

// parseDev reads /proc/net/dev: two lines of titles, which hold bars, then one for
// each interface.
func parseDev(b []byte, emit func(name []byte, values []uint64)) (fault error) {
	for line := range bytes.Lines(b) {
		if len(bytes.TrimSpace(line)) == 0 || bytes.IndexByte(line, '|') >= 0 {
			continue
		}
		// A name may hold a colon, as eth0:1 did; no value does.
		colon := bytes.LastIndexByte(line, ':')
		name := bytes.TrimSpace(line[:max(colon, 0)])
		if len(name) == 0 || len(name) > maxDevName {
			fault = cmp.Or(fault, fmt.Errorf("line %.60q names no interface", line))
			continue
		}
		values := make([]uint64, 0, 16)
		for field := range bytes.FieldsSeq(line[colon+1:]) {
			n, ok := number(field)
			if !ok {
				fault = cmp.Or(fault, fmt.Errorf("%.40s: %.40q is not a number", name, field))
				values = nil
			}
			if !ok || len(values) == maxDevColumns {
				break
			}
			values = append(values, n)
		}
		if len(values) > 0 {
			emit(name, values)
		}
	}
	return fault
}
