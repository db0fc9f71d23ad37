// Package udp runs one end of one UDP flow for one trial: sender, receiver, or
// the thin probe flow that times round trips. It implements engine.Engine.
//
// Orders come in, datagrams go over the flow's own 5-tuples, reports go out.
// It never sends more than a few 56-byte messages to a peer that has not proved
// that it knows the flow's key (consent.go), and answers no stranger at all.
//
// On Linux each stream has a connected socket and a locked thread, packets move
// in batches, arrival times are the kernel's, and it tells of a packet that a
// queue of this host drops. Elsewhere it is one packet a call with the program's own times.
// Ends of engines with Workers share their threads
// instead. Which packet leaves when (sendstream.go) and what
// is counted (emit.go, receive.go) is the same code on both.
package udp
