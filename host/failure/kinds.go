package failure

// kind is a row of the table: fixed names of docs/operations.md.
type kind struct {
	source Source
	name   string
	retry  bool
}

// kinds is the table "Outcomes and failure kinds"; the order is the order in which a person reads it.
func kinds() []kind {
	return []kind{
		{Model, "rate_limited", true},
		{Model, "unavailable", true},
		{Model, "rejected", false},
		{Server, "task_error", false},
		{Server, "harness_error", false},
		{Server, "sandbox_error", true},
		{Server, "toolset_error", false},
		{Server, "interception_error", true},
		{Server, "env_error", false},
		{Server, "setup_timeout", false},
		{Server, "finalize_timeout", false},
		{Server, "scoring_timeout", false},
		{Server, "refused", false},
		{Server, "peer_error", false},
		{Server, "exited", false},
		{Server, "connection_lost", false},
		{Server, "worker_lost", false},
		{Server, "stalled", false},
		{Server, "protocol", false},
		{Server, "too_large", false},
		{Server, "not_ready", false},
		{Plugin, "trap", false},
		{Plugin, "exit", false},
		{Plugin, "fuel", false},
		{Plugin, "memory", false},
		{Plugin, "deadline", false},
		{Plugin, "response", false},
		{Plugin, "abi", false},
		{Host, "disk", false},
		{Host, "internal", false},
		{Cancelled, "caller", true},
		{Cancelled, "drain", true},
		{Cancelled, "fail_fast", true},
	}
}

// Known reports whether the pair stands in the table. A plugin's own codes do not.
func Known(source Source, name string) bool {
	for _, k := range kinds() {
		if k.source == source && k.name == name {
			return true
		}
	}
	return false
}

// Retryable reports whether `retries` may start another try after such a failure. The server's
// death kinds are decided by on_exit, not here; unknown kinds are not retryable.
func Retryable(source Source, name string) bool {
	for _, k := range kinds() {
		if k.source == source && k.name == name {
			return k.retry && source != Cancelled
		}
	}
	return false
}
