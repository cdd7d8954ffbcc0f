package rollout

import (
	"encoding/json"
	"log/slog"

	"github.com/wevalr/wevalr/host/journal"
)

// keepLoose writes, best effort, what a person may want to look at of a try without an episode: what
// had arrived of it, and a reply that could not be decoded. Neither is ever scored.
func (e *engine) keepLoose(r recorded) {
	if len(r.raw) > 0 {
		if place, err := e.Journal.Raw(r.task.Key, r.index, r.no, r.raw); err == nil && r.failure != nil {
			r.failure.Message += "; the reply is kept in " + place
		}
	}
	if r.episode != nil || len(r.partial) == 0 {
		return
	}
	p := journal.Partial{Key: r.task.Key, Index: r.index, Try: r.no}
	if r.failure != nil {
		p.Reason = r.failure.Kind
		if r.failure.Server != nil {
			p.Generation = r.failure.Server.Generation
		}
	}
	for i := range r.partial {
		line := r.partial[i].AppendJSON(nil)
		if e.Mask != nil {
			line = e.Mask(line)
		}
		p.Traces = append(p.Traces, json.RawMessage(line))
	}
	if err := e.Journal.Partial(p); err != nil {
		e.Logger.Warn("partial episode not kept", slog.String("task", r.task.Key), slog.Any("err", err))
	}
}
