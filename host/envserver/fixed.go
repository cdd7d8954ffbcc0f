package envserver

import (
	"fmt"

	"github.com/wevalr/wevalr/host/wire"
)

// fixed are the parts of a trace that are the same in every one, encoded once.
type fixed struct {
	version, env                       wire.Value
	harness, runtime, timeout, retries wire.Value
	never                              wire.Value // the span of a stage that was not reached
}

func newFixed(version string) fixed {
	return fixed{
		// Our own version, where verifiers puts its: what made the trace is not verifiers.
		version: value(map[string]any{"version": "wevalr/" + version, "commit": nil}),
		env:     value(map[string]any{"id": "wevalr", "name": nil}),
		harness: value(map[string]any{
			"id": "wevalr", "env": map[string]any{}, "forward_env": []any{}, "mcp_header_env": map[string]any{},
			"tool_timeout": 600.0, "disabled_tools": nil, "skills": []any{},
		}),
		runtime: value(map[string]any{"type": "subprocess"}),
		timeout: value(map[string]any{"setup": nil, "rollout": nil, "finalize": nil, "scoring": nil}),
		retries: value(map[string]any{"max_retries": int64(0), "rules": []any{}}),
		never:   span(0, 0),
	}
}

// value encodes what this package itself put together, which is always encodable.
func value(v any) wire.Value {
	b, err := wire.ValueOf(v)
	if err != nil {
		panic(fmt.Sprintf("envserver: %v", err))
	}
	return b
}
