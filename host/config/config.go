package config

import "time"

// Config is an eval file as resolved: defaults applied, paths absolute, every check passed. It is
// immutable and holds no secret. A field's tags are the whole schema: `toml` its key, `default`,
// `check` (see bind.go) and `resume:"free"` for a key that may differ when a run is resumed.
type Config struct {
	Version int      `toml:"version"` // always 1
	Name    string   `toml:"name" check:"required,name"`
	Tasks   Tasks    `toml:"tasks"`
	Score   []Score  `toml:"score"`   // empty: the env-server's rewards count
	Rollout Rollout  `toml:"rollout"` // empty: the host drives
	Model   Model    `toml:"model"`
	Prompt  Prompt   `toml:"prompt"`
	Server  Server   `toml:"server" resume:"free"`
	Run     Run      `toml:"run" resume:"free"`
	Plugins []Plugin `toml:"plugin"`

	origins origins
}

// Tasks says which tasks there are, how many of them are taken and how often.
type Tasks struct {
	Plugin      string `toml:"plugin" check:"required"`                        // alias of a [[plugin]]
	NumTasks    int    `toml:"num_tasks,omitzero" check:"min=1" resume:"free"` // 0: all
	NumRollouts int    `toml:"num_rollouts" default:"1" check:"min=1" resume:"free"`
	Select      string `toml:"select,omitzero"` // only keys that match, as path.Match does; "": all
	Shuffle     bool   `toml:"shuffle"`
	Seed        int64  `toml:"seed"`
}

// Score names one scorer, or all of a plugin.
type Score struct {
	Plugin  string         `toml:"plugin" check:"required"` // alias of a [[plugin]]
	Scorer  string         `toml:"scorer,omitzero"`         // "": all scorers of the plugin
	Options map[string]any `toml:"options,omitzero"`        // override the plugin's
}

// Rollout names the plugin that drives rollouts itself.
type Rollout struct {
	Plugin string `toml:"plugin,omitzero"` // alias of a [[plugin]]; "": the host drives
}

// Model is what the env-server is to call.
type Model struct {
	Name       string         `toml:"name" check:"required"` // offline/…: answered by the embedded env-server alone
	Client     Client         `toml:"client"`
	Sampling   map[string]any `toml:"sampling,omitzero"` // int64, float64, string, bool, []any, map[string]any
	Options    ModelOptions   `toml:"options,omitzero"`
	MaxRetries int            `toml:"max_retries" default:"2" check:"min=0" resume:"free"` // embedded env-server, per model call
}

// Offline reports whether the embedded env-server answers by itself, without a network.
func (m *Model) Offline() bool { return isOffline(m.Name) }

// Client is the model endpoint, as the wire has it. Keys go by the name of their variable only.
type Client struct {
	Type           string            `toml:"type" default:"eval" check:"enum=eval|train"`
	BaseURL        string            `toml:"base_url,omitzero"`
	APIKeyVar      string            `toml:"api_key_var,omitzero" check:"var" resume:"free"`
	Headers        map[string]string `toml:"headers,omitzero"`
	HeadersFromEnv map[string]string `toml:"headers_from_env,omitzero"` // header → variable
	Timeout        ClientTimeout     `toml:"timeout,omitzero" resume:"free"`
	Renderer       map[string]any    `toml:"renderer,omitzero"`                              // train only
	RendererModel  string            `toml:"renderer_model_name,omitzero"`                   // train only
	Multiplex      int               `toml:"multiplex,omitzero" check:"min=1" resume:"free"` // train only; 0: the server's
}

// ClientTimeout is in seconds; nil: the server's own (30 to connect, the others for ever).
type ClientTimeout struct {
	Connect *float64 `toml:"connect" check:"min=0"`
	Read    *float64 `toml:"read" check:"min=0"`
	Write   *float64 `toml:"write" check:"min=0"`
	Pool    *float64 `toml:"pool" check:"min=0"`
}

// ModelOptions are for the offline models of the embedded env-server.
type ModelOptions struct {
	File      string        `toml:"file,omitzero" check:"path"`              // offline/replay: JSONL of completions, absolute
	WrongRate float64       `toml:"wrong_rate,omitzero" check:"min=0,max=1"` // offline/demo
	Latency   time.Duration `toml:"latency,omitzero" check:"min=0"`          // offline/demo
}

// Prompt is put around what the task brings.
type Prompt struct {
	System   string `toml:"system,omitzero"`
	Template string `toml:"template,omitzero"` // holds {{prompt}}; "": the prompt alone
}

// Server is the env-server. Without Command and Address it is the embedded one.
type Server struct {
	Command       []string      `toml:"command,omitzero"` // "{address}" is replaced by the endpoint
	Address       string        `toml:"address,omitzero"` // of a server that somebody else runs
	Env           []string      `toml:"env,omitzero" check:"var"`
	Cwd           string        `toml:"cwd" default:"." check:"path"`
	Transport     string        `toml:"transport" default:"ipc" check:"enum=ipc|tcp"`
	Instances     int           `toml:"instances" default:"1" check:"min=1"`
	StartTimeout  time.Duration `toml:"start_timeout" default:"600s" check:"positive"`
	Warm          string        `toml:"warm" default:"auto" check:"enum=auto|on|off"`
	OnExit        string        `toml:"on_exit" default:"fail" check:"enum=fail|restart"`
	MaxRestarts   int           `toml:"max_restarts" default:"5" check:"min=0"`
	RestartWindow time.Duration `toml:"restart_window" default:"10m" check:"positive"`
	OnWorkerExit  string        `toml:"on_worker_exit" default:"auto" check:"enum=auto|fail|warn"`
	SuspectAfter  time.Duration `toml:"suspect_after" default:"60s" check:"positive"`
	StallAfter    time.Duration `toml:"stall_after" default:"off" check:"off"` // 0: off
	FirstReply    time.Duration `toml:"first_reply" default:"off" check:"off"` // 0: off
	CancelGrace   time.Duration `toml:"cancel_grace" default:"10s" check:"min=0"`
	StopGrace     time.Duration `toml:"stop_grace" default:"30s" check:"min=0"`
	DrainLimit    time.Duration `toml:"drain_limit" default:"2s" check:"min=0"`
	Settle        time.Duration `toml:"settle" default:"2s" check:"min=0"`
	Containment   string        `toml:"containment" default:"auto" check:"enum=auto|cgroup|warden|group"`
	ReplyMaxMiB   int           `toml:"reply_max_mib" default:"1024" check:"min=1,max=1048576"`
}

// The kinds of env-server.
const (
	Embedded = "embedded"
	Command  = "command"
	Address  = "address"
)

// Kind is Embedded, Command or Address.
func (s *Server) Kind() string {
	switch {
	case s.Address != "":
		return Address
	case len(s.Command) > 0:
		return Command
	}
	return Embedded
}

// Run holds the limits and gates of one execution; none of them changes a result.
type Run struct {
	MaxConcurrent  int     `toml:"max_concurrent" default:"128" check:"min=1"`
	MaxErrorRate   float64 `toml:"max_error_rate" default:"0" check:"min=0,max=1"`
	Retries        int     `toml:"retries" default:"0" check:"min=0"`
	FailFast       bool    `toml:"fail_fast"`
	MinCoverage    float64 `toml:"min_coverage" default:"0.95" check:"min=0,max=1"`
	InstanceMiB    int     `toml:"instance_mib" default:"1024" check:"min=1,max=1048576"`
	ReplyBudgetMiB int     `toml:"reply_budget_mib" default:"2048" check:"min=1,max=1048576"`
}

// Plugin is one [[plugin]]: a module under an alias.
type Plugin struct {
	Name    string         `toml:"name" check:"name"`            // the alias; left out in the file: the manifest's name
	Source  string         `toml:"source" check:"required,path"` // .wasm file or source directory, absolute
	Grant   Grant          `toml:"grant,omitzero"`
	Options map[string]any `toml:"options,omitzero"` // int64, float64, string, bool, []any, map[string]any
	Limits  Limits         `toml:"limits,omitzero"`
}

// Grant is what the operator lets a plugin do; the zero value is nothing.
type Grant struct {
	Env     *EnvGrant         `toml:"env"`                      // in the file also true
	FS      map[string]string `toml:"fs,omitzero" check:"path"` // name → absolute directory
	Vars    []string          `toml:"vars,omitzero" check:"var"`
	Clock   bool              `toml:"clock,omitzero"`
	Random  bool              `toml:"random,omitzero"`
	TaskEnv []string          `toml:"task_env,omitzero"` // keys of a task's data
}

// EnvGrant lets a plugin drive rollouts itself.
type EnvGrant struct {
	Sampling []string `toml:"sampling,omitzero"` // sampling keys that it may set
}

// Limits cap what the manifest asks for; 0: the manifest's.
type Limits struct {
	MemoryMiB int    `toml:"memory_mib,omitzero" check:"min=1,max=4096"`
	Fuel      uint64 `toml:"fuel,omitzero" check:"min=1"` // a call; in the file also "2G" (K, M, G, T: powers of 1000)
}

// Plugin returns the [[plugin]] of that alias, or nil.
func (c *Config) Plugin(alias string) *Plugin {
	for i := range c.Plugins {
		if c.Plugins[i].Name == alias {
			return &c.Plugins[i]
		}
	}
	return nil
}
