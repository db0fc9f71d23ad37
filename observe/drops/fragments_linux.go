//go:build amd64 || arm64

package drops

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// follower remembers the first fragments of datagrams that this kernel queues
// or receives, while tracks ask for it.
type follower struct {
	tracks  int
	objects struct {
		Queued   *ebpf.Program `ebpf:"queued"`
		Received *ebpf.Program `ebpf:"received"`
	}
	hooks []link.Link
}

func (w *follower) want(m *Machine) error {
	w.tracks++
	if err := m.objects.Fragments.Set(uint32(w.tracks)); err != nil {
		return err
	}
	if len(w.hooks) > 0 { // an earlier track's, unless they failed
		return nil
	}
	spec, err := loadBpf()
	if err != nil {
		return err
	}
	pages := m.objects.Verdicts.MaxEntries()
	spec.Maps["verdicts"].MaxEntries, spec.Maps["dirty"].MaxEntries = pages, pages
	o := m.objects
	k := m.kernel
	err = k.load(spec, &w.objects, map[string]*ebpf.Map{"streams": o.Streams, "held": o.Held, "exits": o.Exits})
	if err != nil {
		return err
	}
	if w.hooks, err = attach(w.objects.Queued, w.objects.Received); err != nil {
		return errors.Join(err, w.close())
	}
	return nil
}

func (w *follower) done(m *Machine) error {
	w.tracks--
	err := m.objects.Fragments.Set(uint32(w.tracks))
	if w.tracks > 0 {
		return err
	}
	return errors.Join(err, w.close(), empty(m.objects.Held))
}

// close may be called more than once.
func (w *follower) close() error {
	err := detach(w.hooks, w.objects.Queued, w.objects.Received)
	w.hooks, w.objects.Queued, w.objects.Received = nil, nil, nil
	return err
}

// empty forgets the fragments: their identifiers come round.
func empty(held *ebpf.Map) error {
	var k bpfHeldKey
	for {
		if err := held.NextKey(nil, &k); errors.Is(err, ebpf.ErrKeyNotExist) {
			return nil
		} else if err != nil {
			return fmt.Errorf("forget fragments: %w", err)
		}
		if err := present(held.Delete(k)); err != nil {
			return fmt.Errorf("forget fragments: %w", err)
		}
	}
}
