package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"pelt/lab"
	fullscreen "pelt/live/screen"
	"pelt/run"
	"pelt/words"
)

// viaUserNamespace runs this same command again as root of an unprivileged user namespace, when the target is a lab
// that this user may not build otherwise. done says that it ran and ended with the code; an error without done says
// why no lab can be had.
func viaUserNamespace(target string, stderr io.Writer) (done bool, err error) {
	if !needsUserNamespace(target) {
		return false, nil
	}
	if ok, why := lab.InUserNamespace(); !ok {
		return false, words.Errorf("no right to make network namespaces: %s", why)
	}
	fmt.Fprintln(stderr, spoken().Say("not root: building the lab in an unprivileged user namespace"))
	back := fullscreen.Remember(os.Stdin, os.Stderr)
	code, err := lab.RunInUserNamespace(os.Args[1:])
	if code > killed {
		back() // it may have drawn on the terminal
	}
	return true, ended(code, err)
}

// killed is what a shell adds to the number of the signal that ended a program.
const killed = 128

// needsUserNamespace reports whether a target is a lab that this user may not build.
func needsUserNamespace(target string) bool {
	name, isLab := strings.CutPrefix(target, "lab:")
	return isLab && name != run.Loopback && !lab.Privileged() && lab.IsTopology(name)
}
