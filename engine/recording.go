package engine

import "context"

// Recording takes down, packet by packet, what receivers of one session see. Its
// methods may be called concurrently.
type Recording interface {
	// Tap puts the record of a receiver around its meter.
	Tap(o Order, m Meter) Meter
	// Finish hands over what is left: the receivers have ended. It does not wait.
	Finish()
	// Blocks returns whole blocks of the record from the given byte on, at most a
	// number of bytes, and forgets what lies before. It waits a moment for some, or
	// until ctx ends. done says that no more will come; a recording that needs
	// nobody to fetch its blocks says so at once.
	Blocks(ctx context.Context, from uint64, most int) (blocks []byte, done bool)
	// Close frees everything.
	Close()
}
