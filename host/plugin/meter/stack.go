package meter

// follow keeps count of the values on the stack. In code that is not valid, or never runs, it may be wrong:
// nothing but an estimate depends on it.
func (w *body) follow() {
	in, n := &w.instr, len(w.frames)-1
	base := 0
	if n >= 0 {
		base = w.frames[n].height
	}
	switch in.op {
	case opIf, opBlock, opLoop:
		if in.op == opIf {
			w.height--
		}
		w.frames[n].height = max(w.height-len(in.typ.Params), 0)
	case opElse:
		w.height = base + len(w.frames[n].typ.Params)
	case opEnd:
		w.height = base + len(w.frames[n].typ.Results)
	case opCall:
		t := &w.m.types[w.m.funcs[in.index]]
		w.height += len(t.Results) - len(t.Params)
	case opCallIndirect:
		w.height += len(in.typ.Results) - len(in.typ.Params) - 1
	default:
		w.height += change(in.op)
	}
	w.height = max(w.height, base)
}

// change is how many values more an instruction gives than it takes. Those after which nothing runs take none.
func change(op int) int {
	switch {
	case op == opI32Const, op == opI64Const, op == opF32Const, op == opF64Const, op == opLocalGet, op == opGlobalGet,
		op == opMemorySize, op == opRefNull, op == opRefFunc, op == opTableSize:
		return 1
	case op == opDrop, op == opLocalSet, op == opGlobalSet, op == opBrIf, op == opTableGrow:
		return -1
	case op == opSelect, op == opSelectT, op == opTableSet, op >= firstStore && op <= opLastMemory:
		return -2
	case op == opMemoryInit, op == opMemoryCopy, op == opMemoryFill, op == opTableInit, op == opTableCopy, op == opTableFill:
		return -3
	case op >= opFirstPlain && op <= opLastPlain:
		return plainChange(op)
	case op>>8 == prefixSIMD:
		return vectorChange(op & 0xff)
	}
	return 0
}

const firstStore = 0x36

// plainChange tells operations on two numbers from those on one.
func plainChange(op int) int {
	switch {
	case op == 0x45, op == 0x50, // eqz
		op >= 0x67 && op <= 0x69, op >= 0x79 && op <= 0x7b, // of integers: clz, ctz, popcnt
		op >= 0x8b && op <= 0x91, op >= 0x99 && op <= 0x9f, // of floats: abs to sqrt
		op >= 0xa7: // conversions
		return 0
	}
	return -1
}

// vectorChange is of instructions behind 0xfd.
func vectorChange(sub int) int {
	switch {
	case sub == simdConst:
		return 1
	case sub == 11, sub == 82, sub >= 88 && sub <= 91: // store, bitselect, store of a lane
		return -2
	case sub <= 10, sub >= 15 && sub <= 20, sub == 92, sub == 93, // loads, splats
		sub == 21, sub == 22, sub == 24, sub == 25, sub == 27, sub == 29, sub == 31, sub == 33, // a lane
		sub == 77, sub == 83, sub >= 94 && sub <= 100, sub >= 103 && sub <= 106, sub == 116, sub == 117, sub == 122,
		sub >= 124 && sub <= 129, sub == 131, sub == 132, sub >= 135 && sub <= 138, sub == 148,
		sub == 160, sub == 161, sub == 163, sub == 164, sub >= 167 && sub <= 170,
		sub == 192, sub == 193, sub == 195, sub == 196, sub >= 199 && sub <= 202,
		sub >= 224 && sub <= 227, sub >= 236 && sub <= 239, sub >= 248:
		return 0
	}
	return -1
}
