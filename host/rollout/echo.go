package rollout

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/wire"
)

// EchoError says that the env-server's tasks are not the run's: fields of a task's data that it
// dropped or changed. verifiers, for one, drops what its task class does not declare without a word,
// and would run all rollouts on tasks that are not what was meant. A default that was filled in is no
// difference.
type EchoError struct {
	Key    string // of the task that was compared
	Fields []EchoField
}

// EchoField is one difference, both sides as JSON. Has is "" where the server has nothing.
type EchoField struct{ Path, Sent, Has string }

func (e *EchoError) Error() string {
	if len(e.Fields) == 0 {
		return "task mismatch"
	}
	var b strings.Builder
	for i, f := range e.Fields {
		if i > 0 {
			b.WriteString("\n")
		}
		has := f.Has
		if has == "" {
			has = "nothing"
		}
		fmt.Fprintf(&b, "task mismatch: field %s: sent %s, the server has %s", f.Path, f.Sent, has)
	}
	return b.String()
}

// Failure is config/task_mismatch.
func (e *EchoError) Failure() *failure.Failure {
	return failure.New(failure.Config, "task_mismatch", "%s", e.Error())
}

// maxEchoFields bounds the differences that are listed.
const maxEchoFields = 20

// checkEcho compares, until once all was well, the task of a finished episode with what was sent. A
// server that records no task cannot be checked.
func (e *engine) checkEcho(sent map[string]any, ep *wire.Episode) error {
	if !e.CheckEcho || e.echoed.Load() {
		return nil
	}
	if outcome, _ := ep.Outcome(); !outcome.Finished() {
		return nil
	}
	task := ep.Task
	if t := ep.Selected(); task.Data.IsNil() && t != nil {
		task = t.Task
	}
	if task.Data.IsNil() {
		return nil
	}
	plain, err := wire.ValueOf(sent) // the same types on both sides
	if err != nil {
		return err
	}
	wrong := &EchoError{Key: task.Key}
	wrong.compare("", plain.Any(), task.Data.Any())
	if len(wrong.Fields) > 0 {
		return wrong
	}
	e.echoed.Store(true)
	return nil
}

// compare notes what of sent is not in has.
func (e *EchoError) compare(path string, sent, has any) {
	if len(e.Fields) >= maxEchoFields || sent == nil {
		return
	}
	switch s := sent.(type) {
	case map[string]any:
		if h, ok := has.(map[string]any); ok {
			for _, k := range slices.Sorted(maps.Keys(s)) {
				e.compare(strings.TrimPrefix(path+"."+k, "."), s[k], h[k])
			}
			return
		}
	case []any:
		if h, ok := has.([]any); ok && len(h) == len(s) {
			for i := range s {
				e.compare(fmt.Sprintf("%s[%d]", path, i), s[i], h[i])
			}
			return
		}
	default:
		if equal(sent, has) {
			return
		}
	}
	e.Fields = append(e.Fields, EchoField{Path: path, Sent: short(sent), Has: short(has)})
}

// equal compares two plain values; a number is the same in every type that holds it.
func equal(a, b any) bool {
	if x, ok := a.([]byte); ok {
		y, ok := b.([]byte)
		return ok && bytes.Equal(x, y)
	}
	if a == b {
		return true
	}
	x, xok := number(a)
	y, yok := number(b)
	return xok && yok && x == y
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case uint64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// short is a value for a person; "" for nothing.
func short(v any) string {
	if v == nil {
		return ""
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%T", v)
	}
	if len(text) > 200 {
		return strings.ToValidUTF8(string(text[:200]), "") + "…"
	}
	return string(text)
}
