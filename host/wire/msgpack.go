package wire

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
)

// The append functions write the shortest form, as the real server's encoder does.

func appendHead(b []byte, n int, fix byte, fixMax int, code16 byte) []byte {
	switch {
	case n <= fixMax:
		return append(b, fix|byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, code16), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(b, code16+1), uint32(n))
}

func appendMapLen(b []byte, n int) []byte  { return appendHead(b, n, 0x80, 15, 0xde) }
func appendListLen(b []byte, n int) []byte { return appendHead(b, n, 0x90, 15, 0xdc) }

func appendStr[S string | []byte](b []byte, s S) []byte {
	if n := len(s); n > 31 && n <= math.MaxUint8 {
		b = append(b, 0xd9, byte(n))
	} else {
		b = appendHead(b, n, 0xa0, 31, 0xda)
	}
	return append(b, s...)
}

func appendBin(b, s []byte) []byte {
	if n := len(s); n <= math.MaxUint8 {
		b = append(b, 0xc4, byte(n))
	} else {
		b = appendHead(b, n, 0, -1, 0xc5)
	}
	return append(b, s...)
}

func appendUint(b []byte, v uint64) []byte {
	switch {
	case v < 0x80:
		return append(b, byte(v))
	case v <= math.MaxUint8:
		return append(b, 0xcc, byte(v))
	case v <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(b, 0xcd), uint16(v))
	case v <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(b, 0xce), uint32(v))
	}
	return binary.BigEndian.AppendUint64(append(b, 0xcf), v)
}

func appendInt(b []byte, v int64) []byte {
	switch {
	case v >= 0:
		return appendUint(b, uint64(v))
	case v >= -32:
		return append(b, byte(v))
	case v >= math.MinInt8:
		return append(b, 0xd0, byte(v))
	case v >= math.MinInt16:
		return binary.BigEndian.AppendUint16(append(b, 0xd1), uint16(v))
	case v >= math.MinInt32:
		return binary.BigEndian.AppendUint32(append(b, 0xd2), uint32(v))
	}
	return binary.BigEndian.AppendUint64(append(b, 0xd3), uint64(v))
}

func appendFloat(b []byte, v float64) []byte {
	return binary.BigEndian.AppendUint64(append(b, 0xcb), math.Float64bits(v))
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 0xc3)
	}
	return append(b, 0xc2)
}

// appendAny writes the plain values that JSON and msgpack decoders make. Map keys are sorted, so
// that equal values give equal bytes.
func appendAny(b []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return append(b, 0xc0), nil
	case bool:
		return appendBool(b, v), nil
	case string:
		return appendStr(b, validUTF8(v)), nil
	case []byte:
		return appendBin(b, v), nil
	case int:
		return appendInt(b, int64(v)), nil
	case int8:
		return appendInt(b, int64(v)), nil
	case int16:
		return appendInt(b, int64(v)), nil
	case int32:
		return appendInt(b, int64(v)), nil
	case int64:
		return appendInt(b, v), nil
	case uint:
		return appendUint(b, uint64(v)), nil
	case uint8:
		return appendUint(b, uint64(v)), nil
	case uint16:
		return appendUint(b, uint64(v)), nil
	case uint32:
		return appendUint(b, uint64(v)), nil
	case uint64:
		return appendUint(b, v), nil
	case float32:
		return appendFloat(b, float64(v)), nil
	case float64:
		return appendFloat(b, v), nil
	case json.Number:
		return appendNumber(b, v.String())
	case Value:
		if v == nil {
			return append(b, 0xc0), nil
		}
		return append(b, v...), nil
	case map[string]any:
		return appendMap(b, v)
	case map[string]string:
		return appendMap(b, v)
	case []any:
		return appendList(b, v)
	case []string:
		return appendList(b, v)
	case []map[string]any:
		return appendList(b, v)
	}
	return nil, fmt.Errorf("cannot encode a %T", v)
}

func appendMap[T any](b []byte, m map[string]T) ([]byte, error) {
	b = appendMapLen(b, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		var err error
		if b, err = appendAny(appendStr(b, validUTF8(k)), m[k]); err != nil {
			return nil, fmt.Errorf("%s: %w", k, err)
		}
	}
	return b, nil
}

func appendList[T any](b []byte, l []T) ([]byte, error) {
	b = appendListLen(b, len(l))
	for i, e := range l {
		var err error
		if b, err = appendAny(b, e); err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return b, nil
}
