// Package sshbed runs Debian's sshd for tests, with keys of its own, and an ssh that knows it by names. Only tests
// import this package.
package sshbed
