package sdk

import (
	"errors"
	"runtime"

	"github.com/wevalr/wevalr/plugins/abi"
	"github.com/wevalr/wevalr/plugins/sdk/codec"
)

// Codes of the errors that the SDK itself answers with.
const (
	codeError       = "error"
	codeUnsupported = "unsupported"
	codeRequest     = "bad_request"
	codeOption      = "bad_option"
)

// maxStack bounds the stack that goes along with a panic's text. Bytes.
const maxStack = 4 << 10

// serve answers one wevalr_call: the response is appended to dst. A panic is told to the host and
// goes on.
func serve(p *Plugin, op abi.Op, request, dst []byte) []byte {
	defer func() {
		if v := recover(); v != nil {
			stack := make([]byte, maxStack)
			hostFail([]byte(text(v) + "\n\n" + string(stack[:runtime.Stack(stack, false)])))
			panic(v)
		}
	}()
	w := &codec.Writer{B: dst}
	w.Map(1)
	w.String("ok")
	err := dispatch(p, op, codec.NewReader(request), w)
	if err == nil {
		err = w.Err
	}
	if err == nil {
		return w.B
	}
	w = &codec.Writer{B: w.B[:len(dst)]}
	writeError(w, err)
	if w.Err == nil {
		return w.B
	}
	w = &codec.Writer{B: w.B[:len(dst)]}
	writeError(w, NewError(codeError, err.Error()+"\n(the error's data cannot be encoded)"))
	return w.B
}

func writeError(w *codec.Writer, err error) {
	w.Map(1)
	w.String("err")
	codec.WriteError(w, envelope(err))
}

// coder is an error that knows its envelope. Env errors are found by it rather than by their types,
// so that a plugin without a rollout links none of them.
type coder interface{ envelope() abi.Error }

func envelope(err error) abi.Error {
	var own *Error
	if errors.As(err, &own) && own != nil {
		e := abi.Error{Code: own.Code, Message: own.Message, Retryable: own.Retryable, Data: own.Data}
		if e.Code == "" {
			e.Code = codeError
		}
		if full := err.Error(); full != own.Error() {
			e.Message = full
		}
		return e
	}
	var c coder
	if errors.As(err, &c) {
		e := c.envelope()
		e.Message = err.Error()
		return e
	}
	return abi.Error{Code: codeError, Message: err.Error()}
}

func dispatch(p *Plugin, op abi.Op, r *codec.Reader, w *codec.Writer) error {
	if p == nil {
		return NewError(codeUnsupported, "sdk: no plugin is registered")
	}
	switch op {
	case abi.OpInit:
		return p.init(r, w)
	case abi.OpTasks:
		return p.tasks(r, w)
	case abi.OpRollout:
		return p.rollout(r, w)
	case abi.OpScore:
		return p.score(r, w)
	case abi.OpScoreGroup:
		return p.scoreGroup(r, w)
	}
	return NewError(codeUnsupported, "sdk: this plugin knows no such operation")
}

func (p *Plugin) init(r *codec.Reader, w *codec.Writer) error {
	q := codec.ReadInit(r)
	if err := read(r); err != nil {
		return err
	}
	if p.Init != nil {
		o := &Options{values: q.Options}
		if err := p.Init(o); err != nil {
			return err
		}
		if o.err != nil {
			return o.err
		}
	}
	var out abi.InitResponse
	if p.TaskCount != nil {
		n, err := p.TaskCount()
		if err != nil {
			return err
		}
		if count := int64(n); n >= 0 {
			out.Tasks = &count
		}
	}
	codec.WriteInitResponse(w, out)
	return nil
}

func (p *Plugin) tasks(r *codec.Reader, w *codec.Writer) error {
	q := codec.ReadTasks(r)
	if err := read(r); err != nil {
		return err
	}
	if p.Tasks == nil {
		return NewError(codeUnsupported, "this plugin has no tasks")
	}
	list, next, err := p.Tasks(q.Cursor, int(min(max(q.Limit, 1), 1<<20)))
	if err != nil {
		return err
	}
	codec.WriteTasksResponse(w, abi.TasksResponse{Tasks: list, Next: next})
	return nil
}

func (p *Plugin) rollout(r *codec.Reader, w *codec.Writer) error {
	q := codec.ReadRollout(r)
	if err := read(r); err != nil {
		return err
	}
	if p.Rollout == nil {
		return NewError(codeUnsupported, "this plugin drives no rollouts")
	}
	done, err := p.Rollout(newEnv(), q)
	if err != nil {
		return err
	}
	out := abi.RolloutResponse{Selected: int64(done.Selected), Scores: done.Scores}
	for _, h := range done.Episodes {
		out.Episodes = append(out.Episodes, int64(h.id))
	}
	codec.WriteRolloutResponse(w, out)
	return nil
}

func (p *Plugin) score(r *codec.Reader, w *codec.Writer) error {
	q := codec.ReadScoreRequest(r)
	if err := read(r); err != nil {
		return err
	}
	scorer := p.Scorers[q.Scorer]
	if scorer == nil {
		return NewError(codeUnsupported, "this plugin has no scorer "+q.Scorer)
	}
	if len(q.Episodes) != 1 {
		return NewError(codeRequest, "sdk: score: want one episode")
	}
	return writeScores(w)(scorer(ScoreRequest{Scorer: q.Scorer, Task: q.Task, Episode: q.Episodes[0], Seed: q.Seed}))
}

func (p *Plugin) scoreGroup(r *codec.Reader, w *codec.Writer) error {
	q := codec.ReadScoreRequest(r)
	if err := read(r); err != nil {
		return err
	}
	scorer := p.GroupScorers[q.Scorer]
	if scorer == nil {
		return NewError(codeUnsupported, "this plugin has no group scorer "+q.Scorer)
	}
	return writeScores(w)(scorer(q))
}

func writeScores(w *codec.Writer) func([]Score, error) error {
	return func(scores []Score, err error) error {
		if err == nil {
			codec.WriteScoreResponse(w, abi.ScoreResponse{Scores: scores})
		}
		return err
	}
}

// read ends the reading of a request.
func read(r *codec.Reader) error {
	if err := r.End(); err != nil {
		return NewError(codeRequest, "sdk: the request cannot be read: "+err.Error())
	}
	return nil
}
