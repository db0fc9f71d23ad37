package unit

// Widen returns the count whose lower 32 bits are now and that lies nearest to before: so a
// count that a kernel keeps in 32 bits goes on beyond them, as long as it is read before it
// has gone on by half of their range. ok is false, and the count now itself, if it went
// back: it was made anew.
func Widen(before uint64, now uint32) (wide uint64, ok bool) {
	step := now - uint32(before)
	if step >= 1<<31 {
		return uint64(now), false
	}
	return before + uint64(step), true
}
