package rollout

import (
	"fmt"
	"maps"
	"strings"

	"github.com/wevalr/wevalr/host/failure"
	"github.com/wevalr/wevalr/host/wire"
	"github.com/wevalr/wevalr/plugins/abi"
)

// Request is what every rollout of a run sends beside its task: all from the eval file.
type Request struct {
	Model    string
	Client   map[string]any // the wire's client map
	Sampling map[string]any // without seed
	// SamplingSeed is the eval's sampling.seed: each rollout then sends its own, derived from it.
	SamplingSeed *int64
	// TaskSeed is tasks.seed, from which plugins and offline models get theirs.
	TaskSeed int64
	System   string // [prompt] system
	Template string // [prompt] template, holds {{prompt}}
}

// origin says for which rollout, try and env call a request is.
type origin struct {
	key              string
	index, try, call int
}

// build makes the request of one run; sampling adds to, and wins over, the eval's.
func (r *Request) build(data map[string]any, o origin, sampling map[string]any) (*wire.RunRequest, error) {
	data, err := r.prompted(data)
	if err != nil {
		return nil, err
	}
	all := make(map[string]any, len(r.Sampling)+len(sampling)+1)
	maps.Copy(all, r.Sampling)
	seed := callSeed(r.TaskSeed, o.key, o.index, o.call)
	if r.SamplingSeed != nil {
		seed = callSeed(*r.SamplingSeed, o.key, o.index, o.call)
		all["seed"] = seed
	}
	maps.Copy(all, sampling)
	return &wire.RunRequest{
		TaskData: data, Client: r.Client, Model: r.Model, Sampling: all,
		Wevalr: &wire.Tag{Key: o.key, Index: o.index, Try: o.try, Seed: seed},
	}, nil
}

// prompted puts [prompt] around the task's own prompt.
func (r *Request) prompted(data map[string]any) (map[string]any, error) {
	if r.System == "" && r.Template == "" {
		return data, nil
	}
	out := make(map[string]any, len(data)+1)
	maps.Copy(out, data)
	if r.System != "" {
		out["system_prompt"] = r.System
	}
	if r.Template == "" {
		return out, nil
	}
	switch p := data["prompt"].(type) {
	case string:
		out["prompt"] = strings.ReplaceAll(r.Template, "{{prompt}}", p)
	case []any:
		messages, ok := r.promptedMessages(p)
		if !ok {
			return nil, failure.New(failure.Config, "prompt", "[prompt] template: the task's message list has no user message with text")
		}
		out["prompt"] = messages
	default:
		return nil, failure.New(failure.Config, "prompt", "[prompt] template: the task's data has no prompt (seen: %s)", typeName(p))
	}
	return out, nil
}

// promptedMessages applies the template to the last user message.
func (r *Request) promptedMessages(list []any) ([]any, bool) {
	for i := len(list) - 1; i >= 0; i-- {
		m, ok := list[i].(map[string]any)
		if !ok || m["role"] != "user" {
			continue
		}
		text, ok := m["content"].(string)
		if !ok {
			return nil, false
		}
		msg := maps.Clone(m)
		msg["content"] = strings.ReplaceAll(r.Template, "{{prompt}}", text)
		out := append([]any(nil), list...)
		out[i] = msg
		return out, true
	}
	return nil, false
}

func typeName(v any) string {
	if v == nil {
		return "nothing"
	}
	return fmt.Sprintf("%T", v)
}

// scoreRequest makes op 4's request; the seed follows the tasks' rule.
func (r *Request) scoreRequest(scorer string, task *abi.Task, index int, view *abi.Episode) abi.ScoreRequest {
	return abi.ScoreRequest{Scorer: scorer, Task: *task, Episode: *view, Seed: Seed(r.TaskSeed, task.Key, index)}
}
