package config

import (
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestConfig_ResultAffecting_WhatAResumeMayNotChange(t *testing.T) {
	base := load(t, minimal)
	if got, want := base.ResultAffecting(), map[string]string{
		"server.kind": `"embedded"`, "tasks.plugin": `"p"`, "tasks.shuffle": "false", "tasks.seed": "0",
		"model.name": `"offline/echo"`, "model.client.type": `"eval"`,
		"plugin.p.name": `"p"`, "plugin.p.source": quote(base.Plugins[0].Source),
	}; !maps.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(DiffResult(want, got), "\n"))
	}
	command := `server.command=["x","{address}"]`
	for _, tc := range []struct {
		set     string
		changes string // of the diff's first line; "": nothing
	}{
		{"tasks.num_tasks=3", ""},
		{"tasks.num_rollouts=3", ""},
		{"tasks.seed=3", "- tasks.seed = 0"},
		{"tasks.shuffle=true", "- tasks.shuffle = false"},
		{"run.max_concurrent=3", ""},
		{"run.retries=3", ""},
		{"model.max_retries=0", ""},
		{`model.client.timeout.read=3`, ""},
		{`model.client.api_key_var="SET_KEY"`, ""},
		{`model.client.base_url="http://h"`, `+ model.client.base_url = "http://h"`},
		{`model.client.headers={X-Org="a"}`, `+ model.client.headers.X-Org = "a"`},
		{`model.name="offline/demo"`, `- model.name = "offline/echo"`},
		{`model.sampling.temperature=1`, `+ model.sampling.temperature = 1`},
		{`prompt.system="x"`, `+ prompt.system = "x"`},
		{`rollout.plugin="p"`, `+ rollout.plugin = "p"`},
		{`plugin.p.options.a="x"`, `+ plugin.p.options.a = "x"`},
		{`plugin.p.grant.clock=true`, `+ plugin.p.grant.clock = true`},
		{`plugin.p.grant.env=true`, `+ plugin.p.grant.env = true`},
		{`plugin.p.limits.fuel="2K"`, `+ plugin.p.limits.fuel = 2000`},
		{`score=[{plugin="p",scorer="x"}]`, `+ score.p.x = true`},
		{`score=[{plugin="p",options={a=1}}]`, `+ score.p."*" = true`},
		{`server.env=["HOME"]`, ""},
		{`server.stall_after="1m"`, ""},
		{`server.address="tcp://h:1"`, `- server.kind = "embedded"`},
		{command, `+ server.command = ["x", "{address}"]`},
	} {
		set, err := ParseSet(tc.set)
		if err != nil {
			t.Fatal(err)
		}
		c, err := testLoader().Load(filepath.Join(filepath.Dir(base.Plugins[0].Source), "eval.toml"), []Override{set})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if diff := DiffResult(base.ResultAffecting(), c.ResultAffecting()); len(diff) > 0 {
			got = diff[0]
		}
		if got != tc.changes || (c.ResultDigest() != base.ResultDigest()) != (tc.changes != "") {
			t.Errorf("%s: got %q want %q", tc.set, got, tc.changes)
		}
	}
}

func TestConfig_ResultDigest_ScoreOrderDoesNotMatter(t *testing.T) {
	d := dir(t)
	digest := func(scores string) string {
		text := minimal + "[[plugin]]\nname = \"q\"\nsource = \"plug\"\n" + scores
		c, err := testLoader().Load(write1(t, filepath.Join(d, "eval.toml"), text), nil)
		if err != nil {
			t.Fatal(err)
		}
		return c.ResultDigest()
	}
	a, b := "[[score]]\nplugin = \"p\"\n", "[[score]]\nplugin = \"q\"\nscorer = \"x\"\n"
	if digest(a+b) != digest(b+a) || digest(a+b) == digest(a) {
		t.Errorf("got %s %s %s", digest(a+b), digest(b+a), digest(a))
	}
}

// TestConfig_TOML_RoundTrips sets every open place to whatever a value can be.
func TestConfig_TOML_RoundTrips(t *testing.T) {
	base := load(t, minimal)
	folder := filepath.Dir(base.Plugins[0].Source)
	again := filepath.Join(t.TempDir(), "config.toml")
	rapid.Check(t, func(rt *rapid.T) {
		options := rapid.MapOfN(rapid.StringN(1, 20, 60), value(3), 0, 5).Draw(rt, "options")
		set := []Override{
			{Key: "plugin.p.options", Value: options},
			{Key: "prompt.system", Value: rapid.String().Draw(rt, "system")},
			{Key: "prompt.template", Value: rapid.String().Draw(rt, "before") + "{{prompt}}"},
			{Key: "tasks.seed", Value: rapid.Int64().Draw(rt, "seed")},
			{Key: "tasks.num_tasks", Value: rapid.IntRange(1, math.MaxInt32).Draw(rt, "num_tasks")},
			{Key: "run.max_error_rate", Value: rapid.Float64Range(0, 1).Draw(rt, "rate")},
			{Key: "model.sampling.temperature", Value: rapid.Float64Range(0, math.MaxFloat64).Draw(rt, "temperature")},
			{Key: "plugin.p.limits.fuel", Value: rapid.Int64Min(1).Draw(rt, "fuel")},
			{Key: "server.settle", Value: formatDuration(durations().Draw(rt, "settle"))},
			{Key: "model.client.headers", Value: map[string]any{"X-" + rapid.StringMatching(`[b-d."]{1,8}`).Draw(rt, "header"): "v"}},
		}
		for i := range set {
			set[i].From = "test"
		}
		c, err := testLoader().Load(filepath.Join(folder, "eval.toml"), set)
		if err != nil {
			rt.Fatal(err)
		}
		text := c.TOML()
		if err := os.WriteFile(again, text, 0o600); err != nil {
			rt.Fatal(err)
		}
		c2, err := testLoader().Load(again, nil)
		if err != nil {
			rt.Fatalf("%v\n%s", err, text)
		}
		if !same(c, c2) {
			rt.Fatalf("got\n%s\nwant\n%s", c2.TOML(), text)
		}
		if len(options) > 0 && !reflect.DeepEqual(c2.Plugins[0].Options, options) {
			rt.Fatalf("options: got %#v want %#v", c2.Plugins[0].Options, options)
		}
	})
}

func durations() *rapid.Generator[time.Duration] {
	return rapid.Map(rapid.Int64Range(0, math.MaxInt64), func(n int64) time.Duration { return time.Duration(n) })
}

func value(depth int) *rapid.Generator[any] {
	gens := []*rapid.Generator[any]{
		rapid.String().AsAny(), rapid.Int64().AsAny(), rapid.Bool().AsAny(), rapid.Float64().AsAny(),
	}
	if depth > 0 {
		sub := rapid.Deferred(func() *rapid.Generator[any] { return value(depth - 1) })
		gens = append(gens, rapid.SliceOfN(sub, 0, 4).AsAny(), rapid.MapOfN(rapid.StringN(1, 10, 30), sub, 0, 4).AsAny())
	}
	return rapid.OneOf(gens...)
}

func TestParseSet(t *testing.T) {
	for _, tc := range []struct {
		arg, key string
		value    any
		err      string
	}{
		{"run.retries=2", "run.retries", int64(2), ""},
		{` plugin."a.b".options.x = [1, "y"] `, `plugin."a.b".options.x`, []any{int64(1), "y"}, ""},
		{`a={b=1.5}`, "a", map[string]any{"b": 1.5}, ""},
		{"model.name=foo", "", nil, "needs quotes"},
		{"a=1\nb=2", "", nil, "not TOML"},
		{"a", "", nil, "malformed"},
		{"=1", "", nil, "malformed"},
		{"a.=1", "", nil, "malformed"},
		{"a=", "", nil, "not TOML"},
		{"a=" + strings.Repeat("[", 1000), "", nil, "deeper"},
	} {
		got, err := ParseSet(tc.arg)
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%q: got %v want %q", tc.arg, err, tc.err)
			}
			continue
		}
		if want := (Override{Key: tc.key, Value: tc.value, From: "--set " + tc.key}); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %+v, %v want %+v", tc.arg, got, err, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "ab", 2}, {"retries", "retrys", 2}, {"ab", "ba", 1}, {"seed", "sed", 1}, {"same", "same", 0}} {
		if got := distance(tc.a, tc.b); got != tc.want {
			t.Errorf("%q %q: got %d want %d", tc.a, tc.b, got, tc.want)
		}
	}
}
