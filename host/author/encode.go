package author

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"time"

	"github.com/wevalr/wevalr/plugins/abi"
)

// rawCaller is a *plugin.Plugin, called with bytes as they are: on a fresh instance, with its options.
// memory is the instance's, in bytes, after the call. It is what grease and bad requests need.
type rawCaller interface {
	CallRaw(ctx context.Context, op abi.Op, request []byte) (response []byte, memory uint64, took time.Duration, err error)
}

// generic turns the structs of the ABI into maps: what encode and grease work on.
func generic(v any) any {
	b, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var out any
	if err := dec.Decode(&out); err != nil {
		return nil
	}
	return plainNumber(out)
}

// encode writes nil, bool, int64, float64, string, []any and map[string]any, keys sorted, in a manifest's
// encoding.
func encode(encoding string, v any) []byte {
	if encoding == abi.EncodingJSON {
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil {
			return nil
		}
		return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	}
	return msgpack(nil, v)
}

// msgpack appends v. Format: https://github.com/msgpack/msgpack/blob/master/spec.md
func msgpack(b []byte, v any) []byte {
	switch x := v.(type) {
	case bool:
		if x {
			return append(b, 0xc3)
		}
		return append(b, 0xc2)
	case int64:
		switch {
		case x >= 0 && x < 128, x < 0 && x >= -32:
			return append(b, byte(x))
		}
		return binary.BigEndian.AppendUint64(append(b, 0xd3), uint64(x))
	case float64:
		return binary.BigEndian.AppendUint64(append(b, 0xcb), math.Float64bits(x))
	case string:
		return append(head(b, len(x), 0xa0, 32, 0xd9, 0xda, 0xdb), x...)
	case []any:
		b = head(b, len(x), 0x90, 16, 0, 0xdc, 0xdd)
		for _, e := range x {
			b = msgpack(b, e)
		}
		return b
	case map[string]any:
		b = head(b, len(x), 0x80, 16, 0, 0xde, 0xdf)
		for _, k := range sortedKeys(x) {
			b = msgpack(msgpack(b, k), x[k])
		}
		return b
	}
	return append(b, 0xc0)
}

// head writes a length: in one byte below small, else after the marks for 8 (0 = none), 16 and 32 bits.
func head(b []byte, n int, fix byte, small int, m8, m16, m32 byte) []byte {
	switch {
	case n < small:
		return append(b, fix|byte(n))
	case n < 1<<8 && m8 != 0:
		return append(b, m8, byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(b, m16), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(b, m32), uint32(n))
}
