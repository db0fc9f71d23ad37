//go:build !unix

package main

import "os"

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func terminal(*os.File) (columns, rows int, colour bool) { return noTerminal() }
