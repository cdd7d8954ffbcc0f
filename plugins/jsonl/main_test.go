package main

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/wevalr/wevalr/plugins/abi"
	"github.com/wevalr/wevalr/plugins/sdk/sdktest"
)

func host(file string, options map[string]any) sdktest.Host {
	return sdktest.Host{Datasets: map[string]fs.FS{"dataset": fstest.MapFS{"tasks.jsonl": {Data: []byte(file)}}}, Options: options}
}

func hash(line string) string {
	sum := sha256.Sum256([]byte(line))
	return hex.EncodeToString(sum[:8])
}

func TestTasks(t *testing.T) {
	whole := `{"key": "k/1", "data": {"prompt": "p", "n": 1}, "target": {"a": [1, 2.5]}, "choices": ["x", 2], "cluster": "c", "group": 7, "metadata": {"m": null}}`
	for name, c := range map[string]struct {
		line    string
		options map[string]any
		want    abi.Task
	}{
		"everything": {whole, nil, abi.Task{
			Key: "k/1", Data: map[string]any{"prompt": "p", "n": int64(1)}, Target: map[string]any{"a": []any{int64(1), 2.5}},
			Choices: []string{"x", "2"}, Cluster: "c", Group: "7", Metadata: map[string]any{"m": nil},
		}},
		"no data, no key": {`{"prompt": "p", "target": "t", "image": "i"}`, nil, abi.Task{
			Key: hash(`{"prompt": "p", "target": "t", "image": "i"}`), Data: map[string]any{"prompt": "p", "image": "i"}, Target: "t",
		}},
		"own fields": {`{"id": 5, "question": "q", "answer": "a"}`, map[string]any{"key_field": "id", "prompt_field": "question"}, abi.Task{
			Key: "5", Data: map[string]any{"question": "q", "answer": "a", "prompt": "q"},
		}},
		"data is no object": {`{"key": "k", "data": "text"}`, nil, abi.Task{Key: "k", Data: map[string]any{"data": "text"}}},
	} {
		got, err := sdktest.New(t, host(c.line, c.options)).Tasks(10)
		if err != nil || len(got) != 1 || !reflect.DeepEqual(got[0], c.want) {
			t.Errorf("%s: got %+v, %v\nwant %+v", name, got, err, c.want)
		}
	}
}

func TestTasks_Lines(t *testing.T) {
	got, err := sdktest.New(t, host("\ufeff{\"key\": \"a\"}\r\n\n  \n{\"key\": \"b\"}\n{\"key\": \"c\"}", nil)).Tasks(2)
	if err != nil || len(got) != 3 || got[0].Key != "a" || got[2].Key != "c" {
		t.Errorf("got %+v, %v", got, err)
	}
}

// A page ends before the response grows past what the host takes.
func TestTasks_LargeFile(t *testing.T) {
	line := `{"prompt": "` + strings.Repeat("x", 300<<10) + `", "n": `
	var b strings.Builder
	for i := range 40 {
		b.WriteString(line + string(rune('0'+i/10)) + ", \"m\": " + string(rune('0'+i%10)) + "}\n")
	}
	got, err := sdktest.New(t, host(b.String(), nil)).Tasks(1000)
	if err != nil || len(got) != 40 || got[39].Data["m"] != int64(9) {
		t.Errorf("got %d tasks, %v", len(got), err)
	}
}

func TestTasks_Errors(t *testing.T) {
	for name, c := range map[string]struct {
		line, want string
		options    map[string]any
	}{
		"no json":     {`{`, "json: ", nil},
		"list":        {`[]`, "want an object", nil},
		"bad key":     {`{"key": "a b"}`, "key: want a key", nil},
		"dots":        {`{"key": "a/../b"}`, "key: want a key", nil},
		"key is list": {`{"key": []}`, "key: want a key", nil},
		"choices":     {`{"choices": "a"}`, "choices: want a list", nil},
		"choice":      {`{"choices": [null]}`, "choices: want strings", nil},
		"group":       {`{"group": {}}`, "group: want a string", nil},
		"cluster":     {`{"cluster": []}`, "cluster: want a string", nil},
		"metadata":    {`{"metadata": 1}`, "metadata: want an object", nil},
		"prompt":      {`{"prompt": "p"}`, "no field question", map[string]any{"prompt_field": "question"}},
	} {
		_, err := sdktest.New(t, host("{}\n"+c.line, c.options)).Tasks(10)
		if name == "prompt" {
			_, err = sdktest.New(t, host("{\"question\": 1}\n"+c.line, c.options)).Tasks(10)
		}
		if err == nil || !strings.HasPrefix(err.Error(), "tasks.jsonl:2: "+c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}
