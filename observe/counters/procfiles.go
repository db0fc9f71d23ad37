package counters

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// These parsers go on past what is broken and return the first fault.

// number reads a whole number that may carry a minus sign, as MaxConn does;
// negative ones are 0, since no counter is.
func number(text string) (uint64, bool) {
	digits, negative := strings.CutPrefix(text, "-")
	n, err := strconv.ParseUint(digits, 10, 64)
	if negative {
		n = 0
	}
	return n, err == nil
}

// hex reads a hexadecimal number of so many bits without a prefix.
func hex(text string, bits int) (uint64, bool) {
	n, err := strconv.ParseUint(text, 16, bits)
	return n, err == nil
}

// parsePairs reads /proc/net/snmp or netstat: lines in pairs, names over values, each after the group's name and a
// colon.
func parsePairs(text string, emit func(group, name string, part, value uint64)) (fault error) {
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		names, values := strings.Fields(lines[i]), []string(nil)
		if len(names) == 0 {
			continue
		}
		if i+1 < len(lines) {
			values = strings.Fields(lines[i+1])
		}
		group, ok := strings.CutSuffix(names[0], ":")
		if !ok || len(values) == 0 || values[0] != names[0] {
			fault = cmp.Or(fault, fmt.Errorf("line %.40q is not followed by its values", names[0]))
			continue // perhaps the next line begins a pair
		}
		i++
		if len(names) != len(values) {
			fault = cmp.Or(fault, fmt.Errorf("%.40s: not as many values as names", group))
		}
		for j := 1; j < min(len(names), len(values)); j++ {
			if n, ok := number(values[j]); ok {
				emit(group, names[j], 0, n)
			} else {
				fault = cmp.Or(fault, fmt.Errorf("%.40s.%.40s is %.40q, not a number", group, names[j], values[j]))
			}
		}
	}
	return fault
}

// parseSNMP6 reads /proc/net/snmp6: a name and a value a line, the group's name being what ends in the first 6.
func parseSNMP6(text string, emit func(group, name string, part, value uint64)) (fault error) {
	for line := range strings.Lines(text) {
		words := append(strings.Fields(line), "", "")
		name, value := words[0], words[1]
		if name == "" {
			continue
		}
		n, ok := number(value)
		if six := strings.IndexByte(name, '6'); !ok {
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
func parseSoftnet(text string) (rows []softnetRow, fault error) {
	for line := range strings.Lines(text) {
		row := softnetRow{cpu: uint64(len(rows))}
		for i, field := range strings.Fields(line) {
			v, ok := hex(field, 32)
			if !ok {
				const format = "row %d, column %d is %.40q, not a 32-bit hexadecimal number"
				fault = cmp.Or(fault, fmt.Errorf(format, len(rows)+1, i+1, field))
				row.given = 0
				break
			}
			if i < len(row.values) {
				row.values[i] = uint32(v)
			} else if i == 12 {
				row.cpu = v
			}
			row.given++
		}
		if row.given >= 2 {
			rows = append(rows, row)
		} else if row.given == 1 {
			fault = cmp.Or(fault, fmt.Errorf("row %d has one column only", len(rows)+1))
		}
	}
	if len(rows) == 0 {
		fault = cmp.Or(fault, errors.New("no processor listed"))
	}
	return rows, fault
}

// parseStat reads a file of /proc/net/stat: a line of column names, then a row
// of hexadecimal numbers for each processor.
func parseStat(text string, emit func(column string, row, value uint64)) (fault error) {
	first, rest, _ := strings.Cut(text, "\n")
	names, row := strings.Fields(first), uint64(0)
	for line := range strings.Lines(rest) {
		fields := strings.Fields(line)
		for i := range min(len(names), len(fields)) {
			if v, ok := hex(fields[i], 64); ok {
				emit(names[i], row, v)
			} else {
				const format = "row %d, %.40s is %.40q, not a hexadecimal number"
				fault = cmp.Or(fault, fmt.Errorf(format, row+1, names[i], fields[i]))
			}
		}
		row++
	}
	return fault
}

// Bounds of /proc/net/dev.
const (
	maxDevName    = 15 // IFNAMSIZ, a byte of which ends the name
	maxDevColumns = 32 // it has 16
)

// parseDev reads /proc/net/dev: two lines of titles, which hold bars, then one for each interface.
func parseDev(text string, emit func(name string, values []uint64)) (fault error) {
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == "" || strings.Contains(line, "|") {
			continue
		}
		// A name may hold a colon, as eth0:1 did; no value does.
		colon := strings.LastIndexByte(line, ':')
		name := strings.TrimSpace(line[:max(colon, 0)])
		if name == "" || len(name) > maxDevName {
			fault = cmp.Or(fault, fmt.Errorf("line %.60q names no interface", line))
			continue
		}
		fields := strings.Fields(line[colon+1:])
		var values []uint64
		for _, field := range fields[:min(len(fields), maxDevColumns)] {
			n, ok := number(field)
			if !ok {
				fault = cmp.Or(fault, fmt.Errorf("%.40s: %.40q is not a number", name, field))
				values = nil
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
