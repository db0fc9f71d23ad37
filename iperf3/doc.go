// Package iperf3 speaks the protocol of iperf3, so that any iperf3 server or client is the far end of a trial.
//
// A Client makes both ends of a flow to one server. The near end is an end like any other: the sockets, the pacer and
// the meter are those of engine/udp, and only the header of the datagrams and the way to meet the peer differ. The far
// end has no sockets. It stands for the server, and its account is what the server reports when the test is over.
//
// A Server serves clients, many at once. Each Session makes both ends of each flow that its client asks for: the near
// end carries packets by the sockets of engine/udp or engine/tcp, and the far end stands for the client.
//
// The protocol has one control connection of TCP a test, over which both sides send states of one byte and two
// documents of JSON. iperf3 3.1 to 3.21 differ in details, which comments name where they matter.
package iperf3
