//go:build amd64 || arm64

package bpfloss

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"pelt/lab/impair"
)

// Program is a loaded program. Its methods may be called concurrently, Close once.
type Program struct{ objects lossObjects }

// Load makes a program that loses what an exact link of these settings would.
// Errors: a kernel before 5.1, or the lack of rights (CAP_BPF and CAP_NET_ADMIN).
func Load(s impair.Settings) (*Program, error) {
	p := &Program{}
	if err := loadLossObjects(&p.objects, nil); err != nil {
		return nil, fmt.Errorf("load the program that loses frames: %w", err)
	}
	if err := p.objects.Losses.Put(uint32(0), valueOf(s)); err != nil {
		return nil, errors.Join(fmt.Errorf("tell the program what to lose: %w", err), p.Close())
	}
	return p, nil
}

func valueOf(s impair.Settings) lossLoss {
	d := s.LossDraws()
	value := lossLoss{State: d.State, High: d.High, Low: d.Low, Bounds: d.Bounds}
	switch d.Model {
	case impair.GilbertElliott:
		value.Model = uint32(lossModelTWO_STATES)
	case impair.FourState:
		value.Model = uint32(lossModelFOUR_STATES)
	default:
		value.Model = uint32(lossModelRANDOM)
	}
	return value
}

// FD is the program's descriptor, for who attaches it. It is the Program's.
func (p *Program) FD() int { return p.objects.Lose.FD() }

// MapID names the program's counts on this machine; see CountsOf.
func (p *Program) MapID() (uint32, error) {
	info, err := p.objects.Losses.Info()
	if err != nil {
		return 0, fmt.Errorf("find the counts of the program that loses frames: %w", err)
	}
	id, ok := info.ID()
	if !ok {
		return 0, errors.New("find the counts of the program that loses frames: the kernel gives them no number")
	}
	return uint32(id), nil
}

// Close lets go of the program, which stays where it is attached.
func (p *Program) Close() error { return p.objects.Close() }

// CountsOf reads what the program did whose MapID that is. It fails once the program
// is gone, and without CAP_SYS_ADMIN.
func CountsOf(id uint32) (Counts, error) {
	m, err := ebpf.NewMapFromID(ebpf.MapID(id))
	if err != nil {
		return Counts{}, fmt.Errorf("read the counts of the program that loses frames: %w", err)
	}
	defer m.Close()
	var value lossLoss
	if err := m.LookupWithFlags(uint32(0), &value, ebpf.LookupLock); err != nil {
		return Counts{}, fmt.Errorf("read the counts of the program that loses frames: %w", err)
	}
	return Counts{Frames: value.Frames, Lost: value.Lost}, nil
}

// Restart has the program whose MapID that is draw from its beginning, and count
// from 0. It fails as CountsOf does.
func Restart(id uint32, s impair.Settings) error {
	m, err := ebpf.NewMapFromID(ebpf.MapID(id))
	if err != nil {
		return fmt.Errorf("restart the program that loses frames: %w", err)
	}
	defer m.Close()
	if err := m.Update(uint32(0), valueOf(s), ebpf.UpdateLock); err != nil {
		return fmt.Errorf("restart the program that loses frames: %w", err)
	}
	return nil
}
