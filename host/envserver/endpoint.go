package envserver

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
)

// defaultConnect bounds the making of a connection, as in verifiers' client.
const defaultConnect = 30 * time.Second

// endpoint is an OpenAI-compatible endpoint as a request names it.
type endpoint struct {
	baseURL        string
	apiKeyVar      string
	headers        map[string]string
	headersFromEnv map[string]string
	connect        time.Duration
	read           time.Duration // time between received bytes; 0: for ever
	timeout        map[string]any
}

// secretVars are the variables whose values must not be seen.
func (e *endpoint) secretVars() []string {
	var names []string
	if e.apiKeyVar != "" {
		names = append(names, e.apiKeyVar)
	}
	return append(names, slices.Sorted(maps.Values(e.headersFromEnv))...)
}

// record is the endpoint as agent.config.client holds it. A password in the URL is left out.
func (e *endpoint) record() map[string]any {
	base := e.baseURL
	if u, err := url.Parse(base); err == nil && u.User != nil {
		base = u.Redacted()
	}
	return map[string]any{
		"base_url": base, "api_key_var": e.apiKeyVar,
		"headers": anyMap(e.headers), "headers_from_env": anyMap(e.headersFromEnv),
		"timeout": e.timeout, "type": "eval",
	}
}

func anyMap(m map[string]string) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

// readEndpoint reads a request's client. Unknown keys are refused, as verifiers refuses them.
func readEndpoint(client map[string]any, bad *invalid) endpoint {
	e := endpoint{connect: defaultConnect}
	e.timeout = map[string]any{"connect": defaultConnect.Seconds(), "read": nil, "write": nil, "pool": nil}
	switch client["type"] {
	case "eval":
	case nil:
		bad.add("client", "union_tag_not_found", "Unable to extract tag using discriminator 'type'")
		return e
	default:
		bad.add("client", "union_tag_invalid", "wevalr's env-server has no client type but 'eval'")
		return e
	}
	for _, key := range slices.Sorted(maps.Keys(client)) {
		loc, v := "client.eval."+key, client[key]
		switch key {
		case "type":
		case "base_url":
			e.baseURL = readString(v, loc, bad)
		case "api_key_var":
			e.apiKeyVar = readString(v, loc, bad)
		case "headers":
			e.headers = readStrings(v, loc, bad)
		case "headers_from_env":
			e.headersFromEnv = readStrings(v, loc, bad)
		case "timeout":
			e.readTimeout(v, loc, bad)
		default:
			bad.add(loc, "extra_forbidden", "Extra inputs are not permitted")
		}
	}
	return e
}

func readString(v any, loc string, bad *invalid) string {
	s, ok := v.(string)
	if !ok {
		bad.add(loc, "string_type", "Input should be a valid string, got %s", pyType(v))
	}
	return s
}

func readStrings(v any, loc string, bad *invalid) map[string]string {
	m, ok := v.(map[string]any)
	if !ok {
		bad.add(loc, "dict_type", "Input should be a valid dictionary, got %s", pyType(v))
		return nil
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[k] = readString(v, loc+"."+k, bad)
	}
	return out
}

// readTimeout reads {connect, read, write, pool}. write and pool are accepted and recorded; the
// connection's pool here has no queue, and writes are bounded by read.
func (e *endpoint) readTimeout(v any, loc string, bad *invalid) {
	m, ok := v.(map[string]any)
	if !ok {
		bad.add(loc, "dict_type", "Input should be a valid dictionary, got %s", pyType(v))
		return
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		v := m[key]
		s, ok := number(v)
		switch {
		case key != "connect" && key != "read" && key != "write" && key != "pool":
			bad.add(loc+"."+key, "extra_forbidden", "Extra inputs are not permitted")
			continue
		case v != nil && (!ok || !(s > 0)):
			bad.add(loc+"."+key, "greater_than", "Input should be a number greater than 0, or null")
			continue
		}
		d := time.Duration(min(s, 1e9) * float64(time.Second))
		switch key {
		case "connect":
			e.connect = d
		case "read":
			e.read = d
		}
		e.timeout[key] = v
	}
}

// fix holds a request's endpoint to the one that the server was configured with: what the request
// leaves out is filled in, what it says otherwise is refused. Timeouts are the request's to choose.
func (e *endpoint) fix(own *endpoint, bad *invalid) {
	const why = "this server was started for one endpoint, and this is not it: Input should be left out or %s"
	if e.baseURL == "" {
		e.baseURL = own.baseURL
	} else if strings.TrimRight(e.baseURL, "/") != strings.TrimRight(own.baseURL, "/") {
		bad.add("client.eval.base_url", "value_error", why, "the configured one")
	}
	if e.apiKeyVar == "" {
		e.apiKeyVar = own.apiKeyVar
	} else if e.apiKeyVar != own.apiKeyVar {
		bad.add("client.eval.api_key_var", "value_error", why, fmt.Sprintf("%q", own.apiKeyVar))
	}
	if len(e.headers) == 0 {
		e.headers = own.headers
	} else if !maps.Equal(e.headers, own.headers) {
		bad.add("client.eval.headers", "value_error", why, "the configured ones")
	}
	if len(e.headersFromEnv) == 0 {
		e.headersFromEnv = own.headersFromEnv
	} else if !maps.Equal(e.headersFromEnv, own.headersFromEnv) {
		bad.add("client.eval.headers_from_env", "value_error", why, "the configured ones")
	}
}

// checkBaseURL says why no call can be made to base.
func checkBaseURL(base string) error {
	u, err := url.Parse(base)
	switch {
	case base == "":
		return fmt.Errorf("Field required: there is no default endpoint")
	case err != nil || u.Host == "":
		return fmt.Errorf("Input should be a valid URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("Input should be an http or https URL, got %q", u.Scheme)
	}
	return nil
}
