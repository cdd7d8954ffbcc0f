package server

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Spec describes one generation. The zero value of every duration means the default of
// docs/operations.md; either Argv or Address is required.
type Spec struct {
	// Argv is the command; "{address}" in any argument is replaced by the endpoint.
	Argv []string
	// Env is the child's whole environment; TMPDIR is added.
	Env []string
	// Dir is the child's working directory.
	Dir string
	// Address is the endpoint of a server that somebody else runs; then there is no child, and its
	// death is seen by the connection alone.
	Address string
	// Transport is "ipc" (default) or "tcp" (loopback).
	Transport string

	Attempt, Instance, Generation int // each counts from 1

	// LogPath is where stdout and stderr go; LogRel is the same relative to the run directory, which
	// is what plugins and records see. "{generation}" in either is replaced by the number.
	LogPath, LogRel string

	StartTimeout time.Duration // default 600 s
	CancelGrace  time.Duration // default 10 s
	StopGrace    time.Duration // default 30 s
	DrainLimit   time.Duration // default 2 s
	Settle       time.Duration // default 2 s: EOF usually precedes the exit by less

	// Warm says whether ready needs a worker's answer beside health: "auto" (default: where a worker
	// of a pool is seen at health or soon after), "on" or "off".
	Warm string
	// FirstReply ends the generation when its first rollouts bring nothing, not even a delta, for so
	// long; 0: off.
	FirstReply time.Duration
	// StallAfter ends a rollout that has heard nothing for so long, since it was sent or since its
	// last delta: on a server that streams no deltas it is a limit on the whole rollout. When not even
	// the cancel is answered, the generation ends. 0: off.
	StallAfter time.Duration
	// OnWorkerExit says what follows when a worker of the server's own pool dies: "auto" (default) and
	// "fail" send nothing new, end what is silent for SuspectAfter and then the generation; "warn" says
	// so and goes on. Workers are seen on Linux only: elsewhere "fail" is an error of Start.
	OnWorkerExit string
	SuspectAfter time.Duration // default 60 s
	// HealthEvery asks for health so often; a missing answer is a warning and nothing else. 0: off.
	HealthEvery time.Duration

	// OnExit is for a [Set]: "fail" (default), or "restart" for a new generation after an end that
	// nobody asked for, at most MaxRestarts of them within RestartWindow (default 10 min).
	OnExit        string
	MaxRestarts   int
	RestartWindow time.Duration

	// Events, if not nil, is told what happens: in order for one generation, from several goroutines
	// for several. It must not block for long, nor call back.
	Events func(Event) `json:"-"`

	ReplyMax int64 // bytes of one answer, default 1 GiB
	Budget   int64 // bytes of answers held, default 2 GiB

	// Containment is "auto" (default), "cgroup", "warden" or "group"; see procwatch.
	Containment string

	// Logger gets the life of the generation; nil discards.
	Logger *slog.Logger `json:"-"`

	pause func(time.Duration) time.Duration // of tests: shortens the back-off
}

func (s Spec) withDefaults() Spec {
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&s.StartTimeout, 600*time.Second)
	def(&s.CancelGrace, 10*time.Second)
	def(&s.StopGrace, 30*time.Second)
	def(&s.DrainLimit, 2*time.Second)
	def(&s.Settle, 2*time.Second)
	def(&s.SuspectAfter, 60*time.Second)
	def(&s.RestartWindow, 10*time.Minute)
	if s.Transport == "" {
		s.Transport = "ipc"
	}
	if s.Attempt == 0 {
		s.Attempt = 1
	}
	if s.Instance == 0 {
		s.Instance = 1
	}
	if s.Generation == 0 {
		s.Generation = 1
	}
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	number := strconv.Itoa(s.Generation)
	s.LogPath = strings.ReplaceAll(s.LogPath, "{generation}", number)
	s.LogRel = strings.ReplaceAll(s.LogRel, "{generation}", number)
	return s
}

// check refuses what cannot be had.
func (s Spec) check() error {
	for _, c := range []struct {
		key, value string
		allowed    []string
	}{
		{"warm", s.Warm, []string{"", "auto", "on", "off"}},
		{"on_worker_exit", s.OnWorkerExit, []string{"", "auto", "fail", "warn"}},
		{"on_exit", s.OnExit, []string{"", "fail", "restart"}},
	} {
		if !slices.Contains(c.allowed, c.value) {
			return &StartError{Cause: fmt.Errorf("%s: unknown value %q", c.key, c.value)}
		}
	}
	if s.OnWorkerExit == "fail" && (!seesWorkers || s.Address != "") {
		return &StartError{Cause: errors.New("on_worker_exit: the workers of this server cannot be seen from here")}
	}
	return nil
}
