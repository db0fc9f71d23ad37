package test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"pelt/internal/peltproc"
	"pelt/internal/testenv"
	"pelt/model"
)

// iperfCount is what one side says of a direction.
type iperfCount struct {
	Bytes       uint64 `json:"bytes"`
	Packets     uint64 `json:"packets"`
	Lost        uint64 `json:"lost_packets"`
	Retransmits uint64 `json:"retransmits"`
	Sender      bool   `json:"sender"`
}

// iperfEnd is the end of what iperf3 prints with -J.
type iperfEnd struct {
	End struct {
		Sum         iperfCount `json:"sum"`
		Sent        iperfCount `json:"sum_sent"`
		Received    iperfCount `json:"sum_received"`
		SentBack    iperfCount `json:"sum_sent_bidir_reverse"`
		ReceivedAll iperfCount `json:"sum_received_bidir_reverse"`
		Streams     []struct {
			UDP      iperfCount `json:"udp"`
			Sender   iperfCount `json:"sender"`
			Receiver iperfCount `json:"receiver"`
		} `json:"streams"`
	} `json:"end"`
	Output string `json:"server_output_text"`
}

// byServer sums what a server says of its own streams.
func (e iperfEnd) byServer(sends bool) (sum iperfCount) {
	for _, s := range e.End.Streams {
		one := s.UDP
		switch {
		case s.UDP.Packets > 0:
		case sends:
			one = s.Sender
		default:
			one = s.Receiver
		}
		if one.Sender == sends {
			sum.Bytes, sum.Packets, sum.Lost = sum.Bytes+one.Bytes, sum.Packets+one.Packets, sum.Lost+one.Lost
		}
	}
	return sum
}

// iperfMatrix are combinations of protocol, direction, streams, size, rate, and duration or amount.
var iperfMatrix = struct{ clients, servers []string }{
	clients: []string{ // iperf3's, of pelt serve --iperf3
		"-u -l 200 -b 500K -t 1",
		"-u -l 64 -b 100K -t 1 -P 4 --udp-counters-64bit",
		"-u -l 1400 -b 1M -n 50K",
		"-u -l 200 -b 0 -n 4M -w 2k",
		"-u -R -l 200 -b 500K -t 1",
		"-u -R -l 64 -b 100K -t 1 -P 4 --udp-counters-64bit",
		"-u -R -l 1400 -b 1M -n 50K",
		"-u -R -l 1000 -b 4M -k 60 -P 3",
		"-u -R -l 16 -b 64K -t 1 --udp-counters-64bit",
		"-u -R -l 500 -b 400K -t 1 -O 1",
		"-u --bidir -l 200 -b 400K -t 1",
		"-u --bidir -l 800 -b 800K -t 1 -P 2",
		"-t 1 -b 20M",
		"-l 1000 -b 1M -t 1 -O 1 -P 2",
		"-n 3M -P 3",
		"-l 999 -k 70 -w 100K",
		"-R -t 1 -b 20M",
		"-R -t 1 -b 50M -P 3",
		"-R -k 10 -P 4",
		"-R -k 10 -P 4 -N",
		"-R -n 3M -P 3",
		"-R -l 1000 -b 1M -t 1 -P 2 -N",
		"-R -n 500K -C reno -w 100K",
		"--bidir -l 1000 -b 1M -t 1 -P 2",
		"--bidir -l 4000 -n 400K -b 4M",
	},
	servers: []string{ // pelt's clients, of iperf3 -s
		"--payload 200 --rate 300pps --time 700ms",
		"--payload 16 --rate 400pps --streams 4 --time 500ms",
		"--payload 1400 --rate 1mbit --time 500ms",
		"--payload 64 --rate 500pps --count 100",
		"-R --payload 200 --rate 300pps --time 700ms",
		"-R --payload 16 --rate 400pps --streams 4 --time 500ms",
		"-R --payload 1400 --rate 1mbit --time 500ms",
		"-R --payload 700 --rate 200pps --streams 2 --time 500ms",
		"--direction both --payload 200 --rate 300pps --time 500ms",
		"--direction both --payload 800 --rate 1mbit --streams 3 --time 500ms",
		"--proto tcp --payload 1000 --rate 200pps --time 500ms",
		"--proto tcp --payload 500 --rate 300pps --streams 4 --time 500ms",
		"--proto tcp --bulk --payload 4000 --rate max --time 300ms",
		"-R --proto tcp --payload 1000 --rate 200pps --time 500ms",
		"-R --proto tcp --payload 500 --rate 300pps --streams 4 --time 500ms",
		"-R --proto tcp --payload 64 --rate 100pps --time 500ms",
		"--direction both --proto tcp --payload 1000 --rate 200pps --time 500ms",
		"--direction both --proto tcp --payload 300 --rate 200pps --streams 2 --time 500ms",
	},
}

// TestIperfMatrix: in every combination the counts of iperf3 and pelt agree, to the packet and to the byte.
func TestIperfMatrix(t *testing.T) {
	testenv.Root(t) // for a socket buffer below what is usual
	t.Parallel()
	host, run := iperfClients(t, "--max-sessions", "32")
	// Another program under that name counts omitted packets, and segments that TCP sent again, in its own way.
	version, _ := exec.Command("iperf3", "--version").Output()
	original := strings.HasPrefix(string(version), "iperf 3")
	clients := slices.DeleteFunc(slices.Clone(iperfMatrix.clients), func(line string) bool {
		return !original && strings.Contains(line, "-O ")
	})
	const atOnce = 6 // most of the time is waiting
	places := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	each := func(lines []string, one func(t *testing.T, number int, line string)) {
		for i, line := range lines {
			all.Go(func() {
				places <- struct{}{}
				defer func() { <-places }()
				one(t, i, line)
			})
		}
	}
	each(clients, func(t *testing.T, number int, line string) {
		iperfClientAgrees(t, host, run, number, line, original)
	})
	each(iperfMatrix.servers, func(t *testing.T, number int, line string) { iperfServerAgrees(t, number, line) })
	all.Wait()
	if out, err := host.Run("list"); err != nil || strings.Count(out, "soak") != len(clients) {
		t.Errorf("%v\n%s", err, out)
	}
}

// iperfClientAgrees runs an unmodified client. Its figures are those of the run that is kept of it, and it is told where
// its packets ended.
func iperfClientAgrees(t *testing.T, host peltproc.Host, run func(string) (string, error), number int, line string,
	original bool) {
	text, err := run("-J --get-server-output " + line)
	var said iperfEnd
	if err != nil || json.Unmarshal([]byte(text), &said) != nil {
		t.Errorf("%s: %v\n%s", line, err, text)
		return
	}
	id := explained.FindStringSubmatch(said.Output)
	if id == nil {
		t.Errorf("%s: no run in %q", line, said.Output)
		return
	}
	file := filepath.Join(host.Dir, fmt.Sprintf("%d.json", number))
	if out, err := host.Run("report", id[1], "--json", file); orInvalid(err) != nil {
		t.Errorf("%s: %v\n%s", line, err, out)
		return
	}
	d := document(t, file, "")
	if len(d.Results) != 1 {
		t.Errorf("%s: %d results", line, len(d.Results))
		return
	}
	for _, f := range d.Results[0].Flows {
		sent, came := said.End.Sent, said.End.Received
		if strings.Contains(line, "--bidir") && f.Name == "down" {
			sent, came = said.End.SentBack, said.End.ReceivedAll
		}
		if !original && f.TCP != nil {
			sent.Retransmits = f.TCP.Retransmits
		}
		checkIperfFlow(t, line, f, sent, came, said.Output)
	}
}

// checkIperfFlow compares a flow of a kept run with what the client says of it.
func checkIperfFlow(t *testing.T, line string, f model.FlowResult, sent, came iperfCount, output string) {
	if f.Protocol == model.TCP {
		t.Logf("client %-52s %-4s sent %8d / %8d B, came %8d / %8d B, again %d / %d", line, f.Name, sent.Bytes, f.TCP.SentBytes,
			came.Bytes, f.TCP.ReceivedBytes, sent.Retransmits, f.TCP.Retransmits)
		amount := strings.Contains(line, "-n ") && !strings.Contains(line, "--bidir")
		if came.Bytes == 0 || f.TCP.SentBytes != sent.Bytes || f.TCP.ReceivedBytes != came.Bytes ||
			f.TCP.Retransmits != sent.Retransmits || f.GoodputBPS == 0 || amount && sent.Bytes != came.Bytes {
			t.Errorf("%s, %s: iperf3 says %+v, %+v; the run %+v", line, f.Name, sent, came, f.TCP)
		}
		return
	}
	t.Logf("client %-52s %-4s sent %6d / %6d, lost %5d / %5d", line, f.Name, sent.Packets, f.Attempted, came.Lost, f.Lost)
	omits := strings.Contains(line, "-O ") // it leaves those out that it omitted
	if f.Attempted == 0 || (f.Attempted != sent.Packets) != omits || f.Lost != came.Lost || f.Received+f.Lost != f.Attempted ||
		f.Ledger.Unattributed > 0 {
		t.Errorf("%s, %s: iperf3 says %+v, %+v; the run %d of %d lost, %+v", line, f.Name, sent, came, f.Lost, f.Attempted, f.Ledger)
	}
	for _, l := range f.Ledger.Lines {
		if l.Layer == model.LayerReceiverBuffer != strings.Contains(output, "receiver socket buffer full") {
			t.Errorf("%s: %+v, and the client is told %q", line, l, output)
		}
	}
	if strings.Contains(line, "-b 0") == (f.Lost == 0) {
		t.Errorf("%s: %d lost", line, f.Lost)
	}
	if f.SendGap == nil || f.SendGap.Count < f.Received/2 && f.Lost == 0 {
		t.Errorf("%s: %d packets with gaps %+v", line, f.Received, f.SendGap)
	}
}

// iperfServerAgrees tests the path to the real iperf3, and compares both accounts.
func iperfServerAgrees(t *testing.T, number int, line string) {
	port, err := testenv.FreePort()
	if err != nil {
		t.Error(err)
		return
	}
	host := peltproc.Host{T: t, Dir: t.TempDir(), Data: t.TempDir()}
	server := host.Launch(exec.Command("iperf3", "-s", "-1", "-J", "-B", "127.0.0.1", "-p", fmt.Sprint(port)))
	out, err := host.Run(strings.Fields(fmt.Sprintf("curve iperf3://127.0.0.1:%d %s --repeats 1 --json o.json", port, line))...)
	if orInvalid(err) != nil {
		t.Errorf("%s: %v\n%s\n%s", line, err, out, server)
		return
	}
	var said iperfEnd
	if err := server.Wait(); err != nil || json.Unmarshal([]byte(server.Out.String()), &said) != nil {
		t.Errorf("%s: %v\n%s", line, err, server)
		return
	}
	for _, f := range decoded(t, filepath.Join(host.Dir, "o.json")).Results[0].Flows {
		down := f.From == model.Receiver
		theirs := said.byServer(down)
		switch {
		case f.Protocol == model.TCP:
			ours := f.TCP.ReceivedBytes
			if down {
				ours = f.TCP.SentBytes
			}
			t.Logf("server %-72s %-4s bytes %8d / %8d", line, f.Name, theirs.Bytes, ours)
			if ours == 0 || theirs.Bytes != ours {
				t.Errorf("%s, %s: iperf3 says %+v; the run %+v", line, f.Name, theirs, f.TCP)
			}
		case down:
			t.Logf("server %-72s %-4s sent  %8d / %8d", line, f.Name, theirs.Packets, f.Attempted)
			if f.Attempted == 0 || theirs.Packets != f.Attempted || f.Received+f.Lost != f.Attempted {
				t.Errorf("%s, %s: iperf3 says %+v; the run %d of %d lost", line, f.Name, theirs, f.Lost, f.Attempted)
			}
		default:
			t.Logf("server %-72s %-4s came  %8d / %8d, lost %d / %d", line, f.Name, theirs.Packets-theirs.Lost, f.Received,
				theirs.Lost, f.Lost)
			if f.Received == 0 || theirs.Packets-theirs.Lost != f.Received || f.Received+f.Lost != f.Attempted ||
				f.Peer == nil || f.Peer.Highest+f.Peer.Tail != f.Attempted {
				t.Errorf("%s, %s: iperf3 says %+v; the run %d of %d lost", line, f.Name, theirs, f.Lost, f.Attempted)
			}
		}
	}
}
