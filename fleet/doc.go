// Package fleet runs engines on other machines, over NATS.
//
// A trial placed on agents comes in, both ends' accounts of it go out. A [Hub]
// is a nats-server inside this process; an [Agent] is a host that obeys orders;
// a [Controller] gives them. Lab nodes are agents on in-process connections to
// a hub that does not listen; pelt serve is a hub that listens and one agent;
// pelt curve HOST is a controller with an agent of its own, connected to that
// hub; with a near host as well it is a controller of two such hubs ([DialTwo]) and
// has no agent. A router between them may run an observer, which is no end: a controller
// of its own leads it through the trials ([DialDevice]). The package opens no data socket, measures nothing and decides nothing
// about results: engines do the first two, package run the third. NATS types
// do not leave it.
//
// # Subjects
//
// All messages are JSON, decoded strictly by one function. CLIENT is 128
// random bits of one connection, SESSION of one trial, as hex.
//
//	pelt.hello                              controller -> every agent, who introduces itself
//	pelt.agent.AGENT.VERB                   controller -> one agent, request and reply
//	pelt.session.CLIENT.SESSION.controller  beats of the controller
//	pelt.session.CLIENT.SESSION.AGENT       beats of an agent, with samples and its state
//	pelt.inbox.CLIENT.>                     replies
//
// A connection from outside may subscribe to its own session and inbox
// subjects only, so one client sees nothing of another's. The agent of a
// client's own host is not on the hub at all: its controller calls it
// directly, through the same decoder.
//
// # Life of a trial
//
//	prepare   listening ends open their sockets and tell their ports; then dialing ends
//	connect   both ends, at once: consent handshake on the data path
//	run       receivers, until they read; then the gate: all senders told to start after the same short wait
//	(beats)   samples once a second; senders end by themselves
//	record    blocks of what receivers took down, if that is ordered; until all are fetched
//	report    of the senders
//	finish    receivers learn what each stream attempted, and drain
//	report    of everyone
//	release   everything is closed
//
// # Liveness
//
// The controller counts a number up every 250 ms. Nobody else ever counts:
// agents pass on the highest number they have seen, in their beats and, where
// the trial has a probe flow, in its packets, which get through when a flood
// starves the control connection. A session is stopped when the number has not
// advanced for 2.5 s from the controller or from a peer, by any way. As only
// the controller counts, agents cannot keep each other alive without it.
//
// A flood through a slow router loses nearly everything, beats and probes too;
// then what arrives of the flood is the sign that its sender lives, and an echo
// that hears nothing gives signs of its own. A peer in the controller's own
// process (home) vouches for the controller: the two fall silent together.
//
// Agents on two hubs cannot hear each other's beats there. The controller relays
// them, number only, and a trial is cut as soon as one connection ends. What comes
// of a flood from the first hub's host vouches for the controller at the second's,
// never the reverse, and only while no probe comes through.
package fleet
