package star

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/wevalr/wevalr/plugins/abi"
	"github.com/wevalr/wevalr/plugins/sdk/codec"
)

// Guest answers the ABI's operations with a script. It does what package sdk does for a plugin whose
// scorers are known when it is compiled; a script's scorers are not.
type Guest struct {
	// Read gives an asset, or a file of the dataset.
	Read func(name string) ([]byte, error)
	// Manifest is plugin.toml: a scorer that it does not name is refused. nil = a script takes any name.
	Manifest []byte
	// Print logs what the script prints.
	Print func(text string)

	script *Script
}

// defaultFile is the option `file` where the manifest has no such option.
const defaultFile = "score.star"

// Serve answers one wevalr_call, in msgpack; the response is appended to dst.
func (g *Guest) Serve(op abi.Op, request, dst []byte) []byte {
	w := &codec.Writer{B: dst}
	w.Map(1)
	w.String("ok")
	err := g.dispatch(op, codec.NewReader(request), w)
	if err == nil {
		err = w.Err
	}
	if err == nil {
		return w.B
	}
	e := &Error{}
	if !errors.As(err, &e) {
		e = &Error{Code: "error", Message: err.Error()}
	}
	w = &codec.Writer{B: w.B[:len(dst)]}
	w.Map(1)
	w.String("err")
	codec.WriteError(w, abi.Error{Code: e.Code, Message: e.Error(), Data: e.Data()})
	return w.B
}

func (g *Guest) dispatch(op abi.Op, r *codec.Reader, w *codec.Writer) error {
	switch op {
	case abi.OpInit:
		q := codec.ReadInit(r)
		if err := r.End(); err != nil {
			return unreadable(err)
		}
		if err := g.load(q.Options); err != nil {
			return err
		}
		codec.WriteInitResponse(w, abi.InitResponse{})
		return nil
	case abi.OpTasks:
		q := codec.ReadTasks(r)
		if err := r.End(); err != nil {
			return unreadable(err)
		}
		tasks, next, err := g.script.Tasks(q.Cursor, int(min(max(q.Limit, 1), 1<<20)))
		if err == nil {
			codec.WriteTasksResponse(w, abi.TasksResponse{Tasks: tasks, Next: next})
		}
		return err
	case abi.OpScore, abi.OpScoreGroup:
		q := codec.ReadScoreRequest(r)
		if err := r.End(); err != nil {
			return unreadable(err)
		}
		if names := scorerNames(g.Manifest); g.Manifest != nil && !slices.Contains(names, q.Scorer) {
			return &Error{Code: CodeNone, Message: fmt.Sprintf("plugin.toml has no scorer %q, there are: %v", cut(q.Scorer), names)}
		}
		var list []abi.Score
		var err error
		if op == abi.OpScoreGroup {
			list, err = g.script.ScoreGroup(q)
		} else if len(q.Episodes) == 1 {
			list, err = g.script.Score(abi.ScoreRequest{Scorer: q.Scorer, Task: q.Task, Episode: q.Episodes[0], Seed: q.Seed})
		} else {
			err = &Error{Code: "bad_request", Message: "score: want one episode"}
		}
		if err == nil {
			codec.WriteScoreResponse(w, abi.ScoreResponse{Scores: list})
		}
		return err
	default: // a script drives no rollouts
		return &Error{Code: CodeNone, Message: "a script knows no such operation"}
	}
}

// scorerNames finds the names of the tables [[scorer]] in a manifest that the host has checked.
func scorerNames(manifest []byte) (names []string) {
	in := false
	for line := range strings.Lines(string(manifest)) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), "#")
		if strings.HasPrefix(line, "[") {
			in = strings.TrimSpace(line) == "[[scorer]]"
		}
		if key, value, ok := strings.Cut(line, "="); in && ok && strings.TrimSpace(key) == "name" {
			names = append(names, strings.Trim(strings.TrimSpace(value), `"'`))
		}
	}
	return names
}

func unreadable(err error) error {
	return &Error{Code: "bad_request", Message: "the request cannot be read: " + err.Error()}
}

// load runs the file that the options name.
func (g *Guest) load(options map[string]any) error {
	file, ok := options["file"].(string)
	if !ok || file == "" {
		file = defaultFile
	}
	steps, _ := options["max_steps"].(int64)
	s, err := Load(file, Options{Read: g.Read, Print: g.Print, Values: options, Steps: uint64(max(steps, 0))})
	if err != nil {
		return err
	}
	g.script = s
	return nil
}
