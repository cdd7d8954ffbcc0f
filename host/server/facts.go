package server

import (
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/wevalr/wevalr/host/failure"
)

// Life names the generation that an error is of, and what it has said.
type Life struct {
	Attempt, Instance, Generation int
	PID                           int      // the leader's; 0 for a server that somebody else runs
	LogPath, LogRel               string   // where its output is; LogRel is relative to the run directory
	Tail                          []string // the last lines of it
}

// life is the generation as it stands.
func (s *Server) life() Life {
	return Life{
		Attempt: s.spec.Attempt, Instance: s.spec.Instance, Generation: s.spec.Generation, PID: s.PID(),
		LogPath: s.spec.LogPath, LogRel: s.spec.LogRel, Tail: s.tail(),
	}
}

func (l *Life) who() string {
	return fmt.Sprintf("env-server (generation %d, pid %d)", l.Generation, l.PID)
}

// log is the end of a text: where to read on, and the last lines.
func (l *Life) log() string { return "; log: " + l.LogPath + tailText(l.Tail) }

// failed makes the failure of this life: all facts, no path of this machine.
func (l *Life) failed(kind, format string, args ...any) *failure.Failure {
	f := failure.New(failure.Server, kind, "env-server (generation %d)%s", l.Generation, fmt.Sprintf(format, args...))
	f.Server = &failure.ServerFacts{
		Attempt: l.Attempt, Instance: l.Instance, Generation: l.Generation, PID: l.PID, Log: l.LogRel, Tail: l.Tail,
	}
	return f
}

// Ending is how a process ended: with a code, 0 included, xor by a signal.
type Ending struct {
	Code   int            // meaningful when Signal is 0
	Signal syscall.Signal // 0: it exited by itself
}

// How says it in words: "exited with code 23", "was ended by signal 9 (killed)".
func (e *Ending) How() string {
	if e.Signal != 0 {
		return fmt.Sprintf("was ended by signal %d (%v)", int(e.Signal), e.Signal)
	}
	return fmt.Sprintf("exited with code %d", e.Code)
}

// put adds it to a failure's facts.
func (e *Ending) put(f *failure.ServerFacts) {
	if e.Signal != 0 {
		f.Signal, f.SignalName = int(e.Signal), e.Signal.String()
		return
	}
	code := e.Code
	f.Code = &code
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

func rolloutsWere(n int) string {
	if n == 1 {
		return "1 rollout was"
	}
	return fmt.Sprintf("%d rollouts were", n)
}

// tailText renders the last lines for a person; records hold all of them.
func tailText(tail []string) string {
	if len(tail) == 0 {
		return ""
	}
	const shown = 10
	if len(tail) > shown {
		tail = tail[len(tail)-shown:]
	}
	return "\nlast lines:\n  " + strings.Join(tail, "\n  ")
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
