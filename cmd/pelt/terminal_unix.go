//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
}

// terminal returns the columns of f and whether it takes colour; 100 columns without colour if it is no terminal.
func terminal(f *os.File) (columns int, colour bool) {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 {
		return 100, false
	}
	return int(size.Col), os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// terminalRows returns the rows of f; 24 if it is no terminal.
func terminalRows(f *os.File) int {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Row == 0 {
		return 24
	}
	return int(size.Row)
}
