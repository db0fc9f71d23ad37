//go:build amd64 || arm64

package bpfloss

import (
	"os"
	"testing"

	"pelt/lab/impair"
)

// The program in the kernel loses the very frames that the model loses.
func TestLosesAsTheModel(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	for name, s := range map[string]impair.Settings{
		"random":          {Seed: 7, Loss: impair.Loss{Chance: impair.Chance{Ratio: 0.1}}},
		"correlated":      {Seed: 1<<63 + 5, Loss: impair.Loss{Chance: impair.Chance{Ratio: 0.2, Correlation: 0.5}}},
		"all":             {Seed: 1, Loss: impair.Loss{Chance: impair.Chance{Ratio: 1}}},
		"none":            {Seed: 1},
		"gilbert-elliott": {Seed: 3, Loss: impair.Loss{Model: impair.GilbertElliott, P: 0.05, R: 0.2, Bad: 0.7, Good: 0.01}},
		"four-state":      {Seed: 4, Loss: impair.Loss{Model: impair.FourState, P13: 0.05, P31: 0.2, P32: 0.3, P23: 0.4, P14: 0.02}},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Load(s)
			if err != nil {
				t.Fatal(err)
			}
			id, err := p.MapID()
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second time from its beginning again
				model := impair.New(s)
				const frames = 3000
				lost := uint64(0)
				for i := range frames {
					verdict, _, err := p.objects.Lose.Test(make([]byte, 64))
					if err != nil {
						t.Fatal(err)
					}
					fate := model.Offer(int64(i), 64)
					want := uint32(0xffffffff) // TC_ACT_UNSPEC: goes on
					if fate.Cause == impair.Lost {
						want = 2 // TC_ACT_SHOT
						lost++
					}
					if verdict != want {
						t.Fatalf("frame %d: verdict %#x, want %#x", i, verdict, want)
					}
				}
				if c, err := CountsOf(id); err != nil || c != (Counts{frames, lost}) {
					t.Errorf("counts %+v, %v; want %d frames, %d lost", c, err, frames, lost)
				}
				if err := Restart(id, s); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
	if err := Restart(1<<31-1, impair.Settings{}); err == nil {
		t.Error("what never was is restarted")
	}
}
