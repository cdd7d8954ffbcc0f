package author

import (
	"encoding/binary"
	"encoding/json"

	"github.com/wevalr/wevalr/plugins/abi"
)

// envelopeKey says whether a raw response is ok or err; "" where it is neither, both, or damaged.
func envelopeKey(encoding string, b []byte) string {
	var keys []string
	if encoding == abi.EncodingJSON {
		var fields map[string]json.RawMessage
		if json.Unmarshal(b, &fields) != nil {
			return ""
		}
		keys = sortedKeys(fields)
	} else if keys = mapKeys(b); keys == nil {
		return ""
	}
	found := keep([]string{"ok", "err"}, keys)
	if len(found) != 1 {
		return ""
	}
	return found[0]
}

// mapKeys are the keys of a msgpack map that is all of b; nil if it is damaged.
func mapKeys(b []byte) []string {
	p := &packed{b: b}
	kind, n := p.head()
	if kind != 'm' {
		return nil
	}
	keys := []string{}
	for ; n > 0 && !p.bad; n-- {
		kind, size := p.head()
		if kind != 's' {
			return nil
		}
		keys = append(keys, string(p.take(size)))
		p.skip(0)
	}
	if p.bad || len(p.b) > 0 {
		return nil
	}
	return keys
}

// packed walks over msgpack without making anything of it.
type packed struct {
	b   []byte
	bad bool
}

const maxNesting = 64

func (p *packed) take(n int) []byte {
	if p.bad || n < 0 || n > len(p.b) {
		p.b, p.bad = nil, true
		return nil
	}
	out := p.b[:n]
	p.b = p.b[n:]
	return out
}

func (p *packed) size(bytes int) int {
	b := p.take(bytes)
	if b == nil {
		return 0
	}
	return int(binary.BigEndian.Uint64(append(make([]byte, 8-bytes), b...)))
}

// head reads what comes next: m(ap) and a(rray) with how many, s(tring) with its bytes, else d(ata) of n
// bytes.
func (p *packed) head() (kind byte, n int) {
	c := p.take(1)
	if c == nil {
		return 0, 0
	}
	switch x := c[0]; {
	case x < 0x80, x >= 0xe0, x == 0xc0, x == 0xc2, x == 0xc3:
		return 'd', 0
	case x < 0x90:
		return 'm', int(x & 15)
	case x < 0xa0:
		return 'a', int(x & 15)
	case x < 0xc0:
		return 's', int(x & 31)
	case x >= 0xc4 && x <= 0xc6:
		return 'd', p.size(1 << (x - 0xc4))
	case x >= 0xc7 && x <= 0xc9:
		return 'd', 1 + p.size(1<<(x-0xc7))
	case x == 0xca, x == 0xcb:
		return 'd', 4 << (x - 0xca)
	case x >= 0xcc && x <= 0xcf:
		return 'd', 1 << (x - 0xcc)
	case x >= 0xd0 && x <= 0xd3:
		return 'd', 1 << (x - 0xd0)
	case x >= 0xd4 && x <= 0xd8:
		return 'd', 1 + 1<<(x-0xd4)
	case x >= 0xd9 && x <= 0xdb:
		return 's', p.size(1 << (x - 0xd9))
	case x == 0xdc, x == 0xdd:
		return 'a', p.size(2 << (x - 0xdc))
	case x == 0xde, x == 0xdf:
		return 'm', p.size(2 << (x - 0xde))
	}
	p.bad = true
	return 0, 0
}

func (p *packed) skip(depth int) {
	if depth > maxNesting {
		p.bad = true
		return
	}
	kind, n := p.head()
	switch kind {
	case 'm', 'a':
		if kind == 'm' {
			n *= 2
		}
		for ; n > 0 && !p.bad; n-- {
			p.skip(depth + 1)
		}
	default:
		p.take(n)
	}
}
