//go:build amd64 || arm64

package drops

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// fragments remembers the first fragments of datagrams that this kernel queues or receives, while flows ask for it.
// Its programs see delivered packets, so they are attached only then.
type fragments struct {
	flows int
	hooks []link.Link
}

func (f *fragments) want(o *objects) error {
	f.flows++
	err := o.Fragments.Set(uint32(f.flows))
	if err == nil && len(f.hooks) == 0 {
		f.hooks, err = attach(o.Queued, o.Received)
	}
	return err
}

func (f *fragments) done(o *objects) error {
	f.flows--
	err := o.Fragments.Set(uint32(f.flows))
	if f.flows > 0 {
		return err
	}
	return errors.Join(err, f.close(), empty(o.Held))
}

// close may be called more than once.
func (f *fragments) close() error {
	hooks := f.hooks
	f.hooks = nil
	return detach(hooks)
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
