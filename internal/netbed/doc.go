// Package netbed makes networks of namespaces for tests, with the ways to send over them and to break them. It speaks
// netlink and runs no program. All it makes is gone with the test. Only tests import it.
package netbed
