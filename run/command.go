package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"pelt/fleet"
	"pelt/lab"
	"pelt/model"
	"pelt/observe"
)

// A trial of the user's own commands: the server is started at the node that sends,
// and the client at the one that receives once the server listens. What the client
// takes from its start to its end is the figure.

// execCommands runs one such trial on a lab's path.
func (r *runner) execCommands(ctx context.Context, c *current) (model.Result, error) {
	f := c.trial.Flows[0]
	if c.path.roads.lab == nil {
		return model.Result{}, &model.FieldError{Field: "--exec-server, --exec-client", Want: "run in the nodes of a lab; lab:loopback has none"}
	}
	result := model.Result{Cell: c.trial.Cell, Repeat: c.trial.Repeat, State: model.Valid, Engine: "commands", Series: []model.Series{}, Started: r.now().UTC().Truncate(time.Millisecond)}
	server, client, err := c.path.commands(f)
	if err != nil {
		return result, err
	}
	longest := c.trial.Timing.Measure()
	seen := c.path.linksAlone(1)
	watch := observe.StartWatch()
	ending, why, err := runPair(ctx, c.path.roads.lab, f, server, client, longest)
	cpu, series := watch.Stop()
	spots, closing := seen(fleet.Outcome{})
	if closing != nil {
		r.warn(fmt.Sprintf("an observation of the path could not be closed: %v", closing))
	}
	switch {
	case ctx.Err() != nil:
		result.State, result.Why = model.Aborted, "interrupted"
	case err != nil:
		return result, err
	case why != "":
		result.State, result.Why = model.Invalid, why
	}
	flow := model.FlowResult{
		Name: f.Name, Protocol: model.TCP, From: f.From, To: f.To, PayloadBytes: f.PayloadBytes, Streams: f.Streams,
		FrameBytes: model.FrameBytes(model.TCP, familyOf(f), f.PayloadBytes), DurationS: ending.Duration.Seconds(), SenderCPU: cpu, ReceiverCPU: cpu,
		Ledger: model.Ledger{Lines: []model.Line{}, Checks: []model.Check{}},
		TCP: &model.TCPFacts{Control: f.Control, Completion: &model.Completion{
			Bytes: f.Bytes, Done: result.State == model.Valid && !ending.Stopped, Seconds: ending.Duration.Seconds(), By: model.ByExit}},
	}
	if done := flow.TCP.Completion; done.Done && done.Seconds > 0 {
		flow.TCP.ReceivedBytes = f.Bytes
		flow.GoodputBPS = float64(f.Bytes) * 8 / done.Seconds
	}
	result.Flows = []model.FlowResult{flow}
	for i := range series {
		series[i].At = f.From // both nodes are on this machine
	}
	result.Series = append(result.Series, series...)
	for _, s := range spots {
		result.Links = append(result.Links, s.links...)
		if s.doubt != "" && result.State == model.Valid {
			result.State, result.Why = model.Invalid, s.doubt
		}
	}
	for _, l := range result.Links {
		if wrong := linkDoubt(l); wrong != "" && result.State == model.Valid {
			result.State, result.Why = model.Invalid, wrong
		}
	}
	return result, nil
}

// runPair runs server and client. why is what makes the trial say nothing; the error
// is of what no other trial would do better.
func runPair(ctx context.Context, l *lab.Lab, f model.Flow, server, client []string, longest time.Duration) (ending lab.Ending, why string, err error) {
	from, err := l.Node(f.From)
	if err != nil {
		return ending, "", err
	}
	to, err := l.Node(f.To)
	if err != nil {
		return ending, "", err
	}
	serving, err := from.Start(ctx, lab.ProgramOptions{Args: server, Control: f.Control})
	if err != nil {
		return ending, "", err
	}
	defer func() {
		_, stopping := serving.Stop()
		err = errors.Join(err, stopping)
	}()
	if _, err := serving.WaitListening(ctx, 0); err != nil {
		return ending, "", fmt.Errorf("--exec-server: %w", err)
	}
	limit, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	asking, err := to.Start(limit, lab.ProgramOptions{Args: client, Control: f.Control})
	if err != nil {
		return ending, "", err
	}
	ending, err = asking.Wait()
	if err != nil {
		return ending, "", err
	}
	if !ending.Stopped && ending.ExitCode != 0 {
		why = fmt.Sprintf("the client %s: %v", client[0], ending)
		if said := asking.Tail(); len(said) > 0 {
			why += "; it said: " + strings.Join(said, " / ")
		}
	}
	select {
	case <-serving.Done():
		died, _ := serving.Wait()
		why = withServer(why, server[0], died, ending)
	default:
	}
	return ending, why, nil
}

// withServer adds to why a pair of programs failed that the server was gone before its
// client. One that ended well after it had served a client is meant to.
func withServer(why, server string, died, client lab.Ending) string {
	if died.ExitCode == 0 && client.ExitCode == 0 && !client.Stopped {
		return why
	}
	return strings.TrimPrefix(why+fmt.Sprintf("; the server %s ended before its client: %v", server, died), "; ")
}

// familyOf is the IP version that stands for any in a lab's node.
func familyOf(f model.Flow) int { return cmp.Or(f.Family, 4) }

// commands are the words of a flow's server and client, with the nodes' addresses.
func (p *path) commands(f model.Flow) (server, client []string, err error) {
	family := familyOf(f)
	for _, node := range []string{f.From, f.To} {
		if !p.address[node](family).IsValid() {
			return nil, nil, &model.FieldError{Field: "family", Want: fmt.Sprintf("the %s has no address of IPv%d here; a lab's link with an MTU below 1280 B has no IPv6", node, family)}
		}
	}
	words := map[string]string{
		"{server}": p.address[f.From](family).String(), "{client}": p.address[f.To](family).String(), "{bytes}": strconv.FormatUint(f.Bytes, 10),
	}
	fill := func(line string) ([]string, error) {
		list, err := lab.SplitWords(line)
		for i := range list {
			for name, value := range words {
				list[i] = strings.ReplaceAll(list[i], name, value)
			}
		}
		return list, err
	}
	if server, err = fill(f.Commands.Server); err != nil {
		return nil, nil, &model.FieldError{Field: "--exec-server", Want: err.Error()}
	}
	if client, err = fill(f.Commands.Client); err != nil {
		return nil, nil, &model.FieldError{Field: "--exec-client", Want: err.Error()}
	}
	return server, client, nil
}
