// Package scan checks msgpack bytes that nobody trusts before a decoder sees them.
//
// [Check] walks one value iteratively: no recursion, no allocation, one pass. What passes is one
// complete value of bounded depth and bounded number of containers, without extension types,
// whose strings are valid UTF-8 and whose map keys are strings or integers. A header that
// announces more elements than bytes are left is refused where it stands, so a five-byte message
// cannot make a decoder allocate gigabytes.
//
// Duplicate keys pass: what they mean is the decoder's business.
//
// The functions are pure and safe for concurrent use; b is only read and never kept.
// Errors: always *[Error].
package scan

import (
	"encoding/binary"
	"fmt"
	"math"
	"unicode/utf8"
)

// MaxDepth is the deepest nesting that can be allowed at all: containers within containers.
const MaxDepth = 64

// DefaultContainers is how many maps and arrays a message may have when [Limits] does not say. A
// container costs one byte on the wire and about a hundred in memory, so bytes alone are no bound.
const DefaultContainers = 1 << 20

// Limits bound one message. The zero value means the defaults.
type Limits struct {
	Depth      int // deepest nesting; 0 or more than MaxDepth: MaxDepth
	Containers int // most maps and arrays; 0: DefaultContainers
}

// Rule names what a message broke.
type Rule string

// The rules.
const (
	Truncated  Rule = "truncated"           // the bytes end inside a value
	Trailing   Rule = "trailing bytes"      // bytes follow the value
	Code       Rule = "unknown code"        // 0xc1
	Ext        Rule = "extension type"      // ext and timestamps
	UTF8       Rule = "invalid UTF-8"       // in a string or a key
	Key        Rule = "map key"             // neither a string nor an integer
	Depth      Rule = "too deep"            // more than Limits.Depth
	Containers Rule = "too many containers" // more than Limits.Containers
)

// Error is the first broken rule and where: Offset is the byte where the offending value starts.
type Error struct {
	Offset int
	Rule   Rule
}

func (e *Error) Error() string { return fmt.Sprintf("msgpack: byte %d: %s", e.Offset, e.Rule) }

// frame is a container that is being walked: how many values are still to come (a map's entry
// counts two), and whether they alternate with keys.
type frame struct {
	left  uint64
	isMap bool
}

// Check reports the first rule that b breaks, nil when b is one value that keeps them all.
//
// # Errors
//
// *[Error], with the offset and the rule.
func Check(b []byte, lim Limits) error {
	if lim.Depth <= 0 || lim.Depth > MaxDepth {
		lim.Depth = MaxDepth
	}
	if lim.Containers <= 0 {
		lim.Containers = DefaultContainers
	}
	if at, rule := walk(b, lim); rule != "" {
		return &Error{Offset: at, Rule: rule}
	}
	return nil
}

// scalars passes over a run of at most `most` numbers, bools and nils, as long lists of tokens have
// them, and counts it. Where a value is cut it stops before it.
func scalars(b []byte, i int, most uint64) (end, n int) {
	for uint64(n) < most && i < len(b) {
		size := 1
		switch c := b[i]; {
		case c < 0x80 || c >= 0xe0 || c == 0xc0 || c == 0xc2 || c == 0xc3:
		case c == 0xcd:
			size = 3
		case c == 0xce:
			size = 5
		case c == 0xcb:
			size = 9
		default:
			return i, n
		}
		if size > len(b)-i {
			return i, n
		}
		i += size
		n++
	}
	return i, n
}

func walk(b []byte, lim Limits) (at int, rule Rule) {
	var (
		stack   [MaxDepth]frame
		depth   int
		top     = frame{left: 1} // the value itself
		pending uint64           // values that the containers below top still wait for
		made    int
		i       int
	)
	for {
		for top.left == 0 {
			if depth == 0 {
				if i != len(b) {
					return i, Trailing
				}
				return 0, ""
			}
			depth--
			top = stack[depth]
			pending -= top.left
		}
		if i >= len(b) {
			return i, Truncated
		}
		if !top.isMap {
			var n int
			if i, n = scalars(b, i, top.left); n > 0 {
				top.left -= uint64(n)
				continue
			}
		}
		c, start := b[i], i
		i++
		key := top.isMap && top.left&1 == 0
		top.left--
		if c < 0x80 || c >= 0xe0 { // small integers: keys and values alike
			continue
		}
		var size, kids uint64
		isStr, isMap, isCont := false, false, false
		switch {
		case c < 0x90:
			kids, isMap, isCont = uint64(c&15)*2, true, true
		case c < 0xa0:
			kids, isCont = uint64(c&15), true
		case c < 0xc0:
			size, isStr = uint64(c&31), true
		default:
			k := kindOf[c-0xc0]
			if k.rule != "" {
				return start, k.rule
			}
			if len(b)-i < int(k.head) {
				return start, Truncated
			}
			n := uint64(k.size)
			switch k.head {
			case 1:
				n = uint64(b[i])
			case 2:
				n = uint64(binary.BigEndian.Uint16(b[i:]))
			case 4:
				n = uint64(binary.BigEndian.Uint32(b[i:]))
			}
			i += int(k.head)
			switch k.kind {
			case array:
				kids, isCont = n, true
			case mapping:
				kids, isMap, isCont = n*2, true, true
			case str:
				size, isStr = n, true
			default:
				if key && k.kind != integer {
					return start, Key
				}
				size = n
			}
		}
		if isCont {
			if key {
				return start, Key
			}
			if made++; made > lim.Containers {
				return start, Containers
			}
			if depth == lim.Depth {
				return start, Depth
			}
			// Every value takes at least a byte: all that is still owed must fit into what is left.
			if pending+top.left+kids > uint64(len(b)-i) {
				return start, Truncated
			}
			stack[depth] = top
			depth++
			pending += top.left
			top = frame{left: kids, isMap: isMap}
			continue
		}
		if size > uint64(len(b)-i) || size > math.MaxInt {
			return start, Truncated
		}
		if isStr && !utf8.Valid(b[i:i+int(size)]) {
			return start, UTF8
		}
		i += int(size)
	}
}
