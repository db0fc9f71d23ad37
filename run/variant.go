package run

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"
	"unicode"

	"pelt/lab"
	"pelt/model"
)

// setup is how the router under test is set up, and who does it.
type setup struct {
	variants []model.Variant
	lab      *lab.Lab // nil: commands of the user's do it
	now      string   // "" while none was set
}

// variantPatience is how long a command may take to set a router up.
const variantPatience = 2 * time.Minute

// become sets the router up as a trial wants it.
func (s *setup) become(ctx context.Context, name string) error {
	if name == s.now || name == "" {
		return nil
	}
	if s.lab != nil {
		if err := s.lab.SetRouter(name); err != nil {
			return fmt.Errorf("variant %s: %w", name, err)
		}
		s.now = name
		return nil
	}
	i := slices.IndexFunc(s.variants, func(v model.Variant) bool { return v.Name == name })
	if i < 0 {
		return fmt.Errorf("the plan has no variant %s", name)
	}
	s.now = "" // whatever a command that fails has done
	if err := setUp(ctx, s.variants[i].Command); err != nil {
		return fmt.Errorf("variant %s: %w", name, err)
	}
	s.now = name
	return nil
}

// back sets a real router up as the first variant says; a lab's goes with the lab.
func (s *setup) back() error {
	if s.lab != nil || len(s.variants) == 0 || s.now == s.variants[0].Name {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), variantPatience)
	defer cancel()
	if err := setUp(ctx, s.variants[0].Command); err != nil {
		return fmt.Errorf("the router could not be set up again as variant %s: %w", s.variants[0].Name, err)
	}
	return nil
}

// setUp runs a command of the user's on this host.
func setUp(ctx context.Context, command string) error {
	if command == "" {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, variantPatience)
	defer cancel()
	c := exec.CommandContext(limited, "sh", "-c", command)
	c.WaitDelay = time.Second // what it started may hold its output open
	out, err := c.CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil:
		return fmt.Errorf("its command had not ended after %v: %s", variantPatience, command)
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return fmt.Errorf("its command failed (%w): %s%s", err, command, lastLine(string(out)))
	}
	return nil
}

// lastLine of what a program wrote, to stand after something else.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	last := strings.Map(printed, strings.TrimSpace(lines[len(lines)-1]))
	if last == "" {
		return ""
	}
	return ": " + strings.ToValidUTF8(last[:min(len(last), maxText)], "") // a letter of several bytes may be cut
}

// printed keeps what a terminal shows as it is.
func printed(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return -1
}
