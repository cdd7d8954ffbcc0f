package sdk

import (
	"strconv"

	"github.com/wevalr/wevalr/plugins/abi"
)

// Level says how much a log message matters.
type Level int32

// The levels.
const (
	LevelDebug Level = abi.LevelDebug
	LevelInfo  Level = abi.LevelInfo
	LevelWarn  Level = abi.LevelWarn
	LevelError Level = abi.LevelError
)

// Log writes one message into the host's log; the pairs of key and value follow it.
func Log(level Level, msg string, pairs ...any) {
	if !hostLogEnabled(int32(level)) {
		return
	}
	for i, v := range pairs {
		if i%2 == 0 {
			msg += " " + text(v)
		} else {
			msg += "=" + text(v)
		}
	}
	hostLog(int32(level), []byte(msg))
}

// text is a short form of v, without package fmt and its weight.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return "nil"
	case string:
		return v
	case error:
		return v.Error()
	case interface{ String() string }:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	case int:
		return strconv.Itoa(v)
	case int32:
		return strconv.FormatInt(int64(v), 10)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return "?"
}
