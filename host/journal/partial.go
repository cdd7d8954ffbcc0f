package journal

import (
	"encoding/json"
	"fmt"
)

// maxKept bounds a partial line and a raw reply, in bytes.
const maxKept = 8 << 20

// Partial is what had arrived of a try that never ended. It is never scored.
type Partial struct {
	Key        string            `json:"key"`
	Index      int               `json:"index"`
	Try        int               `json:"try"`
	Generation int               `json:"generation"`
	Reason     string            `json:"reason"`
	Traces     []json.RawMessage `json:"traces"`
	// Truncated says that traces past 8 MiB were left out.
	Truncated bool `json:"truncated,omitempty"`
}

// Partial appends to partial.jsonl, at most 8 MiB a line: traces past that are left out. It is queued:
// a later write or Close says when it could not be written.
func (r *Run) Partial(p Partial) error {
	room := maxKept - 4096
	for i, t := range p.Traces {
		if room -= len(t) + 1; room < 0 {
			p.Traces, p.Truncated = p.Traces[:i], true
			break
		}
	}
	line, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("journal: partial: %w", err)
	}
	return r.queueLine(&entry{to: toPartial, line: line})
}

// Raw keeps a reply that could not be decoded (its first 8 MiB) and gives its place relative to the
// run directory.
func (r *Run) Raw(key string, index, try int, reply []byte) (string, error) {
	task, ok := r.Tasks().Ordinal(key)
	if !ok {
		return "", &StateError{key, index, try, "no such task"}
	}
	if err := r.root.MkdirAll(RawDir, 0o755); err != nil {
		return "", &DiskError{"make", RawDir, err}
	}
	name := fmt.Sprintf("%s/task_%d-rollout_%d-try_%d.msgpack", RawDir, task, index, try)
	if err := r.root.WriteFile(name, reply[:min(len(reply), maxKept)], 0o644); err != nil {
		return "", &DiskError{"write", name, err}
	}
	return name, nil
}
