// Package star runs a Starlark file as a scorer, as a group scorer, or as a source of tasks. It is the
// inside of the plugin `script`; it knows nothing of WebAssembly, so tests and debuggers can use it.
//
// Starlark (https://github.com/bazelbuild/starlark/blob/master/spec.md) has Python's syntax without
// imports, classes, exceptions and f-strings. What a file may define:
//
//	def score(task, episode): …          # one (task, episode)
//	def score_NAME(task, episode): …     # the same for the manifest's scorer NAME (- is written _)
//	def score_group(task, episodes): …   # all rollouts of a task; also score_group_NAME
//	def tasks(): …                       # a list of tasks
//
// A scoring function may take a further parameter `seed`: the only source of chance there is. It gives
// True, False, a number, None (skipped), or a dict. A dict with the key "value" is one score (value, label,
// explanation, answer, metadata, name); any other dict has scores by name, each of them a value or such a
// dict. task and episode have the fields of the ABI, as task.target or task["target"]; a field that is not
// there is None, an empty text, list or dict.
//
// Beside the language there are: json and math (go.starlark.net/lib), re, text and files of this package,
// and options, a dict of the plugin's options. Steps are bounded, recursion is off, there is neither clock
// nor entropy: equal requests have equal answers.
//
// # Concurrency
//
// A [Script] makes one call at a time.
//
// # Ownership
//
// Requests are read during a call only. Globals of the file are frozen once it has run: no call can leave
// anything for the next one.
//
// # Cancellation
//
// None; a call ends after [Options].Steps at the latest.
//
// # Errors
//
// Every error is an [*Error], with file and line where there is one.
package star
