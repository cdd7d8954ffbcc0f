package envserver

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/wevalr/wevalr/host/wire"
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

// readEndpoint reads a request's client, whose types wire has checked (but for the timeout's).
func readEndpoint(client map[string]any, bad *wire.ValidationError) endpoint {
	e := endpoint{
		headers:        stringMap(client["headers"]),
		headersFromEnv: stringMap(client["headers_from_env"]),
	}
	e.baseURL, _ = client["base_url"].(string)
	e.apiKeyVar, _ = client["api_key_var"].(string)
	if t := client["type"]; t != "eval" {
		bad.Add("client", "Input tag found using 'type' does not match any of the expected tags: 'eval'", "union_tag_invalid", t)
	}
	e.setTimeout(client["timeout"], "client.eval.timeout", bad)
	return e
}

func stringMap(v any) map[string]string {
	m, _ := v.(map[string]any)
	if len(m) == 0 {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[k], _ = v.(string)
	}
	return out
}

// setTimeout reads {connect, read, write, pool}, or nil for the defaults. write and pool are
// recorded and no more: there is no queue for a connection here, and read bounds writes too.
func (e *endpoint) setTimeout(v any, loc string, bad *wire.ValidationError) {
	e.connect, e.read = defaultConnect, 0
	e.timeout = map[string]any{"connect": defaultConnect.Seconds(), "read": nil, "write": nil, "pool": nil}
	m, ok := v.(map[string]any)
	if !ok && v != nil {
		bad.Add(loc, "Input should be a valid dictionary", "dict_type", v)
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		v := m[key]
		s, ok := number(v)
		if _, known := e.timeout[key]; !known {
			bad.Add(loc+"."+key, "Extra inputs are not permitted", "extra_forbidden", v)
			continue
		}
		if v != nil && (!ok || !(s > 0)) {
			bad.Add(loc+"."+key, "Input should be a number greater than 0", "greater_than", v)
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
func (e *endpoint) fix(own *endpoint, hasTimeout bool, bad *wire.ValidationError) {
	if !hasTimeout {
		e.connect, e.read, e.timeout = own.connect, own.read, own.timeout
	}
	const why = "Input should be left out, or as this server was configured"
	if e.baseURL == "" {
		e.baseURL = own.baseURL
	} else if strings.TrimRight(e.baseURL, "/") != strings.TrimRight(own.baseURL, "/") {
		bad.Add("client.eval.base_url", why, "value_error", e.baseURL)
	}
	if e.apiKeyVar == "" {
		e.apiKeyVar = own.apiKeyVar
	} else if e.apiKeyVar != own.apiKeyVar {
		bad.Add("client.eval.api_key_var", why, "value_error", e.apiKeyVar)
	}
	if len(e.headers) == 0 {
		e.headers = own.headers
	} else if !maps.Equal(e.headers, own.headers) {
		bad.Add("client.eval.headers", why, "value_error", e.headers)
	}
	if len(e.headersFromEnv) == 0 {
		e.headersFromEnv = own.headersFromEnv
	} else if !maps.Equal(e.headersFromEnv, own.headersFromEnv) {
		bad.Add("client.eval.headers_from_env", why, "value_error", e.headersFromEnv)
	}
}

// checkBaseURL says why no call can be made to base; "" when one can. There is no default.
func checkBaseURL(base string) string {
	u, err := url.Parse(base)
	switch {
	case base == "":
		return "Field required"
	case err != nil || u.Host == "":
		return "Input should be a valid URL"
	case u.Scheme != "http" && u.Scheme != "https":
		return "Input should be an http or https URL"
	}
	return ""
}
