package procwatch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Containment is how far the tree of a child is held together.
type Containment string

// The levels. Asking for one that cannot be had is an error of Start.
const (
	// Auto takes the best level there is, says so at Warn when that is only Group, and is the
	// meaning of "".
	Auto Containment = "auto"
	// Cgroup is Warden with a control group of version 2 around the tree (Linux 5.14, where our own
	// group is delegated to us and writable): it is killed in one step however it forks, and also
	// when the warden is killed.
	Cgroup Containment = "cgroup"
	// Warden puts a small process of our own binary between us and the leader (Linux, needs
	// [Main]). Descendants cannot leave it, with setsid or otherwise. When we are killed it ends
	// the tree after Spec.Grace and removes Spec.TempDir.
	Warden Containment = "warden"
	// Group holds the leader's session: a descendant that calls setsid and outlives its parent
	// escapes. When we are killed the leader is too (Linux), and nothing else is promised.
	Group Containment = "group"
)

// Spec says what to start and how to watch it. Only Argv is needed.
type Spec struct {
	// Argv is the command. A name without a slash is looked up in our own PATH; a relative path
	// is relative to Dir.
	Argv []string
	// Dir is the working directory; "" is ours.
	Dir string
	// Env is the whole environment. nil is the minimal set: what PATH, HOME, USER, LANG, LC_ALL,
	// TZ and TMPDIR are for us.
	Env []string
	// TempDir, when set, is removed with all it holds when the tree is gone.
	TempDir string

	// Grace is the time between TERM and KILL in Stop; 0 is 30 s.
	Grace time.Duration
	// KillWait is the time a killed leader gets before Stop says ErrUnkillable; 0 is 5 s.
	KillWait time.Duration
	// DrainTimeout is how long after the end pipes may stay open and the sink may have lines to
	// take; 0 is 2 s.
	DrainTimeout time.Duration

	// MaxLine is where a line is cut, in bytes; 0 is 16 KiB. It is never more than TailBytes.
	MaxLine int
	// TailLines and TailBytes bound the tail of both streams together; 0 is 200 and 64 KiB.
	TailLines, TailBytes int
	// Sink gets every line, one at a time, from one goroutine. It may block and panic: lines that
	// then do not fit its queue (4096 lines, 4 MiB) are dropped, oldest first, and counted.
	Sink func(Line)

	// Prober, ReadyLine and NotifyFD say when the child is ready; the first that does so counts.
	// With none of them a started child is ready.
	//
	// Prober: nil is yes. It is asked again (every 50 ms) until it says so, the child ends or
	// ReadyTimeout passes; its ctx ends then.
	Prober func(ctx context.Context) error
	// ReadyLine matches a line of either stream, or a piece of one that was cut at MaxLine.
	ReadyLine *regexp.Regexp
	// NotifyFD, 3 to 63, is the number of a descriptor to which the child writes a byte
	// (https://skarnet.org/software/s6/notifywhenup.html). To close it without one is to say that
	// it will not get ready.
	NotifyFD int
	// ReadyTimeout counts from Start; 0 is none.
	ReadyTimeout time.Duration

	// Liveness watches a child that is ready; its zero value does not.
	Liveness Liveness

	// DescendantExited, when set, gets the end of every process below the leader whose parent does
	// not wait for it at once (Linux): that leaves a zombie, which keeps how it ended. A parent that
	// is about to wait may be forestalled by our look; of its child there is one event, and none
	// that lingers. It is called from one goroutine at a time, and Done waits for it.
	DescendantExited func(DescendantExit)

	// Containment is the level asked for.
	Containment Containment
	// Logger gets what happens to the child; nil discards it.
	Logger *slog.Logger
}

// withDefaults returns s with every default filled in and paths made absolute.
func (s Spec) withDefaults() (Spec, error) {
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return s, errors.New("no command")
	}
	if slices.ContainsFunc(slices.Concat(s.Argv, s.Env, []string{s.Dir}), hasNUL) {
		return s, errors.New("command, environment or directory holds a NUL byte")
	}
	switch s.Containment {
	case "":
		s.Containment = Auto
	case Auto, Cgroup, Warden, Group:
	default:
		return s, errors.New("unknown containment " + string(s.Containment))
	}
	if s.NotifyFD != 0 && (s.NotifyFD < 3 || s.NotifyFD > 63) {
		return s, fmt.Errorf("notification descriptor %d is not within 3 to 63", s.NotifyFD)
	}
	if s.TempDir != "" && (!filepath.IsAbs(s.TempDir) || filepath.Clean(s.TempDir) == "/") {
		return s, errors.New("temp dir is not an absolute path: " + s.TempDir)
	}
	dir, err := filepath.Abs(s.Dir)
	if err != nil {
		return s, err
	}
	s.Dir = dir
	s.Argv = slices.Clone(s.Argv)
	s.Env = slices.Clone(s.Env)
	if s.Env == nil {
		s.Env = minimalEnv()
	}
	s.Grace = orDefault(s.Grace, 30*time.Second)
	s.KillWait = orDefault(s.KillWait, 5*time.Second)
	s.DrainTimeout = orDefault(s.DrainTimeout, 2*time.Second)
	s.TailLines = orDefault(s.TailLines, 200)
	s.TailBytes = orDefault(s.TailBytes, 64<<10)
	s.Liveness = s.Liveness.withDefaults()
	s.MaxLine = min(orDefault(s.MaxLine, 16<<10), s.TailBytes)
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	return s, nil
}

func hasNUL(s string) bool { return strings.IndexByte(s, 0) >= 0 }

func orDefault[T int | time.Duration](v, def T) T {
	if v <= 0 {
		return def
	}
	return v
}

func minimalEnv() []string {
	env := []string{}
	for _, name := range []string{"PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ", "TMPDIR"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}
