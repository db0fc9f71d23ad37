//go:build cgo

package privilege

func init() { cgo = true }
