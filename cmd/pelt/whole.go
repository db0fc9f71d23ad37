//go:build !small

package main

// small is whether this program was built with -tags small: what routers with little flash need, and nothing else.
const small = false
