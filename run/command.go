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
func (r *runner) execCommands(ctx context.Context, t model.Trial) (model.Result, error) {
	f := t.Flows[0]
	if r.site.lab == nil {
		return model.Result{}, refuse("--exec-server, --exec-client",
			"run in the nodes of a lab; lab:loopback has none")
	}
	result := model.Result{Cell: t.Cell, Repeat: t.Repeat, State: model.Valid, Engine: "commands",
		Series: []model.Series{}, Started: time.Now().UTC().Truncate(time.Millisecond)}
	server, client, err := r.site.commands(f)
	if err != nil {
		return result, err
	}
	longest := t.Timing.Measure()
	along := r.site.watch(&fleet.Trial{Number: 1})
	defer r.closeWatch(along)
	watch := observe.StartWatch()
	ending, why, err := runPair(ctx, r.site.lab, f, server, client, longest)
	cpu, series := watch.Stop()
	path := along.collect(fleet.Outcome{})
	switch {
	case ctx.Err() != nil:
		why = model.Reasons{{Code: model.Interrupted}}
	case err != nil:
		return result, err
	}
	flow := model.FlowResult{
		Name: f.Name, Protocol: model.TCP, From: f.From, To: f.To, PayloadBytes: f.PayloadBytes, Streams: f.Streams,
		FrameBytes: model.FrameBytes(model.TCP, cmp.Or(f.Family, 4), f.PayloadBytes),
		DurationS:  ending.Duration.Seconds(), SenderCPU: cpu, ReceiverCPU: cpu,
		Ledger: model.Ledger{Lines: []model.Line{}, Checks: []model.Check{}},
		TCP: &model.TCPFacts{Control: f.Control, Completion: &model.Completion{
			Bytes: f.Bytes, Done: why == nil && !ending.Stopped, Seconds: ending.Duration.Seconds(),
			By: model.ByExit}},
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
	result.Links = path.links
	why = append(why, path.doubts...)
	result.Why, result.State = why, why.State()
	return result, nil
}

// runPair runs server and client. why is what makes the trial invalid; the error
// would be the same in every other trial.
func runPair(ctx context.Context, l *lab.Lab, f model.Flow, server, client string,
	longest time.Duration) (ending lab.Ending, why model.Reasons, err error) {
	from, err := l.Node(f.From)
	if err != nil {
		return ending, nil, err
	}
	to, err := l.Node(f.To)
	if err != nil {
		return ending, nil, err
	}
	serving, err := from.Start(ctx, lab.ProgramOptions{Command: server, Control: f.Control})
	if err != nil {
		return ending, nil, err
	}
	defer func() {
		_, stopping := serving.Stop()
		err = errors.Join(err, stopping)
	}()
	if _, err := serving.WaitListening(ctx, 0); err != nil {
		return ending, nil, fmt.Errorf("--exec-server: %w", err)
	}
	limit, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	asking, err := to.Start(limit, lab.ProgramOptions{Command: client, Control: f.Control})
	if err != nil {
		return ending, nil, err
	}
	ending, err = asking.Wait()
	if err != nil {
		return ending, nil, err
	}
	if !ending.Stopped && ending.ExitCode != 0 {
		text := fmt.Sprint(ending)
		if said := asking.Tail(); len(said) > 0 {
			text += "; it said: " + strings.Join(said, " / ")
		}
		why = model.Reasons{{Code: model.ClientFailed, Name: asking.Name(), Text: text}}
	}
	select {
	case <-serving.Done():
		died, _ := serving.Wait()
		why = withServer(why, serving.Name(), died, ending)
	default:
	}
	return ending, why, nil
}

// withServer adds the reason that the server ended before its client. A server that served
// its client and ended with exit code 0 is fine.
func withServer(why model.Reasons, server string, died, client lab.Ending) model.Reasons {
	if died.ExitCode == 0 && client.ExitCode == 0 && !client.Stopped {
		return why
	}
	return append(why, model.Reason{Code: model.ServerEnded, Name: server, Text: fmt.Sprint(died)})
}

// commands returns the command lines of server and client, with addresses filled in.
func (s *site) commands(f model.Flow) (server, client string, err error) {
	from, err := s.end(f.From).at(cmp.Or(f.Family, 4))
	if err != nil {
		return "", "", err
	}
	to, err := s.end(f.To).at(cmp.Or(f.Family, 4))
	if err != nil {
		return "", "", err
	}
	fill := strings.NewReplacer("{server}", from.String(), "{client}", to.String(), "{bytes}", strconv.FormatUint(f.Bytes, 10))
	return fill.Replace(f.Commands.Server), fill.Replace(f.Commands.Client), nil
}
