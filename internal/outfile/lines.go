package outfile

import (
	"bufio"
	"errors"
	"fmt"
	"os"
)

// Lines is a file that grows by whole lines. One process writes it, one call at a time.
type Lines struct {
	*os.File
	Length int64 // of all whole lines
	torn   bool  // part of a line may stand behind them
}

// Append adds lines with one write, and returns when they are on the disk. What is left of
// lines that did not get there whole (a full disk) is cut off at once, and again before the
// next write, in case that was refused too.
func (l *Lines) Append(lines []byte) error {
	if l.torn {
		if err := l.Truncate(l.Length); err != nil {
			return err
		}
	}
	_, err := l.WriteAt(lines, l.Length)
	if err == nil {
		err = l.Sync()
	}
	if l.torn = err != nil; l.torn {
		_ = l.Truncate(l.Length)
		return err
	}
	l.Length += int64(len(lines))
	return nil
}

// ReadLine returns the next line with its newline, of at most so many bytes; at the end of
// the input io.EOF comes with what is left.
func ReadLine(in *bufio.Reader, most int) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > most {
			return nil, fmt.Errorf("is longer than %d bytes", most)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}
