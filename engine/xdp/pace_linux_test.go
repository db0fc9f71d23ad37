//go:build !guest

package xdp

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"pelt/internal/testenv"
	"pelt/pace"
)

// pacerC reads the interval and the limits, then times; for each time it prints how
// many slots were given up and used.
const pacerC = `#include <stdio.h>
#include "pace.h"
int main(void)
{
	struct pacer p = {0};
	unsigned long long now;

	while (scanf("begin %llu %llu %llu %llu %llu ", &p.whole, &p.rest, &p.parts, &p.patience, &p.least_gap) == 5) {
		pace_begin(&p, 0);
		while (scanf("%llu ", &now) == 1) {
			unsigned long long gone = pace_give_up(&p, now), used = now >= pace_next(&p);
			if (used)
				pace_use(&p, now);
			printf("%llu %llu\n", gone, used);
		}
	}
	return 0;
}
`

// The pacer of the kernel's sender and that of sockets give up and use the same slots.
func TestPacersAgree(t *testing.T) {
	testenv.Tool(t, "cc")
	here, err := os.Getwd()
	testenv.Must(t, err)
	program := filepath.Join(t.TempDir(), "pacer")
	build := exec.Command("cc", "-O1", "-Wall", "-I", here, "-x", "c", "-o", program, "-")
	build.Stdin = strings.NewReader(pacerC)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	rapid.Check(t, func(t *rapid.T) {
		rate := rapid.SampledFrom([]string{"8kpps", "60kpps", "100kpps", "1pps", "33333pps"}).Draw(t, "rate")
		burst := rapid.SampledFrom([]int{0, 0, 1, 20}).Draw(t, "burst")
		s, _ := mustRate(t, rate).Schedule(100)
		p := pace.New(pace.Even(s), pace.Stream{Length: pace.Never, Slots: 1 << 60, PPS: s.PPS(), Burst: burst})
		whole, rest, parts := interval(s, 1)
		patience, least := catchUp(burst, whole)
		var in, want bytes.Buffer
		fmt.Fprintf(&in, "begin %d %d %d %d %d\n", whole, rest, parts, patience, least)
		now, next := int64(0), uint64(0)
		for range rapid.IntRange(1, 300).Draw(t, "looks") {
			now += rapid.SampledFrom([]int64{1000, 10, 7000, 60_000, 3_000_000, 12_000_000, 2_000_000_000}).Draw(t,
				"later")
			fmt.Fprintln(&in, now)
			n, first := p.Take(now)
			fmt.Fprintln(&want, first-next, min(n, 1))
			next = first + n
			if n > 1 { // the kernel's takes them one by one
				break
			}
		}
		run := exec.Command(program)
		run.Stdin = &in
		got, err := run.Output()
		testenv.Must(t, err)
		if string(got) != want.String() {
			t.Fatalf("%s, burst %d: given up and used\n%swant\n%s", rate, burst, got, want.String())
		}
	})
}
