package scan

// Kinds of the codes 0xc0…0xdf.
const (
	plain   = iota // nil, bool, float, bin: no key
	integer        // may be a map key
	str
	array
	mapping
)

// code says how the value of one code byte goes on: head bytes of length follow, or size bytes.
type code struct {
	kind uint8
	head uint8
	size uint8
	rule Rule
}

// kindOf is the table of the codes from 0xc0 (https://github.com/msgpack/msgpack/blob/master/spec.md).
// It is never written.
var kindOf = [32]code{ //nolint:gochecknoglobals // a constant table; a function would copy it for every value
	0x00: {kind: plain},            // nil
	0x01: {rule: Code},             // never used
	0x02: {kind: plain},            // false
	0x03: {kind: plain},            // true
	0x04: {kind: plain, head: 1},   // bin
	0x05: {kind: plain, head: 2},   //
	0x06: {kind: plain, head: 4},   //
	0x07: {rule: Ext},              // ext 8, 16, 32
	0x08: {rule: Ext},              //
	0x09: {rule: Ext},              //
	0x0a: {kind: plain, size: 4},   // float
	0x0b: {kind: plain, size: 8},   //
	0x0c: {kind: integer, size: 1}, // uint
	0x0d: {kind: integer, size: 2}, //
	0x0e: {kind: integer, size: 4}, //
	0x0f: {kind: integer, size: 8}, //
	0x10: {kind: integer, size: 1}, // int
	0x11: {kind: integer, size: 2}, //
	0x12: {kind: integer, size: 4}, //
	0x13: {kind: integer, size: 8}, //
	0x14: {rule: Ext},              // fixext
	0x15: {rule: Ext},              //
	0x16: {rule: Ext},              //
	0x17: {rule: Ext},              //
	0x18: {rule: Ext},              //
	0x19: {kind: str, head: 1},     //
	0x1a: {kind: str, head: 2},     //
	0x1b: {kind: str, head: 4},     //
	0x1c: {kind: array, head: 2},   //
	0x1d: {kind: array, head: 4},   //
	0x1e: {kind: mapping, head: 2}, //
	0x1f: {kind: mapping, head: 4}, //
}
