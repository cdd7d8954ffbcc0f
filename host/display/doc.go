// Package display shows a run while it goes on: plain lines or JSON lines on stderr.
//
// Results are not its business (package report). It is told of events from many goroutines, under one
// short mutex, and writes from a goroutine of its own, so that a slow terminal delays nobody: events
// never wait for it, notices 100 ms, Close as long as it takes.
//
// [Clean] stands between everything that wevalr prints and the terminal: text of models, servers and
// plugins is scrubbed of control characters there, once, and cannot be forgotten elsewhere.
package display
