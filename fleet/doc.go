// Package fleet runs engines on other machines, over NATS.
//
// It takes a trial placed on agents and returns both ends' accounts. A [Hub] is a
// nats-server inside this process; an [Agent] is a host that obeys orders; a [Controller]
// gives them, to the agents of one hub or of two. Lab nodes, and the near end of pelt curve
// HOST, are agents on a hub that does not listen; pelt serve is a hub that listens, with one
// agent. A router between the ends may run an agent without ends, see [WatchRouter]. The
// package opens no data socket, measures nothing and decides nothing about results: engines
// do the first two, package run the third. NATS types do not leave it.
//
// # Subjects
//
// All messages are JSON. CLIENT is 128 random bits of one connection, SESSION of one trial,
// as hex.
//
//	pelt.hello                              controller -> the agent of a far hub, who introduces itself
//	pelt.agent.AGENT.VERB.CLIENT            controller -> one agent, request and reply
//	pelt.session.CLIENT.SESSION.controller  heartbeats of the controller
//	pelt.session.CLIENT.SESSION.AGENT       heartbeats of an agent, with samples and its state
//	pelt.inbox.CLIENT.>                     replies
//
// The server checks subjects, but not where a client asks for the reply. So whoever asks stands in the subject.
//
// A connection from outside may subscribe to its own session and inbox
// subjects only, so one client sees nothing of another's.
//
// # Orders
//
// Each verb is a row of the table orders. A message is decoded by one strict decoder and
// checked by its own type (check, clamp) where it enters; nothing behind that checks again.
// A trial's life is make (an agent's parts), do (once for each of engine.Steps, for all
// parts at once), account (what they measured) and release; stop cuts it.
//
// # Liveness
//
// Controller and agents beat every 250 ms. A silence is too long after 2.5 s while packets are sent, and after 8 s
// before and after that, or after the reconnect window if that is longer. Until a trial begins the controller waits
// 15 s for a beat of an agent whose parts are made.
//
// A session whose controller is silent for too long is stopped. The controller counts its beats. Where the trial has a
// probe flow, its packets pass on the highest number that is known, and get through when a flood starves the control
// connection. As only the controller counts, agents cannot keep each other alive without it.
//
// Agents name the peers that packets came from. The controller cuts a trial when for too long neither beats nor packets
// have shown that an agent lives.
//
// Packets of a peer are the controller's sign of life, too, where the order says that the
// peer counts: one in the controller's own process, or, of two hubs, the first one's agent
// at the second. It is never said in both directions, and holds only while no probe comes
// through, which would bring the number itself.
package fleet
