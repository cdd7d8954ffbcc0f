package rollout

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/wevalr/wevalr/host/envserver"
	"github.com/wevalr/wevalr/host/wire"
	"github.com/wevalr/wevalr/zmqio"
)

// order is what the scripted env-server does with one run of a task.
type order struct {
	Do     string   // "" replies; hold, refuse, peer, die, garbage
	Say    string   `json:",omitempty"` // the completion
	Stop   string   `json:",omitempty"` // the trace's stop_condition
	Finish string   `json:",omitempty"` // the call's finish reason
	Error  string   `json:",omitempty"` // the trace's error: its type
	Status int64    `json:",omitempty"` // and its status code
	Held   int      `json:",omitempty"` // waits for so many held runs before it does anything
	Seen   int      `json:",omitempty"` // waits for so many runs, this one included
	Shown  int      `json:",omitempty"` // waits for so many runs once it has shown its task
	Reward *float64 `json:",omitempty"`
	Weight float64  `json:",omitempty"`
	Cost   *float64 `json:",omitempty"`
	Drop   string   `json:",omitempty"` // a field that its task class does not know
	Once   string   `json:",omitempty"` // a file that is made when the order is begun; where it is, the run just replies
}

// scripted is the env-server while it serves. Its counters are gates: a run waits on cond for what
// others do.
type scripted struct {
	mu   sync.Mutex
	cond *sync.Cond
	held int
	runs int
	seen map[string]int // runs by task key and index
}

func serve(address string) int {
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM)
	s := &scripted{seen: map[string]int{}}
	s.cond = sync.NewCond(&s.mu)
	l, err := zmqio.Listen(address, s.handle, zmqio.ServerOptions{QueueBytes: 1})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	<-term
	_ = l.Close()
	return 0
}

func (s *scripted) handle(ctx context.Context, req *zmqio.Request) []byte {
	if reply, _ := envserver.Answer(req); reply != nil {
		return reply
	}
	q, err := wire.DecodeRunRequest(req.Payload)
	if err != nil {
		return wire.EncodeFailure(err.Error())
	}
	return s.run(ctx, req, q)
}

// run takes the order of this run of the task: the nth run of a (key, index) gets the nth order.
func (s *scripted) run(ctx context.Context, req *zmqio.Request, q *wire.RunRequest) []byte {
	s.mu.Lock()
	s.runs++
	key := fmt.Sprintf("%s#%d", q.Wevalr.Key, q.Wevalr.Index)
	n := s.seen[key]
	s.seen[key]++
	s.cond.Broadcast()
	s.mu.Unlock()

	var o order
	if list, ok := q.TaskData["orders"].([]any); ok && len(list) > 0 {
		text, _ := list[min(n, len(list)-1)].(string)
		if err := json.Unmarshal([]byte(text), &o); err != nil {
			return wire.EncodeFailure("order: " + err.Error())
		}
	}
	if o.Once != "" {
		f, err := os.OpenFile(o.Once, os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return s.reply(req, q, order{}, n)
		}
		_ = f.Close()
	}
	s.await(func() bool { return s.held >= o.Held && s.runs >= o.Seen })
	switch o.Do {
	case "":
		return s.reply(req, q, o, n)
	case "hold":
		_ = req.Delta(s.opening(s.trace(q, o, n)))
		return s.hold(ctx)
	case "refuse":
		return wire.EncodeFailure("ValidationError: no")
	case "peer":
		return wire.EncodeFailure("RuntimeError: no")
	case "garbage":
		_ = req.Delta(s.opening(s.trace(q, o, n)))
		return []byte("secret-value is no msgpack")
	case "die":
		flush(req)
		fmt.Fprintln(os.Stderr, "last words")
		code, err := strconv.Atoi(o.Say)
		if err != nil {
			code = 23
		}
		os.Exit(code)
	}
	return wire.EncodeFailure("unknown order " + o.Do)
}

// flush returns when every delta from before is in the kernel's hands, which outlive us: the queue takes
// one at a time, and these are too large for a buffer. They are no deltas that anybody can read.
func flush(req *zmqio.Request) {
	for range 3 {
		_ = req.Delta(make([]byte, 128<<10))
	}
}

func (s *scripted) await(cond func() bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !cond() {
		s.cond.Wait()
	}
}

// hold keeps a run until it is cancelled, and then takes it down.
func (s *scripted) hold(ctx context.Context) []byte {
	s.mu.Lock()
	s.held++
	s.cond.Broadcast()
	s.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock()
	s.held--
	s.mu.Unlock()
	return wire.EncodeFailure("CancelledError: ")
}

// trace is the answer to a run: what was ordered, or what was sent.
func (s *scripted) trace(q *wire.RunRequest, o order, n int) *wire.Trace {
	say := o.Say
	if say == "" {
		sampling, err := json.Marshal(q.Sampling)
		if err != nil {
			panic(err)
		}
		prompt := fmt.Sprint(q.TaskData["prompt"])
		say = fmt.Sprintf("run %d seed %d sampling %s prompt of %d bytes: %s", n, q.Wevalr.Seed, sampling, len(prompt), prompt)
	}
	stop := o.Stop
	if stop == "" {
		stop = "agent_completed"
	}
	data := map[string]any{}
	for k, v := range q.TaskData {
		if k != o.Drop {
			data[k] = v
		}
	}
	data["idx"] = nil
	echo, err := wire.ValueOf(data)
	if err != nil {
		panic(err)
	}
	t := &wire.Trace{
		Version: 1, ID: fmt.Sprintf("t-%s-%d-%d", q.Wevalr.Key, q.Wevalr.Index, n), IsCompleted: true,
		OK: o.Error == "" && !failing(o.Stop), StopCondition: stop,
		Task:  wire.Task{Type: "T", Data: echo, Key: "k"},
		Nodes: []wire.Node{{Parent: -1, Sampled: true, Timestamp: float64(time.Now().Unix()), Message: wire.Message{Role: "assistant", Content: wire.Text(say)}}},
		Calls: []wire.ModelCall{{Node: 0, FinishReason: o.Finish, Usage: &wire.CallUsage{PromptTokens: 3, CompletionTokens: 2, Cost: o.Cost}}},
	}
	if o.Error != "" {
		t.Errors = []wire.Error{{Type: o.Error, Message: "it says secret-value", StatusCode: o.Status}}
	}
	if o.Reward != nil {
		t.Rewards = map[string]*wire.Reward{"own": {Score: *o.Reward, Weight: o.Weight}, "not_run": nil}
	}
	return t
}

// failing are the stop conditions that say so by themselves.
func failing(stop string) bool {
	switch stop {
	case "setup_timeout", "finalize_timeout", "scoring_timeout", "agent_timeout":
		return true
	}
	return false
}

func (s *scripted) opening(t *wire.Trace) []byte {
	return wire.Delta{Trace: t.ID, Open: t, Nodes: t.Nodes, Calls: t.Calls, Errors: t.Errors, Set: t}.Encode()
}

func (s *scripted) reply(req *zmqio.Request, q *wire.RunRequest, o order, n int) []byte {
	t := s.trace(q, o, n)
	_ = req.Delta(s.opening(t))
	s.await(func() bool { return s.runs >= o.Shown })
	b, err := wire.EncodeRunReply(&wire.Episode{ID: "e-" + t.ID, Task: t.Task, OK: t.OK, Traces: []wire.Trace{*t}})
	if err != nil {
		panic(err)
	}
	return b
}
