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

// terminal returns the columns and rows of f, and whether it takes colour; see noTerminal.
func terminal(f *os.File) (columns, rows int, colour bool) {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 || size.Row == 0 {
		return noTerminal()
	}
	return int(size.Col), int(size.Row), os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
