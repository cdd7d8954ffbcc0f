package author

import (
	"errors"
	"strings"

	"github.com/wevalr/wevalr/plugins/abi"
)

// wasmFile is what check reports of a module beyond what host/plugin refuses.
// Layout: https://webassembly.github.io/spec/core/binary/modules.html
type wasmFile struct {
	imports  map[string]bool   // "module.function"
	exports  map[string]string // function → signature, such as "i32 i32 -> i64"
	memory   bool              // exports a memory named memory
	minPages uint64
	debug    int // bytes of debug information and names
}

const wasi = "wasi_snapshot_preview1."

var errDamaged = errors.New("damaged module")

// readWasm reads the sections that matter here. The first mistake ends it: host/plugin words the refusal.
func readWasm(b []byte) (*wasmFile, error) {
	if len(b) < 8 || string(b[:4]) != "\x00asm" {
		return nil, errDamaged
	}
	w := &wasmFile{imports: map[string]bool{}, exports: map[string]string{}}
	var types []string
	var funcs []uint64
	for r := (&cursor{b: b[8:]}); len(r.b) > 0; {
		id := r.byte()
		body := r.take(r.num())
		if r.bad {
			return nil, errDamaged
		}
		s := &cursor{b: body}
		switch id {
		case 0:
			if name := s.name(); name == "name" || strings.HasPrefix(name, ".debug_") {
				w.debug += len(body)
			}
		case 1:
			s.each(func() {
				s.byte() // func
				types = append(types, s.valTypes()+" -> "+s.valTypes())
			})
		case 2:
			s.each(func() { w.addImport(s, &funcs) })
		case 3:
			s.each(func() { funcs = append(funcs, s.num()) })
		case 5:
			s.each(func() { w.minPages = s.limits() })
		case 7:
			s.each(func() {
				name, kind, i := s.name(), s.byte(), s.num()
				switch {
				case kind == 0 && i < uint64(len(funcs)) && funcs[i] < uint64(len(types)):
					w.exports[name] = types[funcs[i]]
				case kind == 2 && name == abi.ExportMemory:
					w.memory = true
				}
			})
		}
		if s.bad {
			return nil, errDamaged
		}
	}
	return w, nil
}

func (w *wasmFile) addImport(s *cursor, funcs *[]uint64) {
	name := s.name() + "." + s.name()
	switch s.byte() {
	case 0:
		*funcs = append(*funcs, s.num())
		w.imports[name] = true
	case 1:
		s.byte()
		s.limits()
	case 2:
		s.limits()
	default:
		s.take(2)
	}
}

// importsEnv reports whether the module can call the env-server at all.
func (w *wasmFile) importsEnv() bool {
	for name := range w.imports {
		if strings.HasPrefix(name, abi.Module+".env_") {
			return true
		}
	}
	return false
}

// cursor reads LEB128 numbers and names; its first mistake sticks.
type cursor struct {
	b   []byte
	bad bool
}

func (c *cursor) take(n uint64) []byte {
	if c.bad || n > uint64(len(c.b)) {
		c.b, c.bad = nil, true
		return nil
	}
	out := c.b[:n]
	c.b = c.b[n:]
	return out
}

func (c *cursor) byte() byte {
	if b := c.take(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (c *cursor) num() uint64 {
	var v uint64
	for shift := 0; shift < 64; shift += 7 {
		b := c.byte()
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v
		}
	}
	c.bad = true
	return 0
}

func (c *cursor) name() string { return string(c.take(c.num())) }

func (c *cursor) limits() uint64 {
	flags, low := c.byte(), c.num()
	if flags&1 != 0 {
		c.num()
	}
	return low
}

// each calls f for every item of a vector.
func (c *cursor) each(f func()) {
	for n := c.num(); n > 0 && !c.bad; n-- {
		f()
	}
}

func (c *cursor) valTypes() string {
	var out []string
	c.each(func() {
		t, ok := map[byte]string{0x7f: "i32", 0x7e: "i64", 0x7d: "f32", 0x7c: "f64"}[c.byte()]
		if !ok {
			t = "?"
		}
		out = append(out, t)
	})
	return strings.Join(out, " ")
}
