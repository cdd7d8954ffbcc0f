package plugin

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/wevalr/wevalr/host/failure"
)

// ErrClosed is why a call ends when its plugin is closed under it.
var ErrClosed = errors.New("plugin is closed")

// ABIError says that a module is not one that this host can run: which step refused it, and what
// would help.
type ABIError struct {
	File, Step, Msg, Remedy string
	Cause                   error
}

func (e *ABIError) Error() string {
	s := join(e.File, e.Step, e.Msg)
	if e.Cause != nil {
		s = join(s, e.Cause.Error())
	}
	return hint(s, e.Remedy)
}

// Unwrap gives the engine's own error, if there was one.
func (e *ABIError) Unwrap() error { return e.Cause }

// Failure is plugin/abi.
func (e *ABIError) Failure() *failure.Failure {
	return failure.New(failure.Plugin, "abi", "%s", e.Error())
}

// ManifestError lists everything that is wrong with a manifest.
type ManifestError struct {
	File     string
	Problems []string
}

// shownProblems is how many of a manifest's problems its error shows.
const shownProblems = 50

func (e *ManifestError) Error() string {
	shown := e.Problems
	if more := len(shown) - shownProblems; more > 0 {
		shown = append(slices.Clone(shown[:shownProblems]), fmt.Sprintf("and %d more", more))
	}
	return join(e.File, "manifest", cut(strings.Join(shown, "\n"), 2*maxErrorText))
}

// Failure is plugin/abi.
func (e *ManifestError) Failure() *failure.Failure {
	return failure.New(failure.Plugin, "abi", "%s", e.Error())
}

// GrantProblem is one refusal. Add is the line that the eval file lacks, "" where nothing can be
// added.
type GrantProblem struct {
	Capability, Msg, Add string
}

// GrantError lists every difference between what a plugin asks for and what the operator grants
// that cannot be run.
type GrantError struct {
	Alias    string
	Problems []GrantProblem
}

func (e *GrantError) Error() string {
	lines := make([]string, 0, len(e.Problems))
	for _, p := range e.Problems {
		l := p.Capability + ": " + p.Msg
		if p.Add != "" {
			l += "\nadd to this [[plugin]]: " + p.Add
		}
		lines = append(lines, l)
	}
	return join(e.Alias, "grant", strings.Join(lines, "\n"))
}

// Failure is config/grant.
func (e *GrantError) Failure() *failure.Failure {
	return failure.New(failure.Config, "grant", "%s", e.Error())
}

// OptionError lists every option that the manifest does not allow.
type OptionError struct {
	Alias    string
	Problems []string
}

func (e *OptionError) Error() string {
	return join(e.Alias, "options", strings.Join(e.Problems, "\n"))
}

// Failure is config/option.
func (e *OptionError) Failure() *failure.Failure {
	return failure.New(failure.Config, "option", "%s", e.Error())
}

// DigestError says that a module's bytes are not the ones that were pinned.
type DigestError struct {
	File, Want, Got string
}

func (e *DigestError) Error() string {
	return join(e.File, "digest", fmt.Sprintf("sha256 is %s, pinned is %s", e.Got, e.Want))
}

// Failure is config/digest.
func (e *DigestError) Failure() *failure.Failure {
	return failure.New(failure.Config, "digest", "%s", e.Error())
}

// LimitError says that a call went over one of its limits. Kind is fuel, memory or deadline.
type LimitError struct {
	Alias, Op, Kind, Limit string
	// Log is the end of what the guest wrote before, scrubbed.
	Log string
}

func (e *LimitError) Error() string {
	return withLog(join(e.Alias, e.Op, e.Kind, "over the limit of "+e.Limit), e.Log)
}

// Failure is plugin/Kind.
func (e *LimitError) Failure() *failure.Failure {
	return failure.New(failure.Plugin, orElse(e.Kind, "fuel"), "%s", e.Error())
}

// TrapError says that a guest stopped in the middle of a call: a trap (Kind trap), or proc_exit
// (Kind exit), which is never a success, whatever its code.
type TrapError struct {
	Alias, Op, Kind, Msg string
	// Code is proc_exit's argument; only for Kind exit.
	Code uint32
	// Panic is the text that the guest passed to fail; Log the end of what it wrote; both scrubbed.
	Panic, Log string
	// Stack is the engine's trace, one frame a line.
	Stack string
}

func (e *TrapError) Error() string {
	return withLog(join(e.Alias, e.Op, orElse(e.Kind, "trap"), e.Msg, e.Panic), e.Log)
}

// Failure is plugin/trap or plugin/exit.
func (e *TrapError) Failure() *failure.Failure {
	return failure.New(failure.Plugin, orElse(e.Kind, "trap"), "%s", e.Error())
}

// ResponseError says that a guest answered, and that the answer breaks the contract.
type ResponseError struct {
	Alias, Op, Msg string
	Cause          error
}

func (e *ResponseError) Error() string {
	s := join(e.Alias, e.Op, "response", e.Msg)
	if e.Cause != nil {
		s = join(s, cut(scrub(e.Cause.Error()), maxErrorText))
	}
	return s
}

// Unwrap gives the decoder's error, if there was one.
func (e *ResponseError) Unwrap() error { return e.Cause }

// Failure is plugin/response.
func (e *ResponseError) Failure() *failure.Failure {
	return failure.New(failure.Plugin, "response", "%s", e.Error())
}

// GuestError is the plugin's own err envelope, scrubbed.
type GuestError struct {
	Alias, Op     string
	Code, Message string
	Retryable     bool
	Data          map[string]any
}

func (e *GuestError) Error() string { return join(e.Alias, e.Op, e.Code, e.Message) }

// Failure has the plugin's code as its kind, and is retryable when the plugin says so.
func (e *GuestError) Failure() *failure.Failure {
	return &failure.Failure{
		Source: failure.Plugin, Kind: orElse(e.Code, "error"), Message: e.Message,
		Retryable: e.Retryable, Data: e.Data,
	}
}

// BuildError says why a source folder did not become a module. Output is the toolchain's own text.
type BuildError struct {
	Dir, Step, Output, Remedy string
	Cause                     error
}

func (e *BuildError) Error() string {
	s := join(e.Dir, e.Step)
	if e.Cause != nil {
		s = join(s, e.Cause.Error())
	}
	if e.Output != "" {
		s += "\n" + e.Output
	}
	return hint(s, e.Remedy)
}

// Unwrap gives the cause.
func (e *BuildError) Unwrap() error { return e.Cause }

// Failure is config/build.
func (e *BuildError) Failure() *failure.Failure {
	return failure.New(failure.Config, "build", "%s", e.Error())
}

// join puts the parts that are there together in the form `op: thing: cause`.
func join(parts ...string) string {
	kept := make([]string, 0, len(parts))
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	if len(kept) == 0 {
		return "plugin"
	}
	return strings.Join(kept, ": ")
}

func hint(s, remedy string) string {
	if remedy == "" {
		return s
	}
	return s + "\n" + remedy
}

func withLog(s, log string) string {
	if log == "" {
		return s
	}
	return s + "\n" + log
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
