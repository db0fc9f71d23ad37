//go:build guest

package drops

const hidden = 0 // see hidden_test.go
