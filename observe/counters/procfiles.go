package counters

import (
	"bytes"
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
	negative := len(text) > 1 && text[0] == '-'
	if negative {
		text = text[1:]
	}
	if len(text) == 0 {
		return 0, false
	}
	n := uint64(0)
	for _, c := range text {
		d := uint64(c - '0')
		if d > 9 || n > (math.MaxUint64-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	if negative {
		n = 0
	}
	return n, true
}

// hex reads a hexadecimal number without a prefix.
func hex(text []byte) (uint64, bool) {
	if len(text) == 0 || len(text) > 16 {
		return 0, false
	}
	n := uint64(0)
	for _, c := range text {
		d := uint64(0)
		switch {
		case c >= '0' && c <= '9':
			d = uint64(c - '0')
		case c >= 'a' && c <= 'f':
			d = uint64(c-'a') + 10
		case c >= 'A' && c <= 'F':
			d = uint64(c-'A') + 10
		default:
			return 0, false
		}
		n = n<<4 | d
	}
	return n, true
}

func cutLine(b []byte) (line, rest []byte) {
	line, rest, _ = bytes.Cut(b, []byte("\n"))
	return line, rest
}

// cutField takes the first word off a line; it is empty at the end.
func cutField(line []byte) (field, rest []byte) {
	start := 0
	for start < len(line) && (line[start] == ' ' || line[start] == '\t') {
		start++
	}
	end := start
	for end < len(line) && line[end] != ' ' && line[end] != '\t' {
		end++
	}
	return line[start:end], line[end:]
}

// parsePairs reads /proc/net/snmp or netstat: lines in pairs, names over values,
// each after the group's name and a colon. It goes on past what is broken and
// returns the first fault.
func parsePairs(b []byte, emit func(group, name []byte, value uint64)) (fault error) {
	note := func(err error) {
		if fault == nil {
			fault = err
		}
	}
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
			note(fmt.Errorf("line %.40q is not followed by its values", group))
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
					note(fmt.Errorf("%.40s: not as many values as names", group))
				}
				break
			}
			n, ok := number(value)
			if !ok {
				note(fmt.Errorf("%.40s.%.40s is %.40q, not a number", group, name, value))
				continue
			}
			emit(group, name, n)
		}
	}
	return fault
}

// parseSNMP6 reads /proc/net/snmp6: a name and a value a line, the group's name
// being what ends in the first 6.
func parseSNMP6(b []byte, emit func(group, name []byte, value uint64)) (fault error) {
	for len(b) > 0 {
		var line []byte
		line, b = cutLine(b)
		name, rest := cutField(line)
		if len(name) == 0 {
			continue
		}
		value, _ := cutField(rest)
		n, ok := number(value)
		if !ok {
			if fault == nil {
				fault = fmt.Errorf("%.40q is %.40q, not a number", name, value)
			}
			continue
		}
		if six := bytes.IndexByte(name, '6'); six >= 0 {
			emit(name[:six+1], name[six+1:], n)
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
		for i := 0; ; i++ {
			var field []byte
			field, line = cutField(line)
			if len(field) == 0 {
				row.given = i
				break
			}
			v, ok := hex(field)
			if !ok || v > math.MaxUint32 {
				if fault == nil {
					fault = fmt.Errorf("row %d, column %d is %.40q, not a 32-bit hexadecimal number", n+1, i+1, field)
				}
				row.given = 0
				break
			}
			switch {
			case i < len(row.values):
				row.values[i] = uint32(v)
			case i == 12:
				row.cpu = v
			}
		}
		switch {
		case row.given >= 2:
			rows = append(rows, row)
			n++
		case row.given == 1 && fault == nil:
			fault = fmt.Errorf("row %d has one column only", n+1)
		}
	}
	if len(rows) == 0 && fault == nil {
		fault = errors.New("no processor listed")
	}
	return rows, fault
}

// parseStat reads a file of /proc/net/stat: a line of column names, then a row
// of hexadecimal numbers for each processor.
func parseStat(b []byte, emit func(column []byte, row uint64, value uint64)) (fault error) {
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
			v, ok := hex(field)
			if !ok {
				if fault == nil {
					fault = fmt.Errorf("row %d, %.40s is %.40q, not a hexadecimal number", row+1, name, field)
				}
				continue
			}
			emit(name, row, v)
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
	for len(b) > 0 {
		var line []byte
		line, b = cutLine(b)
		whole := line
		var local, inode, drops []byte
		columns := 0
		for {
			var field []byte
			field, line = cutField(line)
			if len(field) == 0 {
				break
			}
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
		if columns == 0 || columns == dropsColumn || len(drops) == 1 && drops[0] == '0' {
			continue
		}
		port, ok1 := hex(local[bytes.IndexByte(local, ':')+1:])
		i, ok2 := number(inode)
		n, ok3 := number(drops)
		if !ok1 || !ok2 || !ok3 || port > math.MaxUint16 {
			if fault == nil {
				fault = fmt.Errorf("line %.60q does not name a socket and its drops", whole)
			}
			continue
		}
		emit(uint16(port), i, n)
	}
	return fault
}

// parseSockstat reads /proc/net/sockstat: a name and a colon, then keys and values.
func parseSockstat(b []byte, emit func(group, key []byte, value uint64)) {
	for len(b) > 0 {
		var line []byte
		line, b = cutLine(b)
		group, line, ok := bytes.Cut(line, []byte(":"))
		for ok {
			var key, value []byte
			key, line = cutField(line)
			value, line = cutField(line)
			n, isNumber := number(value)
			if !isNumber {
				break
			}
			emit(group, key, n)
		}
	}
}
