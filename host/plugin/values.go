package plugin

import (
	"encoding/binary"
	"fmt"

	"github.com/wevalr/wevalr/host/scan"
	"github.com/wevalr/wevalr/plugins/abi"
)

// fewValues refuses long bytes with more values than short ones can have: a value may take one byte, and
// thirty times as much of the host once it is decoded, text takes what it is long.
func fewValues(b []byte, count func([]byte) int) error {
	if len(b) <= abi.MaxResponse {
		return nil
	}
	if n := count(b); n > abi.MaxResponse {
		return fmt.Errorf("%d values, %d at most", n, abi.MaxResponse)
	}
	return nil
}

// valuesOfJSON counts what begins a value or follows one in well-formed JSON, but for the last.
func valuesOfJSON(b []byte) int {
	n := 1
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case ',', ':', '[', '{':
			n++
		case '"':
			i += textOf(b[i:])
		}
	}
	return n
}

// nesting refuses JSON that scan.Check would refuse as msgpack for its containers: what a plugin gives goes on
// to others, who bound them so.
func nesting(b []byte) error {
	depth, containers := 0, 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '[', '{':
			depth++
			containers++
		case ']', '}':
			depth--
		case '"':
			i += textOf(b[i:])
		}
		if depth > scan.MaxDepth || containers > scan.DefaultContainers {
			return fmt.Errorf("json: byte %d: containers are nested over %d deep, or are over %d", i, scan.MaxDepth, scan.DefaultContainers)
		}
	}
	return nil
}

// textOf is where JSON's text at the beginning of b ends.
func textOf(b []byte) int {
	i := 1
	for ; i < len(b) && b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return i
}

// valuesOfMsgpack counts the values, keys and containers included, of bytes that scan.Check let through:
// there a container is its head, and what is in it follows.
func valuesOfMsgpack(b []byte) int {
	n := 0
	for i := 0; i < len(b); n++ {
		i += sizeOf(b[i:])
	}
	return n
}

// sizeOf is how many bytes a value takes, a container its head. b is not empty, and whole.
func sizeOf(b []byte) int {
	switch c := b[0]; {
	case c >= 0xa0 && c < 0xc0: // short text
		return 1 + int(c&0x1f)
	case c < 0xc4 || c >= 0xe0: // small numbers, short containers, nil, bool
		return 1
	case c == 0xc4, c == 0xd9:
		return 2 + int(b[1])
	case c == 0xc5, c == 0xda:
		return 3 + int(binary.BigEndian.Uint16(b[1:]))
	case c == 0xc6, c == 0xdb:
		return 5 + int(binary.BigEndian.Uint32(b[1:]))
	case c == 0xcc, c == 0xd0:
		return 2
	case c == 0xcd, c == 0xd1, c == 0xdc, c == 0xde:
		return 3
	case c == 0xcb, c == 0xcf, c == 0xd3:
		return 9
	default: // 4 bytes of a number or of a length
		return 5
	}
}
