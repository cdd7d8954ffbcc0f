// Package sdk is what the author of a wevalr plugin in Go imports.
//
// A plugin is a main package that registers itself and is built with
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared
//
// The smallest one:
//
//	func init() {
//		sdk.Register(sdk.Plugin{Scorers: map[string]sdk.Scorer{"correct": correct}})
//	}
//
//	func correct(r sdk.ScoreRequest) ([]sdk.Score, error) {
//		return []sdk.Score{sdk.Binary(r.Episode.Completion == r.Task.Target)}, nil
//	}
//
//	func main() {}
//
// Compiled natively the same code runs in `go test` and under a debugger: package sdktest plays the
// host through [Emulate].
//
// # Concurrency
//
// The host makes one call at a time. Within a rollout, goroutines may share the [Env]; goroutines
// that outlive a call stand still. Nothing else here is meant for several goroutines.
//
// # Ownership
//
// Requests are decoded into memory of the guest's own: keep what you like, but know that a scorer's
// every call starts from the state that Init left.
//
// # Cancellation
//
// There is none to handle: a guest whose call is cancelled is gone. A call to the env-server that
// is cancelled ends with [ErrCancelled], and the guest lives on.
//
// # Errors
//
// A returned error becomes the plugin's own failure: [*Error] as it is, an env error with the facts
// it carries, any other with code "error". A panic is a trap, reported with its text. The log, the
// assets and the env-server can be used while a call is active, so not from a package's init.
package sdk

import "github.com/wevalr/wevalr/plugins/abi"

// The plain data of the ABI, as plugins see it.
type (
	// Task is one item to be solved.
	Task = abi.Task
	// Episode is the view of an episode that the manifest asks for.
	Episode = abi.Episode
	// Message is one message of an episode.
	Message = abi.Message
	// ToolCall is a call that the model asked for.
	ToolCall = abi.ToolCall
	// Score is one number, or nil for skipped, that a scorer gives.
	Score = abi.Score
	// ScoreRequest is what a scorer gets.
	ScoreRequest = abi.ScoreRequest
	// GroupRequest is what a group scorer gets: all finished rollouts of one task.
	GroupRequest = abi.ScoreGroupRequest
	// RolloutRequest is what a driven rollout gets.
	RolloutRequest = abi.RolloutRequest
	// EnvRequest is what a call to the env-server may say.
	EnvRequest = abi.EnvRequest
)

// Scorer scores one (task, episode). It must depend on its request and the options only.
type Scorer func(ScoreRequest) ([]Score, error)

// GroupScorer scores all rollouts of one task together.
type GroupScorer func(GroupRequest) ([]Score, error)

// Plugin says what a plugin can do; what is nil it cannot. The manifest must declare the same.
type Plugin struct {
	// Init takes the options, before any other call.
	Init func(*Options) error
	// TaskCount is how many tasks there are, asked after Init. nil or negative: not known beforehand.
	TaskCount func() (int, error)
	// Tasks gives at most limit tasks from where cursor stands ("" = the beginning), and the cursor of
	// the next page, "" at the end. Calls may meet a fresh instance: all state is in the cursor.
	// See [Page] and [OpenLines].
	Tasks func(cursor string, limit int) (tasks []Task, next string, err error)
	// Rollout drives one rollout.
	Rollout func(*Env, RolloutRequest) (Rollout, error)
	// Scorers and GroupScorers are found by the names in the manifest.
	Scorers      map[string]Scorer
	GroupScorers map[string]GroupScorer
}

// Rollout is what a driven rollout came to: the handles whose episodes make it up, all of them open
// and finished with an episode, and the position in Episodes of the one that was selected.
type Rollout struct {
	Episodes []*Handle
	Selected int
	// Scores are those of the manifest's scorers of kind "driver".
	Scores []Score
}

// registered is the plugin of this module: one a module, set before main.
var registered *Plugin

// Register makes p the plugin of this module. Call it once, from init.
func Register(p Plugin) {
	if registered != nil {
		panic("sdk: Register called twice")
	}
	registered = &p
}

// Binary is a score of 1 or 0.
func Binary(ok bool) Score {
	if ok {
		return Number(1)
	}
	return Number(0)
}

// Number is a score of v. NaN and Inf are refused by the host.
func Number(v float64) Score { return Score{Value: &v} }

// Skipped is no score, which is not 0: it is counted apart.
func Skipped(why string) Score { return Score{Explanation: why} }
