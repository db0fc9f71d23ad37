package words

import "fmt"

// Trials says how many trials stand behind each figure, by their numbers:
// "3 trials", "1 to 3 trials" where a run was cut or some were not valid. It is "" where
// none has more than one.
func Trials(of []int) string {
	if len(of) == 0 {
		return ""
	}
	least, most := of[0], of[0]
	for _, n := range of {
		least, most = min(least, n), max(most, n)
	}
	switch {
	case most <= 1:
		return ""
	case least == most:
		return fmt.Sprintf("%d trials", most)
	}
	return fmt.Sprintf("%d to %d trials", least, most)
}
