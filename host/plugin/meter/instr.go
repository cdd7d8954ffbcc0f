package meter

import "fmt"

// Opcodes that matter here. Those behind a prefix are prefix<<8 | number.
const (
	opUnreachable  = 0x00
	opNop          = 0x01
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opEnd          = 0x0b
	opBr           = 0x0c
	opBrIf         = 0x0d
	opBrTable      = 0x0e
	opReturn       = 0x0f
	opCall         = 0x10
	opCallIndirect = 0x11
	opDrop         = 0x1a
	opSelect       = 0x1b
	opSelectT      = 0x1c
	opLocalGet     = 0x20
	opLocalSet     = 0x21
	opLocalTee     = 0x22
	opGlobalGet    = 0x23
	opGlobalSet    = 0x24
	opTableGet     = 0x25
	opTableSet     = 0x26
	opFirstMemory  = 0x28
	opLastMemory   = 0x3e
	opMemorySize   = 0x3f
	opMemoryGrow   = 0x40
	opI32Const     = 0x41
	opI64Const     = 0x42
	opF32Const     = 0x43
	opF64Const     = 0x44
	opFirstPlain   = 0x45
	opI32Eq        = 0x46
	opI32GtU       = 0x4b
	opI32LeU       = 0x4d
	opI64LtS       = 0x53
	opI64GtU       = 0x56
	opI32Add       = 0x6a
	opI32Sub       = 0x6b
	opI64GeS       = 0x59
	opI64LtU       = 0x54
	opI64Add       = 0x7c
	opI64Sub       = 0x7d
	opI64Or        = 0x84
	opI64Shl       = 0x86
	opI64ShrU      = 0x88
	opI64ExtendU   = 0xad // i64.extend_i32_u
	opLastPlain    = 0xc4
	opRefNull      = 0xd0
	opRefIsNull    = 0xd1
	opRefFunc      = 0xd2
	prefixMisc     = 0xfc
	prefixSIMD     = 0xfd

	miscLastTrunc = 0xfc07
	opMemoryInit  = 0xfc08
	opDataDrop    = 0xfc09
	opMemoryCopy  = 0xfc0a
	opMemoryFill  = 0xfc0b
	opTableInit   = 0xfc0c
	opElemDrop    = 0xfc0d
	opTableCopy   = 0xfc0e
	opTableGrow   = 0xfc0f
	opTableSize   = 0xfc10
	opTableFill   = 0xfc11

	simdConst = 12

	typeEmpty = 0x40 // block type without results
)

// instr is one instruction.
type instr struct {
	at, imm, end int // in the file: opcode, first immediate, next instruction
	op           int
	index        uint32    // label, function, local, global or table; br_table: how many labels
	takes        bool      // block, loop, if: values from the stack
	typ          *FuncType // of block, loop, if, call_indirect; as many values as it has, whatever they are
}

// Types of blocks that have none in the module. How many values they have is what counts.
//
//nolint:gochecknoglobals // constants; never written
var (
	noValues  FuncType
	oneResult = FuncType{Results: []ValType{I32}}
)

// frame is an open block.
type frame struct {
	typ      *FuncType
	height   int  // of the stack below its parameters
	op       byte // opBlock, opLoop, opIf, opElse
	targeted bool // live code branches to it
	escape   int  // number of the outermost frame that live code in it branches to; -1 = the function

	// The charger's.
	dead        bool  // opened in dead code
	armLive     bool  // the then-arm falls out of its end
	open        int   // edit that paid when it was opened
	from        int64 // what that had been charged
	arm, armCur int   // first and last edit of the then-arm, or of a loop's body
	back        int
	calls       int   // instructions that call before it
	looked      int64 // the charger's when it was opened
}

// body walks the instructions of one function. It checks every index they name, and the nesting.
type body struct {
	r      reader
	m      *module
	typ    FuncType
	locals uint64 // parameters included
	arity  int    // most values that a block of several takes or gives
	frames []frame
	height int  // of the stack, for the one who follows it
	dead   bool // set by the one who walks: branches from here do not count
	instr  instr
	done   bool
}

// open reads the locals of own function i. The frames' memory is reused from one to the next.
func (w *body) open(m *module, i int) {
	*w = body{m: m, frames: w.frames[:0], typ: m.types[m.ownFuncs()[i]]}
	w.r = reader{b: m.b, pos: m.bodies[i].pos, end: m.bodies[i].end, section: "code"}
	w.locals = uint64(len(w.typ.Params))
	if n := len(w.typ.Results); n > 1 {
		w.arity = n
	}
	n := w.r.count("local groups")
	for ; n > 0 && w.r.err == nil; n-- {
		w.locals += uint64(w.r.u32())
		valType(&w.r)
	}
	if w.locals >= 1<<32 {
		w.r.fail(m.bodies[i].pos, "locals", fmt.Sprint(w.locals))
	}
}

// next reads one instruction, the function's own end excepted.
func (w *body) next() bool {
	r := &w.r
	in := &w.instr
	in.at, in.takes = r.pos, false
	op := r.byte()
	in.op, in.imm = int(op), r.pos
	switch {
	case op >= opFirstPlain && op <= opLastPlain || op == opDrop || op == opSelect || op == opNop || op == opUnreachable || op == opRefIsNull:
	case op >= opLocalGet && op <= opLocalTee:
		w.index("local index", uint32(w.locals))
	case op == opI32Const:
		r.s(32)
	case op >= opFirstMemory && op <= opLastMemory:
		w.memArg()
	case op == opBlock || op == opLoop || op == opIf:
		w.blockType()
		w.frames = append(w.frames, frame{op: op, escape: len(w.frames), typ: in.typ})
	case op == opElse:
		if n := len(w.frames); n == 0 || w.frames[n-1].op != opIf {
			r.fail(in.at, "nesting", "else without if")
		} else {
			w.frames[n-1].op = opElse
		}
	case op == opEnd:
		if len(w.frames) == 0 {
			w.done = true
			if r.pos != r.end {
				r.fail(r.pos, "body size", fmt.Sprintf("%d bytes left over", r.end-r.pos))
			}
			return false
		}
	case op == opBr || op == opBrIf:
		w.label()
	case op == opReturn:
		if !w.dead {
			w.branch(-1)
		}
	case op == opBrTable:
		n := r.count("br_table")
		for i := 0; i <= n && r.err == nil; i++ {
			w.label()
		}
		in.index = uint32(n)
	case op == opCall || op == opRefFunc:
		w.index("function index", uint32(len(w.m.funcs)))
	case op == opCallIndirect:
		if t := w.m.typeIndex(r); r.err == nil {
			in.typ = &w.m.types[t]
		}
		w.index("table index", uint32(len(w.m.tables)))
	case op == opSelectT:
		for n := r.count("select"); n > 0; n-- {
			valType(r)
		}
	case op == opGlobalGet || op == opGlobalSet:
		w.index("global index", uint32(len(w.m.globals)))
	case op == opTableGet || op == opTableSet:
		w.index("table index", uint32(len(w.m.tables)))
	case op == opMemorySize || op == opMemoryGrow:
		w.memory()
	case op == opI64Const:
		r.s(64)
	case op == opF32Const:
		r.skip(4)
	case op == opF64Const:
		r.skip(8)
	case op == opRefNull:
		refType(r)
	case op == prefixMisc:
		w.misc()
	case op == prefixSIMD:
		w.simd()
	default:
		r.fail(in.at, "opcode", fmt.Sprintf("%#x", op))
	}
	in.end = r.pos
	return r.err == nil
}

// pop closes the innermost block; whoever walks calls it at an end.
func (w *body) pop() frame {
	n := len(w.frames) - 1
	f := w.frames[n]
	w.frames = w.frames[:n]
	w.branch(f.escape)
	return f
}

// branch notes that live code in the innermost block branches to frame number t, -1 = out of the
// function.
func (w *body) branch(t int) {
	if n := len(w.frames) - 1; n >= 0 {
		w.frames[n].escape = min(w.frames[n].escape, t)
	}
}

func (w *body) index(rule string, n uint32) {
	at := w.r.pos
	w.instr.index = w.r.u32()
	w.r.below(at, rule, w.instr.index, n)
}

func (w *body) label() {
	w.index("label", uint32(len(w.frames)+1))
	// The label one past the frames is the function's own.
	t := len(w.frames) - 1 - int(w.instr.index)
	if w.dead || w.r.err != nil {
		return
	}
	if t >= 0 {
		w.frames[t].targeted = true
	}
	w.branch(t)
}

// blockType is nothing, a value type, or a type's index.
func (w *body) blockType() {
	if w.r.pos < w.r.end && w.r.b[w.r.pos] == typeEmpty {
		w.instr.typ = &noValues
		w.r.pos++
		return
	}
	at := w.r.pos
	t := w.r.s(33)
	if t >= 0 {
		w.r.below(at, "type index", uint32(t), uint32(len(w.m.types)))
		if w.r.err == nil {
			w.instr.typ = &w.m.types[t]
			w.instr.takes = len(w.instr.typ.Params) > 0
			w.arity = max(w.arity, len(w.m.types[t].Params), len(w.m.types[t].Results))
		}
		return
	}
	w.r.pos = at
	valType(&w.r)
	w.instr.typ = &oneResult
}

func (w *body) hasMemory() {
	w.r.below(w.instr.at, "memory index", 0, uint32(len(w.m.mems)))
}

func (w *body) memArg() {
	w.r.u32()
	w.r.u32()
	w.hasMemory()
}

func (w *body) memory() {
	w.r.zero("memory index")
	w.hasMemory()
}

func (w *body) misc() {
	r := &w.r
	sub := r.u32()
	w.instr.op = prefixMisc<<8 | int(sub&0xff)
	tables := uint32(len(w.m.tables))
	switch op := prefixMisc<<8 + int64(sub); {
	case op <= miscLastTrunc:
	case op == opMemoryInit:
		w.index("data index", w.m.dataCount)
		w.memory()
	case op == opDataDrop:
		w.index("data index", w.m.dataCount)
	case op == opMemoryCopy:
		w.memory()
		w.memory()
	case op == opMemoryFill:
		w.memory()
	case op == opTableInit:
		w.index("element index", uint32(len(w.m.elems)))
		w.index("table index", tables)
	case op == opElemDrop:
		w.index("element index", uint32(len(w.m.elems)))
	case op == opTableCopy:
		w.index("table index", tables)
		w.index("table index", tables)
	case op <= opTableFill:
		w.index("table index", tables)
	default:
		r.fail(w.instr.at, "opcode", fmt.Sprintf("0xfc %d", sub))
	}
}

// simd reads the number as the engine does, which takes the first byte for all of it: numbers from
// 128 on are followed by a byte 1, which the engine runs as a nop. Any other byte there would be an
// instruction that it sees and we do not.
func (w *body) simd() {
	r := &w.r
	sub := r.byte()
	if sub >= 0x80 && r.byte() != 1 {
		r.fail(w.instr.at, "opcode", "0xfd and a number over 255, or written too long")
	}
	w.instr.op = prefixSIMD<<8 | int(sub)
	switch {
	case sub <= 11 || sub == 92 || sub == 93:
		w.memArg()
	case sub == simdConst || sub == 13:
		r.skip(16)
	case sub >= 21 && sub <= 34:
		r.skip(1)
	case sub >= 84 && sub <= 91:
		w.memArg()
		r.skip(1)
	}
}
