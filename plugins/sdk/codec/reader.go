// Package codec turns the structs of package abi into msgpack and back, without reflection.
//
// Guests use it through package sdk, and sdktest plays the host with it; it is exported only so that
// both can. It is lenient where a newer host may differ: unknown fields are skipped, nil is the zero
// value, an integral float is an integer and any integer a float. It is strict where bytes would be
// misread: truncated input, wrong kinds, lengths past the input and nesting deeper than 256 are
// errors.
//
// Decoded values own their memory. A Reader or Writer is for one goroutine.
package codec

import (
	"errors"
	"math"
	"strconv"
)

// maxDepth bounds nesting, so that hostile input cannot grow the stack.
const maxDepth = 256

var (
	errShort = errors.New("msgpack: input ends too early")
	errDepth = errors.New("msgpack: nested too deep")
	errTail  = errors.New("msgpack: bytes after the value")
	errKind  = errors.New("msgpack: unexpected kind of value")
	errRange = errors.New("msgpack: number out of range")
)

// Reader decodes one msgpack value after another. The first error sticks: from then on everything
// reads as zero, so callers look at Err once, at the end.
type Reader struct {
	b     []byte
	pos   int
	depth int
	err   error
}

// NewReader reads b, which must not change while it is read.
func NewReader(b []byte) *Reader { return &Reader{b: b} }

// Err is the first error, nil if everything so far could be read.
func (r *Reader) Err() error { return r.err }

// End is Err, or an error if something is left after what was read.
func (r *Reader) End() error {
	if r.err == nil && r.pos != len(r.b) {
		r.fail(errTail)
	}
	return r.err
}

func (r *Reader) fail(err error) {
	if r.err == nil {
		r.err = errors.New(err.Error() + " at byte " + strconv.Itoa(r.pos))
		r.pos = len(r.b)
	}
}

func (r *Reader) peek() byte {
	if r.pos >= len(r.b) {
		r.fail(errShort)
		return 0xc0
	}
	return r.b[r.pos]
}

func (r *Reader) take(n int) []byte {
	if n < 0 || n > len(r.b)-r.pos {
		r.fail(errShort)
		return nil
	}
	b := r.b[r.pos : r.pos+n]
	r.pos += n
	return b
}

// uint reads n big-endian bytes.
func (r *Reader) uint(n int) uint64 {
	var v uint64
	for _, c := range r.take(n) {
		v = v<<8 | uint64(c)
	}
	return v
}

func (r *Reader) enter() bool {
	if r.depth++; r.depth > maxDepth {
		r.fail(errDepth)
		return false
	}
	return r.err == nil
}

func (r *Reader) leave() { r.depth-- }

// Nil consumes a nil and reports whether there was one.
func (r *Reader) Nil() bool {
	if r.err != nil || r.peek() != 0xc0 {
		return r.err != nil
	}
	r.pos++
	return true
}

// length reads a length of n bytes; every element needs at least min bytes of what is left.
func (r *Reader) length(n uint64, min int) int {
	if n > uint64(len(r.b)-r.pos)/uint64(min) {
		r.fail(errShort)
		return 0
	}
	return int(n)
}

// MapLen starts a map and gives its number of pairs; nil is an empty one.
func (r *Reader) MapLen() int {
	switch c := r.peek(); {
	case c == 0xc0:
		r.take(1)
		return 0
	case c>>4 == 0x8:
		r.take(1)
		return r.length(uint64(c&0xf), 2)
	case c == 0xde:
		r.take(1)
		return r.length(r.uint(2), 2)
	case c == 0xdf:
		r.take(1)
		return r.length(r.uint(4), 2)
	}
	r.fail(errKind)
	return 0
}

// ArrayLen starts an array and gives its length; nil is an empty one.
func (r *Reader) ArrayLen() int {
	switch c := r.peek(); {
	case c == 0xc0:
		r.take(1)
		return 0
	case c>>4 == 0x9:
		r.take(1)
		return r.length(uint64(c&0xf), 1)
	case c == 0xdc:
		r.take(1)
		return r.length(r.uint(2), 1)
	case c == 0xdd:
		r.take(1)
		return r.length(r.uint(4), 1)
	}
	r.fail(errKind)
	return 0
}

// Key reads a string or bytes as a view of the input: compare it, do not keep it.
func (r *Reader) Key() []byte {
	var n uint64
	switch c := r.peek(); {
	case c == 0xc0:
		r.take(1)
		return nil
	case c>>5 == 0x5:
		r.take(1)
		n = uint64(c & 0x1f)
	case c == 0xd9, c == 0xc4:
		r.take(1)
		n = r.uint(1)
	case c == 0xda, c == 0xc5:
		r.take(1)
		n = r.uint(2)
	case c == 0xdb, c == 0xc6:
		r.take(1)
		n = r.uint(4)
	default:
		r.fail(errKind)
		return nil
	}
	return r.take(r.length(n, 1))
}

// String reads a string; nil is "".
func (r *Reader) String() string { return string(r.Key()) }

// Bool reads a bool; nil is false.
func (r *Reader) Bool() bool {
	switch r.peek() {
	case 0xc0, 0xc2:
		r.take(1)
		return false
	case 0xc3:
		r.take(1)
		return true
	}
	r.fail(errKind)
	return false
}

// number reads any number: an integer, its unsigned form where it is past int64, or a float.
func (r *Reader) number() (i int64, f float64, isFloat, isBig bool) {
	c := r.peek()
	switch {
	case c <= 0x7f:
		r.take(1)
		return int64(c), 0, false, false
	case c >= 0xe0:
		r.take(1)
		return int64(int8(c)), 0, false, false
	}
	switch c {
	case 0xcc, 0xcd, 0xce, 0xcf:
		r.take(1)
		u := r.uint(1 << (c - 0xcc))
		return int64(u), 0, false, u > math.MaxInt64
	case 0xd0:
		r.take(1)
		return int64(int8(r.uint(1))), 0, false, false
	case 0xd1:
		r.take(1)
		return int64(int16(r.uint(2))), 0, false, false
	case 0xd2:
		r.take(1)
		return int64(int32(r.uint(4))), 0, false, false
	case 0xd3:
		r.take(1)
		return int64(r.uint(8)), 0, false, false
	case 0xca:
		r.take(1)
		return 0, float64(math.Float32frombits(uint32(r.uint(4)))), true, false
	case 0xcb:
		r.take(1)
		return 0, math.Float64frombits(r.uint(8)), true, false
	}
	r.fail(errKind)
	return 0, 0, false, false
}

// Int reads an integer, or a float without a fraction; nil is 0.
func (r *Reader) Int() int64 {
	if r.Nil() {
		return 0
	}
	i, f, isFloat, isBig := r.number()
	switch {
	case isBig:
		r.fail(errRange)
		return 0
	case !isFloat:
		return i
	case f == math.Trunc(f) && f >= -(1<<63) && f < 1<<63:
		return int64(f)
	}
	r.fail(errRange)
	return 0
}

// Float reads any number; nil is 0.
func (r *Reader) Float() float64 {
	if r.Nil() {
		return 0
	}
	i, f, isFloat, isBig := r.number()
	switch {
	case isFloat:
		return f
	case isBig:
		return float64(uint64(i))
	}
	return float64(i)
}

// FloatPtr reads any number; nil is nil.
func (r *Reader) FloatPtr() *float64 {
	if r.Nil() {
		return nil
	}
	f := r.Float()
	return &f
}

// IntPtr reads an integer; nil is nil.
func (r *Reader) IntPtr() *int64 {
	if r.Nil() {
		return nil
	}
	i := r.Int()
	return &i
}
