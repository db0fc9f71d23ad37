package observe

import (
	"errors"
	"sync"
	"time"

	"pelt/observe/drops"
)

// Kernel is the watch over this machine's drops that all observations of a
// process share. The zero value is ready. The program is in the kernel only
// while a trial needs it, and a moment longer; it is gone with the process.
type Kernel struct {
	mu      sync.Mutex
	machine *drops.Machine
	failed  error                                      // why this kernel can never load it
	open    func(verdicts int) (*drops.Machine, error) // nil: drops.Open
	holders int
	idle    *time.Timer
	closed  bool
}

// linger is how long the program stays between two trials of a run.
const linger = 10 * time.Second

func (k *Kernel) hold() (*drops.Machine, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.closed:
		return nil, errors.New("the watch over drops is closed")
	case k.failed != nil:
		return nil, k.failed
	}
	if k.idle != nil {
		k.idle.Stop()
		k.idle = nil
	}
	if k.machine == nil {
		open := k.open
		if open == nil {
			open = drops.Open
		}
		m, err := open(drops.Verdicts)
		if err != nil {
			if never := (*drops.Error)(nil); errors.As(err, &never) && !never.Passes {
				k.failed = err
			}
			return nil, err
		}
		k.machine = m
	}
	k.holders++
	return k.machine, nil
}

func (k *Kernel) release() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.holders--; k.holders > 0 || k.machine == nil {
		return
	}
	stay := linger
	if k.machine.NearlyFull() {
		stay = 0
	}
	k.idle = time.AfterFunc(stay, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.holders == 0 && k.machine != nil {
			_ = k.machine.Close() // what does not close ends with the process
			k.machine = nil
		}
	})
}

// Ready loads the program, if it is not, and says why it cannot be.
func (k *Kernel) Ready() error {
	if _, err := k.hold(); err != nil {
		return err
	}
	k.release()
	return nil
}

// Reasons reports whether the kernel tells the program, which must be in it, why packets are dropped.
func (k *Kernel) Reasons() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.machine != nil && k.machine.Reasons()
}

// Close takes the program out of the kernel.
func (k *Kernel) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	if k.idle != nil {
		k.idle.Stop()
	}
	if k.machine == nil {
		return nil
	}
	m := k.machine
	k.machine = nil
	return m.Close()
}
