// Package abi holds the names, numbers and structs that wevalr and its plugins share: ABI v1.
//
// Host and guest both build this package (natively and for wasip1); it uses the standard library
// only. Numbers and meanings never change within a major version: a minor version adds functions,
// statuses or fields. abi.wat beside this file is the normative list of signatures.
//
// Everything here is plain data; nothing is safe or unsafe for concurrent use beyond that.
package abi

// Module is the import module: its name carries the major version.
const Module = "wevalr_v1"

// Marker is the export, never called, by which a module says which ABI it was built for. The form
// is wevalr_abi_<major>_<minor>.
const Marker = "wevalr_abi_1_0"

// MarkerPrefix starts every marker.
const MarkerPrefix = "wevalr_abi_"

// The version that this package describes.
const (
	Major = 1
	Minor = 0
)

// Names of the exports.
const (
	ExportMemory     = "memory"
	ExportInitialize = "_initialize"
	ExportBuf        = "wevalr_buf"
	ExportCall       = "wevalr_call"
)

// Custom sections that `wevalr plugin build` appends.
const (
	SectionManifest = "wevalr.manifest"
	SectionAssets   = "wevalr.assets"
)

// Op is the first argument of wevalr_call. Numbers are fixed for ever.
type Op int32

// The operations of v1.
const (
	OpInit       Op = 1
	OpTasks      Op = 2
	OpRollout    Op = 3
	OpScore      Op = 4
	OpScoreGroup Op = 5
)

// Status is what an import returns when it is negative. A guest treats an unknown one as Internal.
type Status int32

// The statuses of v1.
const (
	Denied         Status = -1
	Invalid        Status = -2
	TooLarge       Status = -3
	Cancelled      Status = -4
	Deadline       Status = -5
	ServerExited   Status = -6
	PeerFailed     Status = -7
	WorkerLost     Status = -8
	LimitReached   Status = -9
	NotFound       Status = -10
	Internal       Status = -11
	ConnectionLost Status = -12
	Stalled        Status = -13
	Protocol       Status = -14
)

// Log levels of log and log_enabled.
const (
	LevelDebug = 0
	LevelInfo  = 1
	LevelWarn  = 2
	LevelError = 3
)

// Limits that both sides know. Bytes and counts.
const (
	// MaxHandles are open at a time, MaxRuns are started by a rollout call.
	MaxHandles = 1024
	MaxRuns    = 10_000
	// MaxRequest bounds what a call is asked with.
	MaxRequest = 64 << 20
	// MaxResponse bounds what a call answers with, all but OpTasks.
	MaxResponse = 8 << 20
	// MaxTasksResponse bounds a page of tasks, so that whatever a request can carry can be a task. How
	// much of it a guest can make is a matter of its memory: pages of about a megabyte are well made,
	// larger ones are for single tasks that are larger. It holds at most MaxResponse values all the same:
	// text is what may be long.
	MaxTasksResponse = MaxRequest
	MaxTaskKey       = 200
	// MaxScores bounds the scores of an answer, and the different names that a scorer gives in a run.
	MaxScores = 256
)

// Names of a manifest's encodings.
const (
	EncodingMsgpack = "msgpack"
	EncodingJSON    = "json"
)

// Roles that a manifest's `provides` may name.
const (
	ProvidesTask        = "task/v1"
	ProvidesRollout     = "rollout/v1"
	ProvidesScorer      = "scorer/v1"
	ProvidesGroupScorer = "group-scorer/v1"
)
