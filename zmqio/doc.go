// Package zmqio is request and reply over ZMTP: a client (a DEALER that connects) and a server (a
// ROUTER that listens) of the env-server's wire, on zmq4's connection layer. Payloads are opaque.
//
// A request is [id, method, payload]. An answer is any number of [id, "delta", payload] and then
// one [id, "reply", payload]; the older dialect answers [id, payload] only, and is told by the
// number of frames of a connection's first answer. zmq4 shakes hands, behind a guard that bounds
// every length first, and writes; messages are read by the guard itself. zmq4's sockets are not used:
// they crash, lose and hang (docs/rationale.md).
//
// # Concurrency
//
// All exported methods may be called from any number of goroutines. A [Client] has two goroutines
// of its own, a reader that never waits for a caller and a writer; a call costs none. A [Server]
// has one that accepts, two a connection, and one a run.
//
// # Ownership
//
// A payload given to this package belongs to it and is never changed by it; the caller must not
// change it afterwards either. What [Client.Call] returns belongs to the caller. One connection is
// one life of the server at the other end: a Client never connects again.
//
// # Cancellation
//
// A call is queued, sent or abandoned. When its context ends, a queued one never reaches the wire;
// a sent one is cancelled on the wire and waits, for a bounded time, until the server has answered
// both the cancel and the run. An answer that arrived before wins over every cancel, deadline and
// [Client.Fail]. A handler's context ends by a cancel on the wire, by the client's leaving, and by
// [Server.Close].
//
// # Errors
//
// [ConnError]: the connection ended or was refused; its Sent says whether the server may have seen
// the request. [TooLargeError]: an answer, or all of them together, went past a limit in bytes.
// [ProtocolError], [LimitError], [StallError]: what a peer did wrong, as causes of a ConnError or
// from [Dial]. Nothing that a peer sends is answered with silence, and nothing waits for ever on a
// connection that has ended.
package zmqio
