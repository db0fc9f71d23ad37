package lab

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// The tests here open one link by two backends and compare what comes out. Those of netem are in netem_linux_test.go.

// A link that needs the kernel's netem is made, or says in one line which module is missing.
func TestKernelLinkOrWhyNot(t *testing.T) {
	watchHost(t)
	_, lack := hasNetem()
	l, err := Open(t.Context(), "direct", parseLinks(t, []string{"sender:delay=1ms,backend=kernel"}))
	if err == nil {
		defer l.Close()
	}
	var usage *UsageError
	switch {
	case lack == nil && err != nil:
		t.Error(err)
	case lack != nil && (!errors.As(err, &usage) || !strings.Contains(err.Error(), "module sch_netem") || strings.Contains(err.Error(), "\n")):
		t.Errorf("opened %v, %v; want one line that names the module", l, err)
	}
}

// differ sends the same through a link by each backend, and looks at what came.
func differ(t *testing.T, link string, p probe, look func(lists [][]arrival, count int) string, backends ...string) {
	t.Helper()
	spaces := map[uint64]bool{}
	defer func() { expectGone(t, spaces) }()
	var lists [][]arrival
	for _, b := range backends {
		list, wrong := crossing(t, "sender:"+link+",backend="+b, p, spaces)
		lists = append(lists, list)
		if wrong != "" {
			t.Errorf("%s by %s: %s", link, b, wrong)
		}
	}
	if said := look(lists, p.count); said != "" {
		t.Errorf("%s: %s", link, said)
	}
}

// crossing sends through a lab of its own, and says what is wrong with its
// account. It adds the namespaces that must be gone now.
func crossing(t *testing.T, link string, p probe, spaces map[uint64]bool) (list []arrival, wrong string) {
	t.Helper()
	l, err := Open(t.Context(), "direct", parseLinks(t, []string{link}))
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(spaces, inodes(t, l))
	before := account(t, l)
	list = through(t, l, p)
	wrong = balances(t, l, before, p.count, len(list))
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	return list, wrong
}

func kernelLinks(l *Lab) []*Link {
	return slices.DeleteFunc(l.Emulated(), func(k *Link) bool { return !k.Kernel() })
}

func account(t *testing.T, l *Lab) (list [][2]wayReading) {
	t.Helper()
	for _, k := range kernelLinks(l) {
		r, err := l.readKernel(k)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}

// balances wants the kernel's account of a link to be that of who used it. All
// links here are so short that no frame of IPv6's is among them.
func balances(t *testing.T, l *Lab, before [][2]wayReading, sent, came int) string {
	t.Helper()
	for i, k := range kernelLinks(l) {
		r := k.kernel[0].since(before[i][0], account(t, l)[i][0])
		text := fmt.Sprintf("frames %d, passed %s, lost %s, full %s, twice %s", r.Frames, said(r.Passed), said(r.Lost), said(r.QueueFull), said(r.Duplicated))
		t.Log(l.Facts().Backends[0], text)
		if int(r.Frames) != sent {
			return fmt.Sprintf("%d were sent: %s", sent, text)
		}
		if r.Passed != nil && r.Duplicated != nil && r.Corrupted != nil && int(*r.Passed+*r.Duplicated) != came {
			return fmt.Sprintf("%d came: %s", came, text)
		}
	}
	return ""
}

func said(n *uint64) string {
	if n == nil {
		return "unknown"
	}
	return fmt.Sprint(*n)
}

// fates are how often each packet came.
func fates(list []arrival, count int) []int {
	n := make([]int, count)
	for _, a := range list {
		n[a.sequence]++
	}
	return n
}

const quick = 100 * time.Microsecond

func segmentLoss(list []arrival, count, segments int, want float64) string {
	lost := lostOf(list, count)
	for i := 0; i < count; i += segments {
		if number(lost[i:i+segments]) == segments {
			return "a buffer was lost as a whole"
		}
	}
	return share("lost of the segments", number(lost), count, want)
}
