// Command ifeval is a plugin: the tasks of IFEval (https://arxiv.org/abs/2311.07911) from the dataset's own
// file, and the checks of its 25 verifiable instructions.
//
// The rules are those of the published evaluator (google-research/instruction_following_eval), with its
// oddities: `strict` checks the completion as it is, `loose` takes the best of eight versions of it. Both
// give one score a prompt (all instructions followed) and one an instruction. An instruction that cannot
// be judged is null, and so is a prompt whose other instructions were all followed.
package main

import (
	"iter"
	"strconv"
	"strings"

	"github.com/wevalr/wevalr/plugins/sdk"
	"github.com/wevalr/wevalr/plugins/sdk/json"
)

func init() {
	p := &plugin{}
	sdk.Register(sdk.Plugin{
		Init: p.init,
		Tasks: func(cursor string, limit int) ([]sdk.Task, string, error) {
			return sdk.LinePage(sdk.Dataset("dataset"), p.file, cursor, limit, task)
		},
		Scorers: map[string]sdk.Scorer{
			"strict": p.scorer("strict", asIs),
			"loose":  p.scorer("loose", versions),
		},
	})
}

func main() {}

type plugin struct {
	file   string
	detect bool
}

func (p *plugin) init(o *sdk.Options) error {
	p.file = o.String("file", "prompts.jsonl")
	switch language := o.String("language", "detect"); language {
	case "detect", "skip":
		p.detect = language == "detect"
	default:
		return sdk.NewError("bad_option", "option language: want detect or skip, got "+strconv.Quote(language))
	}
	return nil
}

func task(l *sdk.Lines) (sdk.Task, bool, error) {
	if len(strings.TrimSpace(string(l.Bytes()))) == 0 {
		return sdk.Task{}, false, nil
	}
	v, err := json.Parse(l.Bytes())
	if err != nil {
		return sdk.Task{}, false, sdk.NewError("dataset", l.Where()+": "+err.Error())
	}
	row, _ := v.(map[string]any)
	key, ok1 := keyText(row["key"])
	prompt, ok2 := row["prompt"].(string)
	if !ok1 || !ok2 {
		return sdk.Task{}, false, sdk.NewError("dataset", l.Where()+": want {key, prompt, instruction_id_list, kwargs}")
	}
	if _, what := instructions(row); what != "" {
		return sdk.Task{}, false, sdk.NewError("dataset", l.Where()+": "+what)
	}
	return sdk.Task{
		Key:      key,
		Data:     map[string]any{"prompt": prompt},
		Metadata: map[string]any{"instruction_id_list": row["instruction_id_list"], "kwargs": row["kwargs"]},
	}, true, nil
}

func keyText(v any) (string, bool) {
	if i, ok := v.(int64); ok {
		return strconv.FormatInt(i, 10), true
	}
	s, ok := v.(string)
	return s, ok
}

func (p *plugin) scorer(name string, versions func(string) iter.Seq[string]) sdk.Scorer {
	return func(r sdk.ScoreRequest) ([]sdk.Score, error) {
		// Tasks of other plugins may carry the instructions in their data.
		from := r.Task.Metadata
		if from["instruction_id_list"] == nil {
			from = r.Task.Data
		}
		list, what := instructions(from)
		if what != "" {
			return nil, sdk.NewError("bad_task", "task "+r.Task.Key+": "+what)
		}
		texts := versions(r.Episode.Completion)
		all := yes
		scores := []sdk.Score{{}}
		followed := make([]any, 0, len(list))
		seen := map[string]int{}
		for _, in := range list {
			v, err := p.best(in, texts)
			if err != "" {
				return nil, sdk.NewError("bad_task", "task "+r.Task.Key+": "+in.id+": "+err)
			}
			all = min(all, v)
			s := v.score()
			s.Name = name + "/" + in.id
			if seen[in.id]++; seen[in.id] > 1 {
				s.Name += "." + strconv.Itoa(seen[in.id])
			}
			scores = append(scores, s)
			followed = append(followed, v.json())
		}
		scores[0] = all.score()
		scores[0].Metadata = map[string]any{"followed": followed}
		return scores, nil
	}
}

// best is the best verdict of one instruction over the versions of a completion. A blank version follows
// nothing.
func (p *plugin) best(in instruction, texts iter.Seq[string]) (verdict, string) {
	out := no
	for s := range texts {
		if strip(s) == "" {
			continue
		}
		v, err := p.check(in, s)
		if err != "" || v == yes {
			return v, err
		}
		out = max(out, v)
	}
	return out, ""
}

func asIs(s string) iter.Seq[string] {
	return func(yield func(string) bool) { yield(s) }
}

// versions are what the loose rule tries: the completion, without its first line, its last, both, and each of
// these without asterisks. (evaluation_lib.py, test_instruction_following_loose.)
func versions(s string) iter.Seq[string] {
	return func(yield func(string) bool) {
		rest, head, middle := "", "", ""
		if i := strings.IndexByte(s, '\n'); i >= 0 {
			j := strings.LastIndexByte(s, '\n')
			rest, head, middle = strip(s[i+1:]), strip(s[:j]), strip(s[min(i+1, j):j])
		}
		for _, v := range []string{s, rest, head, middle} {
			if !yield(v) || strings.Contains(v, "*") && !yield(strings.ReplaceAll(v, "*", "")) {
				return
			}
		}
	}
}
