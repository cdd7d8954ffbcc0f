package wire

import "strconv"

// sink writes one schema in two formats: JSON as verifiers writes it to disk (nil fields left out),
// and msgpack as its server sends it (every field there, nil or not).
type sink struct {
	b    []byte
	json bool
	n    int // entries of the map that is being written
}

// mark remembers the map around the one that is being written.
type mark struct{ at, n int }

func (s *sink) open() mark {
	m := mark{at: len(s.b), n: s.n}
	s.n = 0
	if s.json {
		s.b = append(s.b, '{')
	} else {
		s.b = append(s.b, 0)
	}
	return m
}

func (s *sink) close(m mark) {
	if s.json {
		s.b = append(s.b, '}')
	} else {
		s.b = patchLen(s.b, m.at, s.n, true)
	}
	s.n = m.n
}

func (s *sink) key(name string) {
	if !s.json {
		s.b = appendStr(s.b, name)
	} else {
		if s.n > 0 {
			s.b = append(s.b, ',')
		}
		s.b = append(appendJSONString(s.b, name), ':')
	}
	s.n++
}

// optional writes the key of a field that is nil or not. When it is nil it is done.
func (s *sink) optional(name string, set bool) bool {
	if !set && s.json {
		return false
	}
	s.key(name)
	if !set {
		s.b = append(s.b, 0xc0)
	}
	return set
}

func (s *sink) str(v string) {
	if s.json {
		s.b = appendJSONString(s.b, v)
	} else {
		s.b = appendStr(s.b, validUTF8(v))
	}
}

func (s *sink) int(v int64) {
	if s.json {
		s.b = strconv.AppendInt(s.b, v, 10)
	} else {
		s.b = appendInt(s.b, v)
	}
}

func (s *sink) float(v float64) {
	if s.json {
		s.b = appendJSONFloat(s.b, v)
	} else {
		s.b = appendFloat(s.b, v)
	}
}

func (s *sink) bool(v bool) {
	if s.json {
		s.b = strconv.AppendBool(s.b, v)
	} else {
		s.b = appendBool(s.b, v)
	}
}

func (s *sink) null() {
	if s.json {
		s.b = append(s.b, "null"...)
	} else {
		s.b = append(s.b, 0xc0)
	}
}

// value writes an opaque value; in JSON nils of its outermost `drop` map levels are left out.
func (s *sink) value(v Value, drop int) {
	if s.json {
		s.b = v.appendJSON(s.b, drop)
	} else if len(v) == 0 {
		s.b = append(s.b, 0xc0)
	} else {
		s.b = append(s.b, v...)
	}
}

// seq writes a list.
func seq[T any](s *sink, l []T, each func(*T, *sink)) {
	if !s.json {
		s.b = appendListLen(s.b, len(l))
		for i := range l {
			each(&l[i], s)
		}
		return
	}
	s.b = append(s.b, '[')
	for i := range l {
		if i > 0 {
			s.b = append(s.b, ',')
		}
		each(&l[i], s)
	}
	s.b = append(s.b, ']')
}

// Fields of the usual kinds.

func (s *sink) strField(name, v string) { s.key(name); s.str(v) }

func (s *sink) intField(name string, v int64) { s.key(name); s.int(v) }

func (s *sink) floatField(name string, v float64) { s.key(name); s.float(v) }

func (s *sink) boolField(name string, v bool) { s.key(name); s.bool(v) }

// optStrField writes a string whose "" is nil.
func (s *sink) optStrField(name, v string) {
	if s.optional(name, v != "") {
		s.str(v)
	}
}

func (s *sink) indexField(name string, v int) {
	if s.optional(name, v >= 0) {
		s.int(int64(v))
	}
}

// valueField writes an opaque field that may be nil.
func (s *sink) valueField(name string, v Value, drop int) {
	if s.optional(name, !v.IsNil()) {
		s.value(v, drop)
	}
}

// mapField writes an opaque field whose absence is empty: an empty map, or an empty list.
func (s *sink) mapField(name string, v Value, empty byte, drop int) {
	s.key(name)
	if v.IsNil() {
		v = Value{empty}
	}
	s.value(v, drop)
}

func (s *sink) valuesField(name string, l []Value, drop int) {
	s.key(name)
	seq(s, l, func(v *Value, s *sink) { s.value(*v, drop) })
}

// floatsField writes a stream that may be nil.
func (s *sink) floatsField(name string, l []float64) {
	if s.optional(name, l != nil) {
		seq(s, l, func(f *float64, s *sink) { s.float(*f) })
	}
}

func (s *sink) extra(e Extra) {
	for _, f := range e {
		s.key(f.Name)
		s.value(f.Value, 0)
	}
}
