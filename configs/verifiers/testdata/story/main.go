// Command story is a plugin that reads messages and tool calls: did a rollout of the words environment
// take the turns, and ask and hear the tool, as its task says?
package main

import (
	"fmt"

	"github.com/wevalr/wevalr/plugins/sdk"
)

func init() {
	sdk.Register(sdk.Plugin{Scorers: map[string]sdk.Scorer{"played": played}})
}

func main() {}

func played(r sdk.ScoreRequest) ([]sdk.Score, error) {
	answers, heard := 0, ""
	for _, m := range r.Episode.Messages {
		switch {
		case m.Role == "assistant" && len(m.ToolCalls) == 0:
			answers++
		case m.Role == "tool" && m.ToolCallID == r.Episode.ToolCalls[0].ID:
			heard = m.Content
		}
	}
	turns, ok := r.Task.Data["turns"].(int64)
	if !ok {
		turns = 1
	}
	right := int64(answers) == turns && len(r.Episode.ToolCalls) == 0
	if r.Task.Data["tool"] == true {
		asked := fmt.Sprintf(`{"name": "n%v"}`, r.Task.Data["idx"])
		right = answers == 1 && len(r.Episode.ToolCalls) == 1 && heard == r.Task.Target &&
			r.Episode.ToolCalls[0].Name == "lookup" && r.Episode.ToolCalls[0].Arguments == asked
	}
	s := sdk.Binary(right)
	s.Explanation = fmt.Sprintf("%d answers, tool calls %v, heard %q", answers, r.Episode.ToolCalls, heard)
	return []sdk.Score{s}, nil
}
