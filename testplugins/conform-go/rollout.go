package main

import (
	"errors"
	"sync"
	"time"

	"github.com/wevalr/wevalr/plugins/sdk"
)

// rollout drives as the task's data says: drive = run (the default), chain, parallel, await, cancel,
// take, sampling, close.
func rollout(env *sdk.Env, r sdk.RolloutRequest) (sdk.Rollout, error) {
	drive, _ := r.Task.Data["drive"].(string)
	req := sdk.EnvRequest{TaskData: map[string]any{"prompt": r.Task.Data["prompt"]}}
	switch drive {
	case "", "run":
		h, _, err := env.Run(req)
		return one(h, err)
	case "chain": // each call's answer is the next one's prompt
		return chain(env, req, 2)
	case "parallel":
		return parallel(env, req)
	case "await":
		return await(env, req)
	case "cancel":
		return cancel(env, req)
	case "take":
		return take(env, req)
	case "sampling":
		req.Sampling = map[string]any{"temperature": 0.5}
		h, _, err := env.Run(req)
		return one(h, err)
	case "ungranted":
		req.Sampling = map[string]any{"max_tokens": 5}
		h, _, err := env.Run(req)
		return one(h, err)
	case "close":
		h, _, err := env.Run(req)
		if err == nil {
			h.Close()
		}
		return one(h, err)
	}
	return sdk.Rollout{}, sdk.NewError("bad_drive", "no such drive: "+drive)
}

func one(h *sdk.Handle, err error) (sdk.Rollout, error) {
	if err != nil {
		return sdk.Rollout{}, err
	}
	return scored([]*sdk.Handle{h}), nil
}

func scored(handles []*sdk.Handle) sdk.Rollout {
	s := sdk.Number(float64(len(handles)))
	s.Name = "calls"
	return sdk.Rollout{Episodes: handles, Selected: len(handles) - 1, Scores: []sdk.Score{s}}
}

func chain(env *sdk.Env, req sdk.EnvRequest, n int) (sdk.Rollout, error) {
	var handles []*sdk.Handle
	for range n {
		h, ep, err := env.Run(req)
		if err != nil {
			return sdk.Rollout{}, err
		}
		handles = append(handles, h)
		req = sdk.EnvRequest{TaskData: map[string]any{"prompt": ep.Completion}}
	}
	return scored(handles), nil
}

// parallel is 4 chains in goroutines of their own.
func parallel(env *sdk.Env, req sdk.EnvRequest) (sdk.Rollout, error) {
	var wg sync.WaitGroup
	var handles [4][]*sdk.Handle
	var errs [4]error
	for i := range handles {
		wg.Go(func() {
			done, err := chain(env, req, 2)
			handles[i], errs[i] = done.Episodes, err
		})
	}
	wg.Wait()
	var all []*sdk.Handle
	for _, h := range handles {
		all = append(all, h...)
	}
	return scored(all), errors.Join(errs[:]...)
}

func await(env *sdk.Env, req sdk.EnvRequest) (sdk.Rollout, error) {
	if _, err := env.AwaitAny(0); !errors.Is(err, sdk.ErrNoneOpen) {
		return sdk.Rollout{}, sdk.NewError("await", "nothing open: want ErrNoneOpen")
	}
	for range 3 {
		if _, err := env.Start(req); err != nil {
			return sdk.Rollout{}, err
		}
	}
	var handles []*sdk.Handle
	for len(handles) < 3 {
		h, err := env.AwaitAny(10 * time.Millisecond)
		if errors.Is(err, sdk.ErrDeadline) {
			continue
		}
		if err != nil {
			return sdk.Rollout{}, err
		}
		if !h.Done() {
			return sdk.Rollout{}, sdk.NewError("await", "an awaited handle is not done")
		}
		handles = append(handles, h)
	}
	return scored(handles), nil
}

// cancel cancels one call, sees it end as cancelled, and goes on with another.
func cancel(env *sdk.Env, req sdk.EnvRequest) (sdk.Rollout, error) {
	h, err := env.Start(req)
	if err != nil {
		return sdk.Rollout{}, err
	}
	h.Cancel()
	if _, err := h.Take(); !errors.Is(err, sdk.ErrCancelled) {
		return sdk.Rollout{}, sdk.NewError("cancel", "a cancelled call: want ErrCancelled")
	}
	h.Close()
	done, _, err := env.Run(req)
	return one(done, err)
}

// take takes twice, and once more after close.
func take(env *sdk.Env, req sdk.EnvRequest) (sdk.Rollout, error) {
	h, err := env.Start(req)
	if err != nil {
		return sdk.Rollout{}, err
	}
	a, err := h.Take()
	if err != nil {
		return sdk.Rollout{}, err
	}
	b, err := h.Take()
	if err != nil || a.Completion != b.Completion {
		return sdk.Rollout{}, sdk.NewError("take", "a second take: want the same episode")
	}
	h.Close()
	var call *sdk.CallError
	if _, err := h.Take(); !errors.As(err, &call) {
		return sdk.Rollout{}, sdk.NewError("take", "a closed handle: want a CallError")
	}
	done, _, err := env.Run(req)
	return one(done, err)
}
