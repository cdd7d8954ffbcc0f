package expect_test

import (
	"slices"
	"testing"

	"github.com/wevalr/wevalr/plugins/abi"
	"github.com/wevalr/wevalr/plugins/internal/expect"
)

func TestTexts(t *testing.T) {
	task := abi.Task{
		Key: "k", Target: int64(-7), Choices: []string{"A", "B"}, Cluster: "c", Group: "g",
		Data:     map[string]any{"all": []any{"x", 2.5, true, nil, uint64(1 << 63)}, "deep": map[string]any{"list": []any{"zero", []any{"one"}}}},
		Metadata: map[string]any{"m": "n"},
	}
	for path, want := range map[string][]string{
		"target": {"-7"}, "key": {"k"}, "cluster": {"c"}, "group": {"g"}, "choices": {"A", "B"}, "choices.1": {"B"}, "metadata.m": {"n"},
		"data.all": {"x", "2.5", "true", "9223372036854775808"}, "data.deep.list.1.0": {"one"}, "data.deep": nil, "data.none.x": nil,
		"choices.2": nil, "choices.-1": nil, "target.x": nil, "nowhere": nil, "": nil,
	} {
		if got := expect.Texts(task, path); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", path, got, want)
		}
	}
}
