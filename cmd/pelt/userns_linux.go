package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"pelt/lab"
	"pelt/run"
)

// viaUserNamespace runs this same command again as root of an unprivileged user namespace, when the target is a lab
// that this user may not build otherwise. done says that it ran and ended with the code; an error without done says
// why no lab can be had.
func viaUserNamespace(target string, stderr io.Writer) (code int, done bool, err error) {
	name, isLab := strings.CutPrefix(target, "lab:")
	if !isLab || name == run.Loopback || lab.Privileged() || !lab.IsTopology(name) {
		return 0, false, nil
	}
	if ok, why := lab.InUserNamespace(); !ok {
		return 0, false, fmt.Errorf("no right to make network namespaces, and %s", why)
	}
	fmt.Fprintln(stderr, "not root: building the lab in an unprivileged user namespace")
	code, err = lab.RunInUserNamespace(os.Args[1:])
	return code, true, err
}
