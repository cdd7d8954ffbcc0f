package main

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/wevalr/wevalr/plugins/abi"
	"github.com/wevalr/wevalr/plugins/sdk"
	"github.com/wevalr/wevalr/plugins/sdk/sdktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answer is what one call of the scripted env-server comes to.
type answer struct {
	text string
	err  error
}

// script lets call i answer answers[i], the last one first.
func script(answers ...answer) func(context.Context, abi.EnvRequest) (*abi.Episode, error) {
	gates := make([]chan struct{}, len(answers)+1)
	for i := range gates {
		gates[i] = make(chan struct{})
	}
	close(gates[len(answers)])
	var next atomic.Int64
	return func(ctx context.Context, req abi.EnvRequest) (*abi.Episode, error) {
		i := int(next.Add(1)) - 1
		select {
		case <-gates[i+1]:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		defer close(gates[i])
		return &abi.Episode{Completion: answers[i].text}, answers[i].err
	}
}

func request() abi.RolloutRequest {
	return abi.RolloutRequest{Task: abi.Task{Key: "k", Data: map[string]any{"prompt": "p"}}, Seed: 7}
}

func TestRollout_Selects(t *testing.T) {
	for _, c := range []struct {
		rule, want string
	}{{"longest", "ccc"}, {"shortest", "a"}, {"first", "bb"}} {
		p := sdktest.New(t, sdktest.Host{
			Options:  map[string]any{"n": int64(3), "select": c.rule},
			Env:      script(answer{text: "a"}, answer{text: "ccc"}, answer{text: "bb"}),
			Sampling: []string{"temperature"},
		})
		got, err := p.Rollout(request())
		if err != nil || len(got.Episodes) != 3 || got.Episodes[got.Selected].Completion != c.want {
			t.Errorf("%s: got %+v, %v; want %q", c.rule, got, err, c.want)
			continue
		}
		if len(got.Scores) != 1 || got.Scores[0].Name != "candidates" || *got.Scores[0].Value != 3 {
			t.Errorf("%s: got scores %+v", c.rule, got.Scores)
		}
	}
}

func TestRollout_Sampling(t *testing.T) {
	for _, temperature := range []any{nil, -1.0} {
		var sampling map[string]any
		host := sdktest.Host{
			Options:  map[string]any{"n": int64(1), "temperature": temperature},
			Sampling: []string{"temperature"},
			Env: func(_ context.Context, req abi.EnvRequest) (*abi.Episode, error) {
				sampling = req.Sampling
				return nil, nil
			},
		}
		_, err := sdktest.New(t, host).Rollout(request())
		if want := temperature == nil; err != nil || (sampling["temperature"] == 0.8) != want || (len(sampling) == 1) != want {
			t.Errorf("temperature %v: got sampling %v, %v", temperature, sampling, err)
		}
		host.Sampling = nil
		_, err = sdktest.New(t, host).Rollout(request())
		if denied := err != nil && err.(*sdk.Error).Code == "denied"; denied != (temperature == nil) {
			t.Errorf("temperature %v, not granted: got %v", temperature, err)
		}
	}
}

func TestRollout_ServerExits(t *testing.T) {
	exit := sdktest.ServerExited(3, "last words")
	for name, c := range map[string]struct {
		onExit  string
		answers []answer
		want    string // the selected completion, "" = the exit as an error
	}{
		"fail":                  {"fail", []answer{{err: exit}, {text: "a"}}, ""},
		"best of what is there": {"best", []answer{{err: exit}, {text: "a"}}, "a"},
		"nothing is there":      {"best", []answer{{err: exit}, {err: exit}}, ""},
	} {
		p := sdktest.New(t, sdktest.Host{
			Options: map[string]any{"n": int64(2), "on_exit": c.onExit}, Env: script(c.answers...), Sampling: []string{"temperature"},
		})
		got, err := p.Rollout(request())
		if c.want != "" {
			if err != nil || len(got.Episodes) != 1 || got.Episodes[0].Completion != c.want {
				t.Errorf("%s: got %+v, %v", name, got, err)
			}
			continue
		}
		var own *sdk.Error
		if !errors.As(err, &own) || own.Code != "server_exited" {
			t.Errorf("%s: got %v, want server_exited", name, err)
			continue
		}
		server, _ := own.Data["server"].(map[string]any)
		if own.Data["source"] != "server" || server["code"] != int64(3) || server["tail"].([]any)[0] != "last words" {
			t.Errorf("%s: got data %v", name, own.Data)
		}
	}
}

func TestRollout_PeerErrors(t *testing.T) {
	peer := sdktest.PeerError("no such task")
	for _, c := range []struct {
		answers []answer
		want    int
	}{{[]answer{{err: peer}, {text: "a"}, {err: peer}}, 1}, {[]answer{{err: peer}}, 0}} {
		p := sdktest.New(t, sdktest.Host{
			Options: map[string]any{"n": int64(len(c.answers))}, Env: script(c.answers...), Sampling: []string{"temperature"},
		})
		got, err := p.Rollout(request())
		if len(got.Episodes) != c.want || (err == nil) != (c.want > 0) || c.want == 0 && err.(*sdk.Error).Code != "peer_error" {
			t.Errorf("got %+v, %v; want %d episodes", got, err, c.want)
		}
		if len(p.Logs()) == 0 {
			t.Error("got no log of the failed candidate")
		}
	}
}

func TestInit_BadOptions(t *testing.T) {
	for _, o := range []map[string]any{{"n": int64(0)}, {"n": int64(1025)}, {"select": "best"}, {"on_exit": "retry"}} {
		if _, err := sdktest.New(t, sdktest.Host{Options: o}).Init(); err == nil {
			t.Errorf("%v: got no error", o)
		}
	}
}
