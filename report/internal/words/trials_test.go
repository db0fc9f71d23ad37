package words

import "testing"

func TestTrials(t *testing.T) {
	for _, c := range []struct {
		of   []int
		want string
	}{
		{nil, ""},
		{[]int{1, 1}, ""},
		{[]int{3, 3}, "3 trials"},
		{[]int{2, 1, 3}, "1 to 3 trials"},
		{[]int{0, 2}, "0 to 2 trials"},
	} {
		if got := Trials(c.of); got != c.want {
			t.Errorf("Trials(%v): %q; want %q", c.of, got, c.want)
		}
	}
}
