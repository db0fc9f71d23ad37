//go:build amd64 || arm64

package drops

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// fragments remembers the first fragments of datagrams that this kernel queues or receives, while flows ask for it.
// Its programs see delivered packets, so they are attached only then. The first flow that asks has them loaded.
type fragments struct {
	flows    int
	programs struct {
		Queued   *ebpf.Program `ebpf:"queued"`
		Received *ebpf.Program `ebpf:"received"`
	}
	hooks []link.Link
}

func (f *fragments) want(k *kernel, o *objects) error {
	f.flows++
	err := o.Fragments.Set(uint32(f.flows))
	if err == nil {
		err = f.load(k, o)
	}
	if err == nil && len(f.hooks) == 0 {
		f.hooks, err = attach(f.programs.Queued, f.programs.Received)
	}
	return err
}

func (f *fragments) load(k *kernel, o *objects) error {
	if f.programs.Queued != nil {
		return nil
	}
	maps := map[string]*ebpf.Map{"streams": o.Streams, "held": o.Held, "exits": o.Exits}
	return k.loadBeside(maps, &f.programs, func(*ebpf.CollectionSpec) error { return nil })
}

func (f *fragments) done(o *objects) error {
	f.flows--
	err := o.Fragments.Set(uint32(f.flows))
	if f.flows > 0 {
		return err
	}
	return errors.Join(err, f.detach(), empty(o.Held))
}

func (f *fragments) detach() error {
	hooks := f.hooks
	f.hooks = nil
	return detach(hooks)
}

func (f *fragments) close() error {
	return errors.Join(f.detach(), detach(nil, f.programs.Queued, f.programs.Received))
}

// empty forgets the fragments: their identifiers come round.
func empty(held *ebpf.Map) error {
	var k bpfHeldKey
	for {
		err := held.NextKey(nil, &k)
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			return nil
		}
		if err == nil {
			err = present(held.Delete(k))
		}
		if err != nil {
			return fmt.Errorf("forget fragments: %w", err)
		}
	}
}
