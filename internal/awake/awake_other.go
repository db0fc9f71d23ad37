//go:build !linux

package awake

import "errors"

// Hold keeps no processor awake: the error says so.
func Hold() (release func() error, err error) {
	return nil, errors.New("only Linux lets a program keep processors awake")
}
