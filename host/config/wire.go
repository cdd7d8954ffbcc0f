package config

// Wire is the client as a run request carries it: what the file names, and type, which the wire
// demands. What is left out is the env-server's to choose.
func (c *Client) Wire() map[string]any {
	out := map[string]any{"type": c.Type}
	put := func(key string, v any, given bool) {
		if given {
			out[key] = v
		}
	}
	put("base_url", c.BaseURL, c.BaseURL != "")
	put("api_key_var", c.APIKeyVar, c.APIKeyVar != "")
	put("headers", anyMap(c.Headers), len(c.Headers) > 0)
	put("headers_from_env", anyMap(c.HeadersFromEnv), len(c.HeadersFromEnv) > 0)
	put("renderer", c.Renderer, len(c.Renderer) > 0)
	put("renderer_model_name", c.RendererModel, c.RendererModel != "")
	put("multiplex", int64(c.Multiplex), c.Multiplex > 0)
	timeout := map[string]any{}
	for k, v := range map[string]*float64{"connect": c.Timeout.Connect, "read": c.Timeout.Read, "write": c.Timeout.Write, "pool": c.Timeout.Pool} {
		if v != nil {
			timeout[k] = *v
		}
	}
	put("timeout", timeout, len(timeout) > 0)
	return out
}

func anyMap(m map[string]string) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}
