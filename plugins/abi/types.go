package abi

// Task is one item to be solved. Only Data travels to the env-server; the rest is the scorers'.
type Task struct {
	// Key is unique in its task set: [A-Za-z0-9._/:-]{1,200} without "..".
	Key      string         `json:"key" msgpack:"key"`
	Data     map[string]any `json:"data" msgpack:"data"`
	Target   any            `json:"target,omitempty" msgpack:"target,omitempty"`
	Choices  []string       `json:"choices,omitempty" msgpack:"choices,omitempty"`
	Cluster  string         `json:"cluster,omitempty" msgpack:"cluster,omitempty"`
	Group    string         `json:"group,omitempty" msgpack:"group,omitempty"`
	Metadata map[string]any `json:"metadata,omitempty" msgpack:"metadata,omitempty"`
}

// InitRequest is op 1.
type InitRequest struct {
	Options map[string]any `json:"options" msgpack:"options"`
	Host    HostInfo       `json:"host" msgpack:"host"`
}

// HostInfo tells a guest who runs it.
type HostInfo struct {
	Name     string `json:"name" msgpack:"name"`
	Version  string `json:"version" msgpack:"version"`
	ABIMajor int    `json:"abi_major" msgpack:"abi_major"`
	ABIMinor int    `json:"abi_minor" msgpack:"abi_minor"`
}

// InitResponse answers op 1. Tasks is the number of tasks where it is known, else nil.
type InitResponse struct {
	Tasks *int64 `json:"tasks,omitempty" msgpack:"tasks,omitempty"`
}

// TasksRequest is op 2. Cursor is "" at first, then the previous Next; Limit is the most tasks that
// the host wants in one answer.
type TasksRequest struct {
	Cursor string `json:"cursor" msgpack:"cursor"`
	Limit  int64  `json:"limit" msgpack:"limit"`
}

// TasksResponse answers op 2. Next is "" at the end.
type TasksResponse struct {
	Tasks []Task `json:"tasks" msgpack:"tasks"`
	Next  string `json:"next,omitempty" msgpack:"next,omitempty"`
}

// RolloutRequest is op 3. Seed is derived per rollout.
type RolloutRequest struct {
	Task  Task  `json:"task" msgpack:"task"`
	Index int64 `json:"index" msgpack:"index"`
	Seed  int64 `json:"seed" msgpack:"seed"`
}

// RolloutResponse answers op 3: the handles whose episodes make up the rollout, and which of them
// (a position in Episodes) is the selected one.
type RolloutResponse struct {
	Episodes []int64 `json:"episodes" msgpack:"episodes"`
	Selected int64   `json:"selected" msgpack:"selected"`
	Scores   []Score `json:"scores,omitempty" msgpack:"scores,omitempty"`
}

// ScoreRequest is op 4.
type ScoreRequest struct {
	Scorer  string  `json:"scorer" msgpack:"scorer"`
	Task    Task    `json:"task" msgpack:"task"`
	Episode Episode `json:"episode" msgpack:"episode"`
	Seed    int64   `json:"seed" msgpack:"seed"`
}

// ScoreGroupRequest is op 5: all finished rollouts of one task.
type ScoreGroupRequest struct {
	Scorer   string    `json:"scorer" msgpack:"scorer"`
	Task     Task      `json:"task" msgpack:"task"`
	Episodes []Episode `json:"episodes" msgpack:"episodes"`
	Seed     int64     `json:"seed" msgpack:"seed"`
}

// ScoreResponse answers ops 4 and 5.
type ScoreResponse struct {
	Scores []Score `json:"scores" msgpack:"scores"`
}

// Score is one number that a scorer gives. A nil Value means skipped, which is not 0. NaN, Inf and
// values outside the declared range are plugin errors. Name "" is the scorer's own name.
type Score struct {
	Name        string         `json:"name,omitempty" msgpack:"name,omitempty"`
	Value       *float64       `json:"value" msgpack:"value"`
	Label       string         `json:"label,omitempty" msgpack:"label,omitempty"`
	Explanation string         `json:"explanation,omitempty" msgpack:"explanation,omitempty"`
	Answer      string         `json:"answer,omitempty" msgpack:"answer,omitempty"`
	Metadata    map[string]any `json:"metadata,omitempty" msgpack:"metadata,omitempty"`
}

// Error is the `err` of an envelope: what a plugin says when it fails on purpose.
type Error struct {
	Code      string         `json:"code" msgpack:"code"`
	Message   string         `json:"message" msgpack:"message"`
	Retryable bool           `json:"retryable,omitempty" msgpack:"retryable,omitempty"`
	Data      map[string]any `json:"data,omitempty" msgpack:"data,omitempty"`
}

// EnvRequest is what a guest passes to env_start. Anything more is INVALID: client, model and
// headers are the host's. Sampling keys must be granted.
type EnvRequest struct {
	TaskData map[string]any `json:"task_data" msgpack:"task_data"`
	Sampling map[string]any `json:"sampling,omitempty" msgpack:"sampling,omitempty"`
}

// EnvReply is what env_take gives: an envelope's content for one finished handle. Exactly one of
// the two is set.
type EnvReply struct {
	Episode *Episode  `json:"ok,omitempty" msgpack:"ok,omitempty"`
	Err     *EnvError `json:"err,omitempty" msgpack:"err,omitempty"`
}

// EnvError is why an env call has no episode.
type EnvError struct {
	Status  Status       `json:"status" msgpack:"status"`
	Source  string       `json:"source" msgpack:"source"`
	Kind    string       `json:"kind" msgpack:"kind"`
	Message string       `json:"message" msgpack:"message"`
	Server  *ServerFacts `json:"server,omitempty" msgpack:"server,omitempty"`
}

func (e *EnvError) Error() string { return e.Source + ": " + e.Kind + ": " + e.Message }

// ServerFacts are the facts of an env-server's death as a plugin may see them: no host paths (Log is
// relative to the run directory). Code and Signal exclude each other.
type ServerFacts struct {
	Generation int64    `json:"generation" msgpack:"generation"`
	Code       *int64   `json:"code,omitempty" msgpack:"code,omitempty"`
	Signal     string   `json:"signal,omitempty" msgpack:"signal,omitempty"`
	UptimeS    float64  `json:"uptime_s" msgpack:"uptime_s"`
	Log        string   `json:"log,omitempty" msgpack:"log,omitempty"`
	Tail       []string `json:"tail,omitempty" msgpack:"tail,omitempty"`
}
