package codec

import "strconv"

// Any reads a value of any kind: nil, bool, int64, uint64 (past int64), float64, string, []byte,
// []any or map[string]any. Integer keys become decimal text; extension types become nil.
func (r *Reader) Any() any {
	if !r.enter() {
		return nil
	}
	defer r.leave()
	switch c := r.peek(); {
	case c <= 0x7f, c >= 0xe0, c >= 0xca && c <= 0xd3:
		i, f, isFloat, isBig := r.number()
		switch {
		case isFloat:
			return f
		case isBig:
			return uint64(i)
		}
		return i
	case c>>4 == 0x8, c == 0xde, c == 0xdf:
		return r.mapBody()
	case c>>4 == 0x9, c == 0xdc, c == 0xdd:
		n := r.ArrayLen()
		list := make([]any, 0, min(n, 1024))
		for range n {
			list = append(list, r.Any())
			if r.err != nil {
				return nil
			}
		}
		return list
	case c>>5 == 0x5, c >= 0xd9 && c <= 0xdb:
		return r.String()
	case c >= 0xc4 && c <= 0xc6:
		return append([]byte(nil), r.Key()...)
	case c == 0xc2, c == 0xc3:
		return r.Bool()
	case c == 0xc0:
		r.take(1)
		return nil
	}
	r.skipExt()
	return nil
}

// AnyMap reads a map of any values; nil is nil.
func (r *Reader) AnyMap() map[string]any {
	if r.Nil() || !r.enter() {
		return nil
	}
	defer r.leave()
	return r.mapBody()
}

func (r *Reader) mapBody() map[string]any {
	n := r.MapLen()
	if r.err != nil {
		return nil
	}
	m := make(map[string]any, min(n, 1024))
	for range n {
		k := r.anyKey()
		v := r.Any()
		if r.err != nil {
			return nil
		}
		m[k] = v
	}
	return m
}

func (r *Reader) anyKey() string {
	c := r.peek()
	if c <= 0x7f || c >= 0xe0 || c >= 0xcc && c <= 0xd3 {
		i, _, _, isBig := r.number()
		if isBig {
			return strconv.FormatUint(uint64(i), 10)
		}
		return strconv.FormatInt(i, 10)
	}
	return r.String()
}

// Strings reads an array of strings; nil is nil. Numbers among them become decimal text.
func (r *Reader) Strings() []string {
	if r.Nil() {
		return nil
	}
	return list(r, (*Reader).anyKey)
}

// list reads an array of what read reads; nil is nil.
func list[T any](r *Reader, read func(*Reader) T) []T {
	if r.Nil() || !r.enter() {
		return nil
	}
	defer r.leave()
	n := r.ArrayLen()
	if n == 0 || r.err != nil {
		return nil
	}
	out := make([]T, 0, min(n, 1024))
	for range n {
		out = append(out, read(r))
		if r.err != nil {
			return nil
		}
	}
	return out
}

// Skip reads past one value of any kind, without recursion.
func (r *Reader) Skip() {
	for left := 1; left > 0 && r.err == nil; left-- {
		switch c := r.peek(); {
		case c>>4 == 0x8, c == 0xde, c == 0xdf:
			left += 2 * r.MapLen()
		case c>>4 == 0x9, c == 0xdc, c == 0xdd:
			left += r.ArrayLen()
		case c>>5 == 0x5, c >= 0xd9 && c <= 0xdb, c >= 0xc4 && c <= 0xc6:
			r.Key()
		case c == 0xc0, c == 0xc2, c == 0xc3:
			r.take(1)
		case c <= 0x7f, c >= 0xe0, c >= 0xca && c <= 0xd3:
			r.number()
		default:
			r.skipExt()
		}
	}
}

func (r *Reader) skipExt() {
	var n uint64
	switch c := r.peek(); c {
	case 0xd4, 0xd5, 0xd6, 0xd7, 0xd8:
		r.take(1)
		n = 1 << (c - 0xd4)
	case 0xc7, 0xc8, 0xc9:
		r.take(1)
		n = r.uint(1 << (c - 0xc7))
	default:
		r.fail(errKind)
		return
	}
	r.take(1)
	r.take(r.length(n, 1))
}
