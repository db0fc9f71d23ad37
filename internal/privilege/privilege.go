// Package privilege gives up the rights of root that a process which obeys other hosts does not need.
package privilege
