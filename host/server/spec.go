package server

import (
	"log/slog"
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
	// is what plugins and records see.
	LogPath, LogRel string

	StartTimeout time.Duration // default 600 s
	CancelGrace  time.Duration // default 10 s
	StopGrace    time.Duration // default 30 s
	DrainLimit   time.Duration // default 2 s
	Settle       time.Duration // default 2 s: EOF usually precedes the exit by less

	ReplyMax int64 // bytes of one answer, default 1 GiB
	Budget   int64 // bytes of answers held, default 2 GiB

	// Containment is "auto" (default), "cgroup", "warden" or "group"; see procwatch.
	Containment string

	// Logger gets the life of the generation; nil discards.
	Logger *slog.Logger
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
	return s
}
