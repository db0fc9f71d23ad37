//go:build amd64 || arm64

package drops

import (
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"pelt/model"
)

// names turns the kernel's sites into words.
type names struct {
	reasons reasons
	places  map[uint32]place
	symbols map[uint64]symbol
	namer   namer
	hidden  bool // the kernel shows no addresses
	unread  error
}

func newNames(r reasons) names {
	return names{reasons: r, places: map[uint32]place{}, symbols: map[uint64]symbol{}}
}

type place struct {
	key     bpfSiteKey
	name    string     // of the interface
	space   uint64     // inode of the namespace; 0 unknown
	address netip.Addr // of the host; see locate
	located bool
}

// refresh takes in sites that the table has gained.
func (n *names) refresh(sites *ebpf.Map) error {
	var key bpfSiteKey
	var value bpfSite
	entries := sites.Iterate()
	for entries.Next(&key, &value) {
		if _, ok := n.places[value.Id]; ok {
			continue
		}
		n.places[value.Id] = place{key: key, name: text(value.Name[:]), space: uint64(value.Space)}
	}
	if err := entries.Err(); err != nil {
		return fmt.Errorf("read the table of sites: %w", err)
	}
	return nil
}

// namer asks the kernel for the function of an address, with a program that is loaded when it is first needed.
type namer struct {
	program *ebpf.Program
	tried   bool
}

func (n *namer) name(k *kernel, address uint64) (symbol, bool) {
	if !n.tried {
		n.tried = true
		var o struct {
			Function *ebpf.Program `ebpf:"function_of"`
		}
		if k.loadBeside(nil, &o, func(*ebpf.CollectionSpec) error { return nil }) == nil { // Linux 5.14
			n.program = o.Function
		}
	}
	if n.program == nil {
		return symbol{}, false
	}
	asked := bpfNaming{Address: address}
	if _, err := n.program.Run(&ebpf.RunOptions{Context: asked, ContextOut: &asked}); err != nil {
		return symbol{}, false
	}
	return parseSymbol(text(asked.Symbol[:]))
}

// resolve finds the functions of sites that came since.
func (n *names) resolve(k *kernel) {
	var unknown []uint64
	for _, p := range n.places {
		if _, ok := n.symbols[p.key.Location]; ok {
			continue
		}
		if s, ok := n.namer.name(k, p.key.Location); ok {
			n.symbols[p.key.Location] = s
		} else {
			unknown = append(unknown, p.key.Location)
		}
	}
	if len(unknown) == 0 {
		return
	}
	var found map[uint64]symbol
	found, n.hidden, n.unread = kernelFunctions(unknown)
	for _, at := range unknown {
		n.symbols[at] = found[at]
	}
}

func text(c []int8) string {
	b := make([]byte, len(c))
	for i, x := range c {
		b[i] = byte(x)
	}
	return unix.ByteSliceToString(b)
}

func (n *names) why() model.Reasons {
	switch {
	case n.unread != nil:
		return model.Reasons{{Code: model.NamesUnread, Text: model.SystemSaid(n.unread)}}
	case n.hidden:
		return model.Reasons{{Code: model.NamesHidden}}
	}
	return nil
}

// site puts the place in words; ok is false if the table has no such id.
func (n *names) site(id uint32) (s model.Site, ok bool) {
	p, ok := n.places[id]
	if !ok {
		return s, false
	}
	at := n.symbols[p.key.Location]
	s = model.Site{
		Reason: n.reasons.name(p.key.Reason), Function: at.Function, Offset: at.Offset,
		Namespace: p.space, Interface: p.name, Received: p.key.From != 0,
	}
	if p.address.IsValid() {
		s.Address = p.address.String()
	}
	return s, true
}
