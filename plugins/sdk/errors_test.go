package sdk

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/wevalr/wevalr/plugins/abi"
)

func TestErrors_Total(t *testing.T) {
	var none *Error
	for _, err := range []error{
		none, &Error{},
		CallError{},
		&CallError{}, &DeniedError{}, &PeerError{}, &WorkerLostError{}, &ConnectionLostError{},
		&StalledError{}, &LimitError{}, &ProtocolError{}, &ServerExitedError{},
	} {
		if err.Error() == "" {
			t.Errorf("%T: got no text", err)
		}
	}
}

func TestCallError_Types(t *testing.T) {
	is := func(target any) func(error) bool { return func(err error) bool { return errors.As(err, target) } }
	for status, match := range map[abi.Status]func(error) bool{
		abi.Denied: is(new(*DeniedError)), abi.PeerFailed: is(new(*PeerError)), abi.WorkerLost: is(new(*WorkerLostError)),
		abi.ConnectionLost: is(new(*ConnectionLostError)), abi.Stalled: is(new(*StalledError)), abi.LimitReached: is(new(*LimitError)),
		abi.Protocol: is(new(*ProtocolError)), abi.ServerExited: is(new(*ServerExitedError)),
		abi.Cancelled: func(err error) bool { return errors.Is(err, ErrCancelled) },
		abi.Deadline:  func(err error) bool { return errors.Is(err, ErrDeadline) },
		abi.Invalid:   is(new(*CallError)), abi.Internal: is(new(*CallError)), -99: is(new(*CallError)),
	} {
		err := fmt.Errorf("try 2: %w", callError(&abi.EnvError{Status: status, Source: "s", Kind: "k", Message: "m"}))
		if !match(err) {
			t.Errorf("status %v: %T does not match", status, errors.Unwrap(err))
		}
		if got := envelope(err); got.Code != status.String() || !strings.HasPrefix(got.Message, "try 2: env: ") || got.Data["source"] != "s" {
			t.Errorf("status %v: got %+v", status, got)
		}
	}
	if errors.Is(&CallError{Status: abi.Internal}, ErrCancelled) {
		t.Error("internal matches ErrCancelled")
	}
}

func TestServerExitedError_Facts(t *testing.T) {
	code := int64(0)
	for _, c := range []struct {
		facts *abi.ServerFacts
		code  int
		text  string
	}{
		{&abi.ServerFacts{Code: &code}, 0, "env: the server exited with code 0"},
		{&abi.ServerFacts{Signal: "SIGKILL"}, -1, "env: the server was ended by SIGKILL"},
		{nil, -1, "env: the server exited with code -1"},
	} {
		err := callError(&abi.EnvError{Status: abi.ServerExited, Server: c.facts})
		var x *ServerExitedError
		if !errors.As(err, &x) || x.Code != c.code || err.Error() != c.text {
			t.Errorf("%+v: got %v", c.facts, err)
		}
	}
}

func TestEnvelope_OwnErrors(t *testing.T) {
	own := &Error{Code: "c", Message: "m", Retryable: true, Data: map[string]any{"n": 1}}
	for _, c := range []struct {
		err           error
		code, message string
	}{{own, "c", "m"}, {fmt.Errorf("x: %w", own), "c", "x: m"}, {&Error{}, "error", ""}, {errors.New("p"), "error", "p"}} {
		if got := envelope(c.err); got.Code != c.code || got.Message != c.message {
			t.Errorf("%v: got %+v", c.err, got)
		}
	}
}

func TestServe_NotARequest(t *testing.T) {
	p := &Plugin{}
	for _, op := range []abi.Op{0, abi.OpInit, abi.OpTasks, abi.OpRollout, abi.OpScore, abi.OpScoreGroup, 99} {
		for _, request := range [][]byte{nil, {0xc1}, {0x80}, []byte("{}")} {
			if out := serve(p, op, request, nil); len(out) == 0 || (op != abi.OpInit || len(request) != 1 || request[0] != 0x80) && !strings.Contains(string(out), "code") {
				t.Errorf("op %d %q: got %q", op, request, out)
			}
		}
	}
}

func TestOptions(t *testing.T) {
	o := &Options{values: map[string]any{"s": "x", "i": int64(3), "f": 2.0, "h": 2.5, "b": true, "n": nil}}
	if o.String("s", "") != "x" || o.Int("i", 0) != 3 || o.Int("f", 0) != 2 || o.Float("i", 0) != 3 || o.Float("h", 0) != 2.5 || !o.Bool("b", false) || o.err != nil {
		t.Errorf("got %v", o.err)
	}
	if o.String("none", "d") != "d" || o.Int("n", 7) != 7 || o.err != nil {
		t.Errorf("defaults: got %v", o.err)
	}
	if o.Int("h", 0); o.err == nil || o.err.Error() != "option h: not an integer" {
		t.Errorf("got %v", o.err)
	}
}

func TestLines_Cursor(t *testing.T) {
	text := "a\r\n\nlong " + strings.Repeat("x", 200<<10) + "\nlast"
	fsys := fstest.MapFS{"f": {Data: []byte(text)}}
	want := strings.Split(strings.ReplaceAll(text, "\r", ""), "\n")
	var got []string
	for cursor := ""; ; { // each line through a reader of its own
		l, err := OpenLines(fsys, "f", cursor)
		if err != nil {
			t.Fatal(err)
		}
		if !l.Next() {
			if l.Err() != nil {
				t.Fatal(l.Err())
			}
			break
		}
		if l.Index() != len(got) {
			t.Errorf("got index %d want %d", l.Index(), len(got))
		}
		got = append(got, string(l.Bytes()))
		cursor = l.Cursor()
		l.Close()
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %d lines, want %d, or other ones", len(got), len(want))
	}
	for _, cursor := range []string{"x", "1", "-1@0", "1@-1", "@", "1@x"} {
		if _, err := OpenLines(fsys, "f", cursor); err == nil {
			t.Errorf("cursor %q: got no error", cursor)
		}
	}
}
