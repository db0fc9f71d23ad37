//go:build small

package main

// small: see whole.go. The linker leaves out what no command of a small program uses.
const small = true
