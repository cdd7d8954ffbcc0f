package plugin

import "github.com/wevalr/wevalr/plugins/abi"

// The msgpack library sorts the keys of map[string]any only. The types of this file are the abi's
// with its other maps turned into that, so that a guest gets the same bytes for the same episode.

// packed gives the form of v that encodes to the same bytes each time.
func packed(v any) any {
	switch x := v.(type) {
	case abi.ScoreRequest:
		return packedScore{x.Scorer, x.Task, packEpisode(x.Episode), x.Seed}
	case abi.ScoreGroupRequest:
		return packedGroup{x.Scorer, x.Task, packEpisodes(x.Episodes), x.Seed}
	case abi.EnvReply:
		r := packedReply{Err: x.Err}
		if x.Episode != nil {
			ep := packEpisode(*x.Episode)
			r.Episode = &ep
		}
		return r
	}
	return v
}

type packedScore struct {
	Scorer  string        `msgpack:"scorer"`
	Task    abi.Task      `msgpack:"task"`
	Episode packedEpisode `msgpack:"episode"`
	Seed    int64         `msgpack:"seed"`
}

type packedGroup struct {
	Scorer   string          `msgpack:"scorer"`
	Task     abi.Task        `msgpack:"task"`
	Episodes []packedEpisode `msgpack:"episodes"`
	Seed     int64           `msgpack:"seed"`
}

type packedReply struct {
	Episode *packedEpisode `msgpack:"ok,omitempty"`
	Err     *abi.EnvError  `msgpack:"err,omitempty"`
}

// packedEpisode has abi.Episode's fields in its order.
type packedEpisode struct {
	Completion    string           `msgpack:"completion,omitempty"`
	Messages      []abi.Message    `msgpack:"messages,omitempty"`
	Info          map[string]any   `msgpack:"info,omitempty"`
	StopCondition string           `msgpack:"stop_condition,omitempty"`
	Errors        []abi.TraceError `msgpack:"errors,omitempty"`
	Rewards       map[string]any   `msgpack:"rewards,omitempty"`
	Metrics       map[string]any   `msgpack:"metrics,omitempty"`
	Usage         *abi.Usage       `msgpack:"usage,omitempty"`
	Timing        map[string]any   `msgpack:"timing,omitempty"`
	ToolCalls     []abi.ToolCall   `msgpack:"tool_calls,omitempty"`
	Tokens        []abi.NodeTokens `msgpack:"tokens,omitempty"`
	Traces        []packedEpisode  `msgpack:"traces,omitempty"`
}

func packEpisode(e abi.Episode) packedEpisode {
	return packedEpisode{
		Completion: e.Completion, Messages: e.Messages, Info: e.Info, StopCondition: e.StopCondition,
		Errors: e.Errors, Rewards: untyped(e.Rewards), Metrics: untyped(e.Metrics), Usage: e.Usage,
		Timing: e.Timing, ToolCalls: e.ToolCalls, Tokens: e.Tokens, Traces: packEpisodes(e.Traces),
	}
}

func packEpisodes(list []abi.Episode) []packedEpisode {
	if list == nil {
		return nil
	}
	out := make([]packedEpisode, len(list))
	for i := range list {
		out[i] = packEpisode(list[i])
	}
	return out
}

func untyped[V any](m map[string]V) map[string]any {
	if m == nil {
		return nil
	}
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}
