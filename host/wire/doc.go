// Package wire knows the env-server's messages: run, health, cancel, the deltas and the episode
// that they add up to; msgpack ↔ Go ↔ JSON. It speaks verifiers 0.4.x and 0.4.1 pre-releases, and
// reads the older two-frame answers.
//
// What the peer sends is hostile until proven otherwise: every payload passes host/scan before it
// is decoded, and anything that does not fit the schema is a [*ProtocolError] that says where and
// what was seen. Unknown fields are no error: they are kept ([Extra], [Value]) through
// msgpack → Go → JSON → Go → JSON.
//
// Integers and floats stay apart all the way: 1.0 is written as 1.0. Bytes (msgpack bin) become
// base64 strings in JSON, which has none. NaN and infinities become null, a reward or metric that
// is one becomes nil: they never enter a mean. The raw tensors of a node (routed_experts,
// sampling_mask) are decoded and never written to JSON.
//
// The decoder is our own and reads from the message's bytes in place; the msgpack library's, which
// goes through an io.Reader and reflection for each element, takes seven times as long for a large
// episode. One typed decoder serves both formats: JSON is first turned into msgpack.
//
// # Concurrency, ownership
//
// Functions are pure and safe for concurrent use. Values are plain data: not safe for concurrent
// modification. Decoding keeps nothing of its input; results belong to the caller. Nothing here
// blocks, so nothing takes a context.
package wire
