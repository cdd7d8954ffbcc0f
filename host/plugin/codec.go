package plugin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/wevalr/wevalr/host/scan"
	"github.com/wevalr/wevalr/plugins/abi"
)

// encode gives equal bytes for equal values: map keys are sorted.
func encode(encoding string, v any) ([]byte, error) {
	var b bytes.Buffer
	if encoding == abi.EncodingJSON {
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil {
			return nil, err
		}
		return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
	}
	enc := msgpack.NewEncoder(&b)
	enc.SetSortMapKeys(true)
	enc.UseCompactInts(true)
	err := enc.Encode(packed(v))
	return b.Bytes(), err
}

// envelope is every response; exactly one of the two is there.
type envelope struct {
	ok  []byte // still encoded
	err *abi.Error
}

// decodeEnvelope reads {ok: …} or {err: …} out of hostile bytes.
func decodeEnvelope(encoding string, b []byte) (envelope, error) {
	fields, err := decodeFields(encoding, b)
	if err != nil {
		return envelope{}, err
	}
	ok, isOK := fields["ok"]
	bad, isErr := fields["err"]
	switch {
	case isOK == isErr:
		return envelope{}, errors.New("want exactly one of ok and err")
	case isOK:
		return envelope{ok: ok}, nil
	}
	e := &abi.Error{}
	if err := decode(encoding, bad, e); err != nil {
		return envelope{}, fmt.Errorf("err: %w", err)
	}
	return envelope{err: e}, nil
}

// decodeFields splits a map into its still encoded values. Bytes are scanned before any decoder
// sees them.
func decodeFields(encoding string, b []byte) (fields map[string][]byte, err error) {
	defer recoverDecoder(&err)
	if encoding == abi.EncodingJSON {
		if !utf8.Valid(b) {
			return nil, errors.New("json: invalid UTF-8")
		}
		if err := nesting(b); err != nil {
			return nil, err
		}
		var raw map[string]json.RawMessage
		if err := json.Unmarshal(b, &raw); err != nil {
			return nil, err
		}
		return rawFields(raw), fewValues(b, valuesOfJSON)
	}
	if err := scan.Check(b, scan.Limits{}); err != nil {
		return nil, err
	}
	if err := fewValues(b, valuesOfMsgpack); err != nil {
		return nil, err
	}
	var raw map[string]msgpack.RawMessage
	if err := msgpack.Unmarshal(b, &raw); err != nil {
		return nil, err
	}
	return rawFields(raw), nil
}

func rawFields[R ~[]byte](raw map[string]R) map[string][]byte {
	fields := make(map[string][]byte, len(raw))
	for k, v := range raw {
		fields[k] = v
	}
	return fields
}

// decode reads a value whose bytes decodeFields has let through. Unknown fields are ignored.
// Numbers in untyped places become int64, uint64 or float64.
func decode(encoding string, b []byte, into any) (err error) {
	defer recoverDecoder(&err)
	if encoding == abi.EncodingJSON {
		dec := json.NewDecoder(bytes.NewReader(b))
		dec.UseNumber()
		return dec.Decode(into)
	}
	dec := msgpack.NewDecoder(bytes.NewReader(b))
	dec.UseLooseInterfaceDecoding(true)
	return dec.Decode(into)
}

// recoverDecoder stands at the guest's border: a decoder's panic is a bad response.
func recoverDecoder(err *error) {
	if r := recover(); r != nil { //nolint:revive // this function is the deferred one
		*err = fmt.Errorf("decoder: %v", r)
	}
}

// plain turns what a decoder left in an untyped place into what JSON can hold: nil, bool, int64,
// uint64, float64, string, []any, map[string]any.
func plain(v any) (any, error) {
	switch x := v.(type) {
	case nil, bool, int64, uint64:
		return v, nil
	case string:
		if !utf8.ValidString(x) {
			return nil, errors.New("text is not UTF-8")
		}
		return v, nil
	case float64:
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, fmt.Errorf("%v is not a number that can be stored", x)
		}
		return v, nil
	case json.Number:
		if n, err := x.Int64(); err == nil {
			return n, nil
		}
		f, err := x.Float64()
		if err != nil {
			return nil, fmt.Errorf("%s is not a number that can be stored", cut(x.String(), 100))
		}
		return f, nil
	case []any:
		for i := range x {
			e, err := plain(x[i])
			if err != nil {
				return nil, within(fmt.Sprintf("[%d]", i), err)
			}
			x[i] = e
		}
		return x, nil
	case map[string]any:
		return v, plainMap(x)
	}
	return nil, fmt.Errorf("%T cannot be stored", v)
}

// within says where err is. The way to a place may be of thousands of long names: to copy them for each step
// of it would take minutes, so a long one loses its beginning.
func within(place string, err error) error {
	if len(err.Error()) > maxErrorText {
		return err
	}
	return fmt.Errorf("%s: %w", cut(place, maxErrorText), err)
}

func plainMap(m map[string]any) error {
	for _, k := range sortedKeys(m) {
		e, err := plain(m[k])
		if err != nil {
			return within(k, err)
		}
		m[k] = e
	}
	return nil
}
