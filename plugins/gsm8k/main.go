// Command gsm8k is a plugin: the tasks of GSM8K (https://github.com/openai/grade-school-math) from the
// dataset's own file, and three rules that say whether a completion is right.
//
// The rules are those that published numbers were made with: `strict` and `flexible` are the two
// filters of lm-evaluation-harness, `dataset` is the dataset's own. A task's target is the final
// answer as the file has it; targets of other task plugins may also be a whole solution that ends in
// "#### N", or a number.
package main

import (
	"strconv"
	"strings"

	"github.com/wevalr/wevalr/plugins/sdk"
	"github.com/wevalr/wevalr/plugins/sdk/json"
)

// mark stands before the final answer in the dataset.
const mark = "#### "

func init() {
	p := &plugin{}
	sdk.Register(sdk.Plugin{
		Init: p.init,
		Tasks: func(cursor string, limit int) ([]sdk.Task, string, error) {
			return sdk.LinePage(sdk.Dataset("dataset"), p.file, cursor, limit, p.task)
		},
		Scorers: map[string]sdk.Scorer{
			"strict":   scorer(p.strict),
			"flexible": scorer(flexible),
			"dataset":  scorer(p.dataset),
		},
	})
}

func main() {}

type plugin struct {
	marker, file string
	split        string // the file's name without its ending: the beginning of every key
}

func (p *plugin) init(o *sdk.Options) error {
	p.marker, p.file = o.String("marker", mark), o.String("file", "test.jsonl")
	if p.marker == "" {
		return sdk.NewError("bad_option", "option marker: must not be empty")
	}
	p.split = p.file[strings.LastIndexByte(p.file, '/')+1:]
	p.split, _, _ = strings.Cut(p.split, ".")
	return nil
}

func (p *plugin) task(l *sdk.Lines) (sdk.Task, bool, error) {
	if len(strings.TrimSpace(string(l.Bytes()))) == 0 {
		return sdk.Task{}, false, nil
	}
	v, err := json.Parse(l.Bytes())
	if err != nil {
		return sdk.Task{}, false, sdk.NewError("dataset", l.Where()+": "+err.Error())
	}
	row, _ := v.(map[string]any)
	question, ok1 := row["question"].(string)
	answer, ok2 := row["answer"].(string)
	at := strings.LastIndex(answer, mark)
	if !ok1 || !ok2 || at < 0 {
		return sdk.Task{}, false, sdk.NewError("dataset", l.Where()+`: want {"question": …, "answer": "… `+mark+`N"}`)
	}
	return sdk.Task{
		Key:      p.split + "-" + strconv.Itoa(l.Index()),
		Data:     map[string]any{"prompt": question},
		Target:   strings.TrimSpace(answer[at+len(mark):]),
		Metadata: map[string]any{"solution": strings.TrimSpace(answer[:at])},
	}, true, nil
}

// rule gives the answer that it finds in a completion, "" for none, and whether it is right.
type rule func(completion, target string) (answer string, right bool)

func scorer(judge rule) sdk.Scorer {
	return func(r sdk.ScoreRequest) ([]sdk.Score, error) {
		target, err := targetText(r.Task)
		if err != nil {
			return nil, err
		}
		answer, right := judge(r.Episode.Completion, target)
		s := sdk.Binary(right)
		s.Answer = answer
		if answer == "" {
			s.Label = "no_answer"
		}
		return []sdk.Score{s}, nil
	}
}

func targetText(t sdk.Task) (string, error) {
	switch v := t.Target.(type) {
	case string:
		if strings.TrimSpace(v) != "" {
			return v, nil
		}
	case int64:
		return strconv.FormatInt(v, 10), nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	}
	return "", sdk.NewError("no_target", "task "+t.Key+": no target to compare with")
}
