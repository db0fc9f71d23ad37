package run

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"pelt/engine"
	"pelt/finding"
	"pelt/fleet"
	"pelt/model"
	"pelt/record"
	"pelt/record/disk"
	"pelt/record/tap"
)

// recording is the record of a run. Receivers of this process hand their packets to
// it; those of other hosts make blocks themselves, which come over the control
// connection. A nil recording records nothing.
type recording struct {
	path string
	taps *tap.Recorder
	file *disk.File // nil until open; nothing is tapped before

	mu     sync.Mutex
	trials uint32
	came   map[disk.Key]uint64 // packets, as streams that have ended told
	ended  map[disk.Key]int    // these streams
	total  record.End
}

// newRecording checks that a plan has something to record. It makes no file yet.
func newRecording(path string, p model.Plan) (*recording, error) {
	if path == "" {
		return nil, nil
	}
	if isMesh(p) {
		return nil, refuse("--record", "a mesh measures many pairs at once; record one: pelt curve fleet:FROM..TO")
	}
	if !p.Sends(model.UDP) {
		return nil, refuse("--record", "a record is of UDP packets, and this test sends none")
	}
	return &recording{path: path, came: map[disk.Key]uint64{}, ended: map[disk.Key]int{}}, nil
}

// checkNew refuses a file that exists: a resumed run would overwrite the record of its first
// part.
func (r *recording) checkNew() error {
	if r == nil {
		return nil
	}
	if info, err := os.Stat(r.path); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
		return refuse("--record",
			"%s is there already, and a run that goes on needs a file of its own for its further trials",
			filepath.Base(r.path))
	}
	return nil
}

func (r *recording) open(doc model.Document) error {
	if r == nil {
		return nil
	}
	opening, err := record.Append(nil, &record.Header{
		Format: record.Format, Run: doc.ID, Started: doc.Started, Tool: doc.Tool, Target: doc.Plan.Target,
		ResolutionNS: 1,
	})
	if err != nil {
		return err
	}
	if r.file, err = disk.Create(r.path, opening); err != nil {
		return err
	}
	r.taps = tap.New(tap.Chunks, func(p tap.Piece) { r.append(p) })
	return nil
}

func (r *recording) append(p tap.Piece) {
	k := disk.Key{Trial: p.Trial, Flow: p.Flow}
	if p.Ends != nil {
		r.mu.Lock()
		r.came[k] += p.Ends.Packets + p.Ends.Dropped
		r.ended[k]++
		r.mu.Unlock()
	}
	r.file.Append(k, p.Packets, p.Block)
}

func (r *recording) write(b record.Block) error {
	data, err := record.Append(nil, b)
	if err == nil {
		r.file.Append(disk.Key{}, 0, data)
	}
	return err
}

// agent is the record of an agent in this process, whose blocks nobody fetches.
func (r *recording) agent() func() engine.Recording {
	if r == nil {
		return nil
	}
	return func() engine.Recording { return nearRecording{r} }
}

// needsSockets is why sockets carry all flows of a run with a record; without a code there is none.
func (r *recording) needsSockets() (why model.Reason) {
	if r != nil {
		why.Code = model.FramesRecorded
	}
	return why
}

// begin names the flows of a trial that is about to run, and describes it in the file.
func (r *recording) begin(t model.Trial, s *site, placed *fleet.Trial, started time.Time) (trial uint32, err error) {
	if r == nil {
		return 0, nil
	}
	r.trials++
	trial = r.trials
	context := record.Trial{
		Trial: trial, Cell: t.Cell, Repeat: t.Repeat, Started: started.UTC().Truncate(time.Millisecond),
		Wire:    placed.Number,
		WarmupS: t.Timing.WarmupSeconds, MeasureS: t.Timing.MeasureSeconds,
	}
	may := map[string][]uint16{} // flows, by the agent that receives them
	for i := range placed.Flows {
		f := &placed.Flows[i]
		if f.Flow.Protocol != model.UDP {
			continue
		}
		f.Record = &model.RecordID{Trial: trial, Flow: uint16(i)}
		may[f.To] = append(may[f.To], uint16(i))
		pps, paced := f.Flow.Rate.PPS(f.Flow.PayloadBytes)
		if !paced {
			pps = 0
		}
		context.Flows = append(context.Flows, record.Flow{
			Flow: uint16(i), Wire: engine.NumberAfter(placed.Number, i), Name: f.Flow.Name, From: f.Flow.From, To: f.Flow.To,
			FromHost: s.end(f.Flow.From).agent.Host.Name, ToHost: s.end(f.Flow.To).agent.Host.Name,
			Family: familyOf(*f), PayloadBytes: f.Flow.PayloadBytes, RatePPS: pps, Streams: f.Flow.Streams,
			OneClock: placed.OneClock,
		})
	}
	if len(context.Flows) == 0 {
		return trial, nil
	}
	placed.Record = func(agent string, blocks []byte) error { return r.take(trial, may[agent], blocks) }
	return trial, r.write(&context)
}

// take checks and writes blocks of another host: no damaged block, and none of a flow that
// the host does not receive, gets into the file.
func (r *recording) take(trial uint32, flows []uint16, blocks []byte) error {
	var decoder record.Decoder
	for len(blocks) > 0 {
		b, block, rest, err := decoder.Split(blocks)
		if err != nil {
			return err
		}
		p := tap.Piece{Block: block}
		switch b := b.(type) {
		case *record.Packets:
			p.Trial, p.Flow, p.Packets = b.Trial, b.Flow, len(b.List)
		case *record.Stream:
			p.Trial, p.Flow, p.Ends = b.Trial, b.Flow, b
		default:
			return finding.NewFault(model.RecordStrange)
		}
		if p.Trial != trial || !slices.Contains(flows, p.Flow) {
			return finding.NewFault(model.RecordForeign)
		}
		r.append(p)
		blocks = rest
	}
	return nil
}

// discard marks the part of a trial that is not kept.
func (r *recording) discard(trial uint32) {
	if r == nil || trial == 0 {
		return
	}
	r.taps.End(trial)
	_ = r.write(&record.Void{Trial: trial}) // a number always marshals
}

// finish ends the record of a trial and adds to its result what was recorded.
func (r *recording) finish(trial uint32, placed fleet.Trial, out fleet.Outcome, result *model.Result) {
	if r == nil || trial == 0 {
		return
	}
	r.taps.End(trial)
	closed := record.Closed{Trial: trial, State: result.State, Why: result.Why}
	untold := map[*model.FlowResult]bool{} // the figures are not the whole trial's, for an end told none
	for i, f := range placed.Flows {
		if f.Record == nil {
			continue
		}
		k := disk.Key{Trial: trial, Flow: uint16(i)}
		written := r.file.Written(k)
		end := record.ClosedFlow{Flow: uint16(i), Recorded: written.Packets}
		own := slices.IndexFunc(result.Flows, func(x model.FlowResult) bool { return x.Name == f.Flow.Name })
		joined := slices.IndexFunc(result.Flows,
			func(x model.FlowResult) bool { return x.Name == model.PlanFlow(f.Flow.Name) })
		flow := &result.Flows[max(own, joined)]
		s, in := out.Flows[i].Send, out.Flows[i].Receive
		sent, heard := s != nil && s.Send != nil, in != nil && in.Receive != nil
		untold[flow] = untold[flow] || !sent || !heard
		if sent && heard && len(s.Send.Streams) == f.Flow.Streams {
			end.Attempted = s.Send.Streams // else what came after the last that was heard would be lost
		}
		if heard {
			t := in.Receive.Tally
			end.Received, end.Duplicates, end.Reordered, end.Late, end.JitterNS, end.Delay = t.Received, t.Duplicates,
				t.Reordered, t.Late, t.JitterNanos, t.Delay
		}
		r.mu.Lock()
		came := r.came[k]
		if r.ended[k] < f.Flow.Streams { // its host did not hand over all
			came = max(came, end.Received+end.Duplicates+end.Late)
			if !heard && own >= 0 {
				came = max(came, flow.Received)
			}
		}
		end.Dropped = came - min(written.Packets, came)
		r.total.Packets += written.Packets
		r.total.Dropped += end.Dropped
		r.mu.Unlock()
		closed.Flows = append(closed.Flows, end)
		if flow.Record == nil {
			flow.Record = &model.RecordFacts{File: filepath.Base(r.path), Trial: trial}
		}
		a := flow.Record
		a.Packets, a.Dropped, a.Bytes = a.Packets+written.Packets, a.Dropped+end.Dropped, a.Bytes+written.Bytes
	}
	for i := range result.Flows {
		flow := &result.Flows[i]
		a := flow.Record
		if a == nil {
			continue
		}
		if a.Packets > 0 {
			a.BytesPerPacket = float64(a.Bytes) / float64(a.Packets)
		}
		if !untold[flow] {
			flow.Ledger.Checks = append(flow.Ledger.Checks, recordCheck(*flow))
		}
		if a.Dropped > 0 {
			result.Warnings = append(result.Warnings, model.Reason{Code: model.RecordMisses, Flow: flow.Name})
		}
	}
	if err := r.write(&closed); err != nil {
		result.Warnings = append(result.Warnings, model.Reason{Code: model.RecordFailed, Text: model.SystemSaid(err)})
	}
	if err := r.file.Broken(); err != nil {
		result.Warnings = append(result.Warnings, model.Reason{Code: model.RecordFailed, Text: model.SystemSaid(err)})
	}
}

// recordCheck compares a flow's record with its account.
func recordCheck(f model.FlowResult) model.Check {
	came, told := f.Received+f.Duplicates+f.Late, f.Record.Packets+f.Record.Dropped
	return model.Check{Name: "recorded", Held: came == told, Law: "recorded",
		Counts: []uint64{f.Received, f.Duplicates, f.Late, f.Record.Packets, f.Record.Dropped}}
}

// close ends the file. Its error says why it is not whole.
func (r *recording) close(complete bool) error {
	if r == nil || r.file == nil {
		return nil
	}
	r.taps.Close()
	r.mu.Lock()
	end := r.total
	r.mu.Unlock()
	end.Complete = complete
	err := errors.Join(r.write(&end), r.file.Close())
	if err != nil {
		return fmt.Errorf("record %s: %w", r.path, err)
	}
	return nil
}

// nearRecording writes to the run's own file.
type nearRecording struct{ r *recording }

func (n nearRecording) Tap(o engine.Order, m engine.Meter) engine.Meter {
	return n.r.taps.Tap(*o.Record, o.Flow.Streams, o.Flow.PayloadBytes, m)
}
func (nearRecording) Finish() {}
func (nearRecording) Close()  {}
