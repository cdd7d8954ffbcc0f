package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/wevalr/wevalr/host/failure"
)

// maxIndex bounds a rollout's index: a broken line must not ask for memory.
const maxIndex = 1 << 20

// The values of "t" in journal.jsonl.
const (
	recOpen     = "open"
	recDispatch = "dispatch"
	recFinish   = "finish"
	recServer   = "server"
	recClose    = "close"
)

// Usage is what a rollout used. A nil Cost is unknown.
type Usage struct {
	InputTokens  int64    `json:"input_tokens"`
	OutputTokens int64    `json:"output_tokens"`
	Cost         *float64 `json:"cost"`
}

// plus adds v to u; a cost that is known stays known.
func (u Usage) plus(v Usage) Usage {
	u.InputTokens += v.InputTokens
	u.OutputTokens += v.OutputTokens
	if v.Cost != nil {
		c := *v.Cost
		if u.Cost != nil {
			c += *u.Cost
		}
		u.Cost = &c
	}
	return u
}

// Ref is where an episode's line stands; Len leaves out its newline. The zero Ref is none.
type Ref struct {
	File string `json:"file"`
	Off  int64  `json:"off"`
	Len  int64  `json:"len"`
	CRC  uint32 `json:"crc32c"`
}

// Finish is the end of one try of a rollout. Try counts from 1.
type Finish struct {
	Key     string           `json:"key"`
	Index   int              `json:"index"`
	Try     int              `json:"try"`
	Outcome failure.Outcome  `json:"outcome"`
	Failure *failure.Failure `json:"failure,omitempty"`
	Usage   Usage            `json:"usage"`
	// Rewards are the env-server's own numbers, score × weight; nil: its scoring did not run.
	Rewards map[string]*float64 `json:"rewards,omitempty"`
	Start   time.Time           `json:"start"`
	End     time.Time           `json:"end"`
	// Episode is filled in by [Run.Finish].
	Episode Ref `json:"episode,omitzero"`
}

// check says what is wrong with f, with or without an episode.
func (f *Finish) check(episode bool) error {
	switch f.Outcome {
	case failure.Completed, failure.Limit:
		if !episode {
			return fmt.Errorf("outcome %s without an episode", f.Outcome)
		}
	case failure.Errored, failure.Dropped:
		if f.Failure == nil {
			return fmt.Errorf("outcome %s without a failure", f.Outcome)
		}
	default:
		return fmt.Errorf("unknown outcome %q", f.Outcome)
	}
	return nil
}

// The values of ServerEvent.Event that the run itself reads; others are kept as they are.
const (
	ServerStarted = "started"
	ServerReady   = "ready"
	ServerExited  = "exited"
)

// ServerEvent is a point in the life of an env-server. Code and Signal exclude each other and stand
// with ServerExited only.
type ServerEvent struct {
	At         time.Time `json:"-"`
	Event      string    `json:"event,omitempty"`
	Attempt    int       `json:"attempt,omitempty"` // filled in
	Instance   int       `json:"instance,omitempty"`
	Generation int       `json:"generation,omitempty"`
	PID        int       `json:"pid,omitempty"`
	Code       *int      `json:"code,omitempty"`
	Signal     *int      `json:"signal,omitempty"`
	UptimeS    float64   `json:"uptime_s,omitempty"`
	Log        string    `json:"log,omitempty"` // relative to the run directory
	Reason     string    `json:"reason,omitempty"`
}

// CloseEvent is the end of an attempt that wevalr survives.
type CloseEvent struct {
	At       time.Time `json:"-"`
	ExitCode int       `json:"exit_code"`
	Reason   string    `json:"reason,omitempty"`
}

// head begins every line of the journal.
type head struct {
	T  string    `json:"t"`
	At time.Time `json:"at"`
}

type openLine struct {
	head
	Attempt int `json:"attempt"`
	PID     int `json:"pid"`
}

type dispatchLine struct {
	head
	Key   string `json:"key"`
	Index int    `json:"index"`
	Try   int    `json:"try"`
}

type finishLine struct {
	head
	Finish
}

type serverLine struct {
	head
	ServerEvent
}

type closeLine struct {
	head
	CloseEvent
}

// record is any line of the journal: no two of its parts share a name but attempt and pid.
type record struct {
	head
	Finish
	ServerEvent
}

// parseRecord reads a line of the journal and checks what it says by itself.
func parseRecord(line []byte) (*record, error) {
	var r record
	if err := json.Unmarshal(line, &r); err != nil {
		return nil, err
	}
	switch r.T {
	case recOpen, recServer, recClose:
	case recDispatch, recFinish:
		if r.Key == "" || r.Index < 0 || r.Index >= maxIndex || r.Try < 1 {
			return nil, fmt.Errorf("%s of rollout %q[%d] try %d", r.T, r.Key, r.Index, r.Try)
		}
		if r.T == recDispatch {
			break
		}
		ref := r.Episode
		if err := r.check(ref != Ref{}); err != nil {
			return nil, err
		}
		if (ref != Ref{}) && (ref.File != episodeFile(r.Outcome) || ref.Off < 0 || ref.Len < 2 || ref.Len > maxEpisode || ref.Off > 1<<60) {
			return nil, fmt.Errorf("episode %+v of an outcome %s", ref, r.Outcome)
		}
	case "":
		return nil, errors.New("no record type")
	default:
		return nil, fmt.Errorf("unknown record type %q", r.T)
	}
	return &r, nil
}

// episodeFile is where episodes of an outcome go.
func episodeFile(o failure.Outcome) string {
	if o.Finished() {
		return TracesFile
	}
	return ErroredFile
}
