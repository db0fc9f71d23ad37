package screen

import (
	"context"
	"errors"
	"os"

	"github.com/charmbracelet/x/term"
)

// ReadHidden reads a line from a terminal, which does not show what is typed.
func ReadHidden(ctx context.Context, in *os.File) (string, error) {
	before, err := term.GetState(in.Fd())
	if err != nil {
		return "", err
	}
	type line struct {
		text []byte
		err  error
	}
	read := make(chan line, 1)
	go func() {
		text, err := term.ReadPassword(in.Fd())
		read <- line{text, err}
	}()
	select {
	case l := <-read:
		return string(l.text), l.err
	case <-ctx.Done():
		return "", errors.Join(ctx.Err(), term.Restore(in.Fd(), before))
	}
}
