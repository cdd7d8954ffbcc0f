package rollout

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"math"
	"time"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/journal"
	"github.com/wevalr/wevalr/host/wire"
)

// record makes a try durable, then hands a finished one to the scorers. It reports false when the
// attempt is over, else how the try ended as the journal has it.
func (e *engine) record(ctx context.Context, j *job, b brought, end ending) (ending, bool) {
	var line []byte
	var own map[string]*float64
	if b.episode != nil {
		own = rewards(b.episode)
		var err error
		if line, err = e.line(b.episode); err != nil {
			end = ending{failure.Errored, failure.New(failure.Server, "protocol", "episode: %v", err)}
			line = nil
		}
	}
	end.failure = e.masked(end.failure)
	end.failure = e.keepRaw(j, b.raw, end.failure)
	e.keepLost(j, b.lost, end.failure)
	// What was done is recorded even while everything is being cancelled.
	_, err := e.Journal.Finish(context.WithoutCancel(ctx), journal.Finish{
		Key: j.task.Key, Index: j.index, Try: j.try, Outcome: end.outcome, Failure: end.failure,
		Usage: usage(b.usage), Rewards: own, Start: j.start, End: time.Now(),
	}, line)
	if err != nil {
		e.fail(err)
		return ending{failure.Errored, failure.Of(err)}, false
	}
	if end.outcome.Finished() {
		e.scoring.put(item{ordinal: j.ordinal, index: j.index, task: j.task, line: line, size: len(line) + j.size})
	}
	return end, true
}

// usage is the same counts in the journal's words; a cost that is no number is not known.
func usage(u wire.Usage) journal.Usage {
	if u.Cost != nil && !finite(*u.Cost) {
		u.Cost = nil
	}
	return journal.Usage(u)
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// rewards are the server's own numbers of the selected trace, as they count: score × weight; nil where
// its scoring did not run or gave no number.
func rewards(e *wire.Episode) map[string]*float64 {
	t := e.Selected()
	if t == nil || len(t.Rewards) == 0 {
		return nil
	}
	out := make(map[string]*float64, len(t.Rewards))
	for name, r := range t.Rewards {
		out[name] = nil
		if r == nil {
			continue
		}
		if v := r.Score * r.Weight; finite(v) {
			out[name] = &v
		}
	}
	return out
}

// line is an episode as it is written and scored.
func (e *engine) line(ep *wire.Episode) ([]byte, error) {
	line, err := ep.AppendJSON(nil)
	if err == nil && e.Mask != nil {
		line = e.Mask(line)
	}
	return line, err
}

// masked is f without secrets.
func (e *engine) masked(f *failure.Failure) *failure.Failure {
	if f == nil || e.Mask == nil {
		return f
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false) // a secret is looked for as it is
	var out failure.Failure
	if enc.Encode(f) != nil || json.Unmarshal(e.Mask(text.Bytes()), &out) != nil {
		return &failure.Failure{Source: f.Source, Kind: f.Kind, Retryable: f.Retryable, Message: "its text cannot be masked"}
	}
	return &out
}

// keepRaw writes, best effort, a reply that could not be decoded, and says where.
func (e *engine) keepRaw(j *job, raw []byte, f *failure.Failure) *failure.Failure {
	if len(raw) == 0 || e.Mask != nil && e.MaskRaw == nil {
		return f
	}
	if e.MaskRaw != nil {
		raw = e.MaskRaw(raw)
	}
	place, err := e.Journal.Raw(j.task.Key, j.index, j.try, raw)
	if err != nil {
		e.Logger.Warn("reply not kept", slog.String("task", j.task.Key), slog.Any("err", err))
		return f
	}
	if f == nil { // a plugin went on without it
		return nil
	}
	kept := *f
	kept.Message += "; the reply is kept in " + place
	return &kept
}

// keepLost writes, best effort, what a person may want to look at of runs that never ended. It is
// never scored.
func (e *engine) keepLost(j *job, all []lost, end *failure.Failure) {
	for _, l := range all {
		p := journal.Partial{Key: j.task.Key, Index: j.index, Try: j.try}
		if l.why == nil {
			l.why = end
		}
		if l.why != nil {
			p.Reason = l.why.Kind
			if l.why.Server != nil {
				p.Generation = l.why.Server.Generation
			}
		}
		for i := range l.traces {
			text := l.traces[i].AppendJSON(nil)
			if e.Mask != nil {
				text = e.Mask(text)
			}
			p.Traces = append(p.Traces, json.RawMessage(text))
		}
		if err := e.Journal.Partial(p); err != nil {
			e.Logger.Warn("partial episode not kept", slog.String("task", j.task.Key), slog.Any("err", err))
		}
	}
}
