package rollout

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/wire"
	"github.com/wevalr/wevalr/zmqio"
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

// holdBack leaves one request on the wire until letGo: see [Spec].CheckEcho.
func (e *engine) holdBack() {
	e.held.Store(int64(e.MaxConcurrent) - 1)
	e.slots.TryAcquire(e.held.Load()) // nobody else has any yet
}

// letGo ends it.
func (e *engine) letGo() {
	if n := e.held.Swap(0); n > 0 {
		e.slots.Release(n)
	}
}

// checkEcho compares the task that an episode records with what was sent, whatever came of it. A
// server that records none cannot be checked. The first episode that is not wrong lets the others go, if
// watchEcho has not.
func (e *engine) checkEcho(sent map[string]any, ep *wire.Episode) error {
	if !e.CheckEcho {
		return nil
	}
	task := ep.Task
	if t := ep.Selected(); task.Data.IsNil() && t != nil {
		task = t.Task
	}
	if err := echoed(sent, &task); err != nil {
		return err
	}
	e.letGo()
	return nil
}

// watchEcho has the first delta looked at, while others wait: a trace that begins with the right task
// lets them go long before its rollout ends. One with another task proves nothing, since a trace may have
// a task of its own: the episode decides.
func (e *engine) watchEcho(sent map[string]any, p *zmqio.Progress) {
	if e.held.Load() == 0 {
		return
	}
	p.OnFirst = func(delta []byte) {
		for _, t := range wire.DecodePartial([][]byte{delta}) {
			if !t.Task.Data.IsNil() && echoed(sent, &t.Task) == nil {
				e.letGo()
			}
		}
	}
}

// echoed compares a recorded task, where there is one, with what was sent.
func echoed(sent map[string]any, task *wire.Task) error {
	meant, err := wire.ValueOf(sent) // the same types on both sides
	if err != nil || task.Data.IsNil() || bytes.Equal(meant, task.Data) {
		return err
	}
	wrong := &EchoError{Key: task.Key}
	wrong.compare("", meant.Any(), task.Data.Any())
	if len(wrong.Fields) > 0 {
		return wrong
	}
	return nil
}

// compare notes what of sent is not in has. As in JSON null is as good as absent, NaN is null, and a
// number is the same in every type that holds it exactly.
func (e *EchoError) compare(path string, sent, has any) {
	if len(e.Fields) >= maxEchoFields || sent == nil {
		return
	}
	switch s := sent.(type) {
	case float64:
		if math.IsNaN(s) || math.IsInf(s, 0) || equal(sent, has) {
			return
		}
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

// equal compares two plain values that are no map and no list.
func equal(a, b any) bool {
	if x, ok := a.([]byte); ok {
		y, ok := b.([]byte)
		return ok && bytes.Equal(x, y)
	}
	x, y := number(a), number(b)
	if x == nil || y == nil {
		return a == b
	}
	return x.Cmp(y) == 0
}

// number is v exactly; nil: it is none.
func number(v any) *big.Float {
	switch v := v.(type) {
	case int64:
		return new(big.Float).SetInt64(v)
	case uint64:
		return new(big.Float).SetUint64(v)
	case float64:
		if !math.IsNaN(v) {
			return big.NewFloat(v)
		}
	}
	return nil
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
