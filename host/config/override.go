package config

import (
	"fmt"
	"strings"

	"github.com/BurntSushi/toml"
)

// Override is a value that wins over the file. Key is dotted and goes through arrays of tables by
// index, plugins also by alias: run.retries, score.0.scorer, plugin.gsm8k.options.marker. Where
// both fit, the alias wins. An override changes entries of [[score]] and [[plugin]] and adds none;
// for that, set the whole array. A path in a value is relative to the eval file.
type Override struct {
	Key   string
	Value any    // string, bool, int, int64, float64, []string, []any, map[string]any
	From  string // how messages and Origin call it: "flag -n", "--set run.retries"
}

// Flag is the override of a flag of `run` that has a key: -c, -m, -n, -r, --seed or --task.
func Flag(name string, value any) Override {
	keys := map[string]string{
		"-c": "run.max_concurrent", "-m": "model.name", "-n": "tasks.num_tasks", "-r": "tasks.num_rollouts",
		"--seed": "tasks.seed", "--task": "tasks.select",
	}
	key, ok := keys[name]
	if !ok {
		panic("config: Flag: no key for " + name)
	}
	return Override{Key: key, Value: value, From: "flag " + name}
}

// ParseSet reads the argument of --set: KEY=VALUE, the value as TOML writes it.
//
// # Errors
//
// An [*Error] when the key is malformed or the value is no single TOML value.
func ParseSet(arg string) (Override, error) {
	fail := func(key, msg, hint string) (Override, error) {
		return Override{}, &Error{From: "--set", Key: key, Msg: msg, Hint: hint}
	}
	key, rest := splitKey(arg)
	text, ok := strings.CutPrefix(rest, "=")
	if len(key) == 0 || !ok {
		return fail("", "malformed argument", "write --set KEY=VALUE, for example --set run.retries=2")
	}
	if _, _, err := scanLines([]byte("v = " + text)); err != nil {
		return fail(key.String(), err.Error(), "write it in another form")
	}
	var doc map[string]any
	_, err := toml.Decode("v = "+text, &doc)
	if v, ok := doc["v"]; err == nil && ok && len(doc) == 1 {
		return Override{Key: key.String(), Value: plain(v), From: "--set " + key.String()}, nil
	}
	return fail(key.String(), "the value is not TOML",
		fmt.Sprintf(`a string needs quotes, also from the shell: --set '%s="…"'`, key))
}

// splitKey reads a dotted key and returns what follows it.
func splitKey(s string) (toml.Key, string) {
	sc := &scanner{src: []byte(s), line: 1}
	key := sc.key()
	sc.blanks()
	if sc.err != nil {
		return nil, s
	}
	return key, string(sc.src[sc.pos:])
}
