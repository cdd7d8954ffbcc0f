package config

import (
	"fmt"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
)

func (l Loader) checkModel(b *binder, m *Model, s *Server) {
	client := toml.Key{"model", "client"}
	kind := s.Kind()
	if m.Client.BaseURL != "" || b.given("model", "client", "base_url") {
		if why := badURL(m.Client.BaseURL); why != "" && kindOf(lookup(b.tree, child(client, "base_url"))) == "a string" {
			b.report(child(client, "base_url"), `for example base_url = "http://127.0.0.1:8000/v1"`, "%s", why)
		}
	} else if kind == Embedded && m.Name != "" && !m.Offline() {
		b.report(child(client, "base_url"), `add client = { base_url = "https://…/v1" } to [model], or use offline/demo, which needs no network`, "missing")
	}
	l.checkVar(b, child(client, "api_key_var"), m.Client.APIKeyVar, s)
	for _, h := range sorted(m.Client.HeadersFromEnv) {
		key := append(child(client, "headers_from_env"), h)
		if v := m.Client.HeadersFromEnv[h]; isVar(v) {
			l.checkVar(b, key, v, s)
		} else {
			b.report(key, "the name of an environment variable, never a value", "not the name of a variable")
		}
	}
	for _, h := range sorted(m.Client.Headers) {
		key := append(child(client, "headers"), h)
		switch {
		case isSecret(h):
			b.report(key, fmt.Sprintf("use headers_from_env = { %s = \"NAME_OF_A_VARIABLE\" }: an eval file holds no secrets", toml.Key{h}), "this header looks like a credential")
		case strings.ContainsAny(m.Client.Headers[h], "\r\n\x00"):
			b.report(key, "a header is one line", "has a line end in it")
		}
	}
	if m.Client.Type == "eval" {
		for _, k := range []string{"renderer", "renderer_model_name", "multiplex"} {
			if b.given("model", "client", k) {
				b.report(child(client, k), `leave it out, or write type = "train"`, "is for a client of type train only")
			}
		}
	}
	b.checkSampling(m.Sampling)
	b.checkOptions(m, kind)
}

// lookup finds a value in the tree; nil when there is none.
func lookup(tree map[string]any, key toml.Key) any {
	var v any = tree
	for _, part := range key {
		m, _ := v.(map[string]any)
		v = m[part]
	}
	return v
}

// badURL says why an endpoint cannot be one, without repeating what may hold a password.
func badURL(s string) string {
	u, err := url.Parse(s)
	switch {
	case s == "":
		return "empty"
	case err != nil:
		return "not a URL"
	case u.User != nil:
		return "a user name or password in the address; credentials go by api_key_var"
	case u.Scheme != "http" && u.Scheme != "https":
		return "the scheme must be http or https"
	case u.Hostname() == "":
		return "the host is missing"
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		return "a query or fragment cannot be part of it"
	}
	return ""
}

// checkVar checks that the env-server will see the variable.
func (l Loader) checkVar(b *binder, key toml.Key, name string, s *Server) {
	if !isVar(name) || s.Kind() == Address { // malformed is reported; another's environment is not ours to see
		return
	}
	if s.Kind() == Command && !slices.Contains(s.Env, name) {
		b.report(key, fmt.Sprintf("add it to [server]: env = [%q]", name), "%s is not passed on to the server's command", name)
		return
	}
	if l.LookupEnv == nil {
		return
	}
	if _, ok := l.LookupEnv(name); !ok {
		b.report(key, fmt.Sprintf("export %s=…, or leave the key out for an endpoint that needs none", name), "the variable %s is not set", name)
	}
}

func (b *binder) checkSampling(s map[string]any) {
	for _, k := range sorted(s) {
		v := s[k]
		x, isNumber := number(v)
		n, isInt := v.(int64)
		_, isString := v.(string)
		_, isTable := v.(map[string]any)
		want := ""
		switch k {
		case "temperature":
			if !isNumber || x < 0 {
				want = "a number of 0 or more"
			}
		case "top_p":
			if !isNumber || x < 0 || x > 1 {
				want = "a number from 0 to 1"
			}
		case "max_tokens", "max_completion_tokens":
			if !isInt || n < 1 {
				want = "an integer of 1 or more"
			}
		case "seed":
			if !isInt {
				want = "an integer"
			}
		case "reasoning_effort":
			if !isString {
				want = "a string"
			}
		case "extra_body":
			if !isTable {
				want = "a table"
			}
		}
		key := toml.Key{"model", "sampling", k}
		if want != "" {
			b.report(key, "write "+k+" = … as the endpoint's API has it, or leave it out", "expected %s, got %s", want, seen(key, v))
		}
	}
	if s["max_tokens"] != nil && s["max_completion_tokens"] != nil {
		b.report(toml.Key{"model", "sampling", "max_completion_tokens"}, "keep one of them", "is another name of max_tokens, which is there too")
	}
}

// checkOptions checks the options of the offline models, which are the embedded env-server's.
func (b *binder) checkOptions(m *Model, kind string) {
	path := toml.Key{"model", "options"}
	if kind != Embedded {
		if b.given(path...) {
			b.report(path, "leave it out; give options to your server's own configuration", "model options reach the embedded env-server only")
		}
		return
	}
	models := offlineModels()
	mine, known := models[m.Name]
	if m.Offline() && !known {
		b.report(toml.Key{"model", "name"}, choice(m.Name, sorted(models)), "unknown offline model %s", quote(clip(m.Name)))
		return
	}
	for _, f := range fields(reflect.TypeFor[ModelOptions]()) {
		if b.given("model", "options", f.key) && m.Name != "" && !slices.Contains(mine, f.key) {
			b.report(child(path, f.key), "it is an option of "+owner(f.key), "%s has no such option", quote(clip(m.Name)))
		}
	}
	if m.Name != "offline/replay" {
		return
	}
	file := child(path, "file")
	if m.Options.File == "" {
		b.report(file, `add options = { file = "completions.jsonl" } to [model]`, "offline/replay needs a file of completions")
		return
	}
	if fi, err := os.Stat(m.Options.File); err != nil || fi.IsDir() {
		b.report(file, "a JSONL file, relative to the eval file", "%s is not there, or not a file", quote(m.Options.File))
	}
}

// owner is the offline model that has the option.
func owner(option string) string {
	models := offlineModels()
	for _, name := range sorted(models) {
		if slices.Contains(models[name], option) {
			return name
		}
	}
	return "no model"
}
