package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/wevalr/wevalr/host/envserver"
	"github.com/wevalr/wevalr/host/wire"
	"github.com/wevalr/wevalr/zmqio"
)

// fate is what the file "fate" in the server's folder says: `exit 23 after 5`, `signal 9 after 0`,
// `exit 1 unready`, `hang after 5`, `stuck after 5`, `refuse after 5`, `mixed after 5`, `live`, and
// `exit 23 after 5 with 7`: at the seventh of what it then leaves unanswered. It is a file and not an argument,
// since a resume must find the same command.
type fate struct {
	verb  string // exit, signal, hang, stuck, refuse, mixed, live
	n     int    // code or signal
	ready bool
	after int64 // replies
	with  int64 // requests in flight
}

func readFate() (fate, error) {
	b, err := os.ReadFile("fate")
	if err != nil {
		return fate{}, err
	}
	f := fate{ready: true}
	words := strings.Fields(string(b))
	for i := 0; i < len(words); i++ {
		switch words[i] {
		case "live", "hang", "stuck", "refuse", "mixed":
			f.verb = words[i]
		case "unready":
			f.ready = false
		case "exit", "signal", "after", "with":
			if i+1 == len(words) {
				return f, fmt.Errorf("fate: %s: no number", words[i])
			}
			n, err := strconv.Atoi(words[i+1])
			if err != nil {
				return f, fmt.Errorf("fate: %w", err)
			}
			switch words[i] {
			case "after":
				f.after = int64(n)
			case "with":
				f.with = int64(n)
			default:
				f.verb, f.n = words[i], n
			}
			i++
		default:
			return f, fmt.Errorf("fate: %q", words[i])
		}
	}
	return f, nil
}

// die ends the process as the fate says; it returns where the fate is to live.
func (f fate) die() {
	switch f.verb {
	case "exit":
		os.Exit(f.n)
	case "signal":
		_ = syscall.Kill(os.Getpid(), syscall.Signal(f.n))
		select {}
	}
}

var sum = regexp.MustCompile(`(\d+) \+ (\d+)`)

// testServer is the program `testserver ADDRESS`: an env-server that adds right.
func testServer() {
	f, err := readFate()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(64)
	}
	fmt.Fprintln(os.Stderr, "testserver: the first line")
	if !f.ready {
		fmt.Fprintln(os.Stderr, "testserver: last words")
		f.die()
	}
	var replies atomic.Int64
	s, err := zmqio.Listen(os.Args[1], func(ctx context.Context, req *zmqio.Request) []byte {
		if reply, _ := envserver.Answer(req); reply != nil {
			return reply
		}
		if n := replies.Add(1); f.verb != "live" && n > f.after {
			verb := f.verb
			if n-f.after < f.with {
				verb = "hang"
			}
			if verb == "mixed" { // three hang, and then one is refused
				if verb = "hang"; n > f.after+3 {
					verb = "refuse"
				}
			}
			switch verb {
			case "hang":
				<-ctx.Done()
				return wire.EncodeFailure("CancelledError: cancelled")
			case "stuck":
				select {}
			case "refuse":
				return wire.EncodeFailure("RuntimeError: no luck with " + os.Getenv(upstreamKey))
			}
			fmt.Fprintln(os.Stderr, "testserver: last words")
			f.die()
		}
		payload, err := answerSum(req, "")
		if err != nil {
			return wire.EncodeFailure("ValueError: " + err.Error())
		}
		return payload
	}, zmqio.ServerOptions{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(64)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, os.Interrupt)
	<-stop
	_ = s.Close()
}

// upstreamKey is a variable that the server repeats in whatever it says, as a careless one would.
const upstreamKey = "UPSTREAM_API_KEY"

// answerSum is an episode of one turn: what was said before, and the sum.
func answerSum(req *zmqio.Request, before string) ([]byte, error) {
	run, err := wire.DecodeRunRequest(req.Payload)
	if err != nil {
		return nil, err
	}
	prompt, _ := run.TaskData["prompt"].(string)
	m := sum.FindStringSubmatch(prompt)
	if m == nil || run.Wevalr == nil {
		return nil, errors.New("no sum in the prompt")
	}
	a, _ := strconv.Atoi(m[1])
	b, _ := strconv.Atoi(m[2])
	said := os.Getenv(upstreamKey) + before + strconv.Itoa(a+b)
	data, err := wire.ValueOf(run.TaskData)
	if err != nil {
		return nil, err
	}
	task := wire.Task{Type: "Sum", Data: data, Key: run.Wevalr.Key}
	t := wire.Trace{
		Version: 1, ID: req.ID, Task: task, IsCompleted: true, OK: true, StopCondition: "agent_completed",
		Nodes: []wire.Node{
			{Parent: -1, Message: wire.Message{Role: "user", Content: wire.Text(prompt)}},
			{Parent: 0, Sampled: true, Message: wire.Message{Role: "assistant", Content: wire.Text(said)}},
		},
		Calls: []wire.ModelCall{{Node: 1, Model: run.Model, FinishReason: "stop", Usage: &wire.CallUsage{PromptTokens: 7, CompletionTokens: 2}}},
	}
	if err := req.Delta(wire.Delta{Trace: t.ID, Open: &t, Nodes: t.Nodes, Calls: t.Calls, Set: &t}.Encode()); err != nil {
		return nil, err
	}
	return wire.EncodeRunReply(&wire.Episode{ID: req.ID, Task: task, OK: true, Traces: []wire.Trace{t}})
}
