// Package bed is two network namespaces joined by a veth pair, with the ways to send over it and to break it. Only
// tests of what a kernel tells of lost packets import it.
package bed
