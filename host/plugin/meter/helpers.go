package meter

// asm writes instructions.
type asm struct {
	x      *rewriter
	b      []byte
	locals []byte // local groups; nil = none
	// own is one more than the local that holds the fuel meanwhile; 0 = the global does.
	own uint32
}

func (x *rewriter) asm() asm { return asm{x: x} }

func (a asm) op(bytes ...byte) asm {
	a.b = append(a.b, bytes...)
	return a
}

func (a asm) get(global uint32) asm {
	a.b = appendU32(append(a.b, opGlobalGet), global)
	return a
}

func (a asm) set(global uint32) asm {
	a.b = appendU32(append(a.b, opGlobalSet), global)
	return a
}

func (a asm) call(function uint32) asm {
	a.b = appendU32(append(a.b, opCall), function)
	return a
}

func (a asm) i64(v int64) asm {
	a.b = appendS64(append(a.b, opI64Const), v)
	return a
}

func (a asm) i32(v int64) asm {
	a.b = appendS64(append(a.b, opI32Const), v)
	return a
}

// add adds v, which may be negative, to a global.
func (a asm) add(global uint32, v int64) asm {
	if v < 0 {
		return a.get(global).i64(-v).op(opI64Sub).set(global)
	}
	return a.get(global).i64(v).op(opI64Add).set(global)
}

// level puts what is left of the fuel on the stack, and keep takes it from there.
func (a asm) level() asm {
	if a.own == 0 {
		return a.get(a.x.fuel)
	}
	a.b = appendU32(append(a.b, opLocalGet), a.own-1)
	return a
}

func (a asm) keep() asm {
	if a.own == 0 {
		return a.set(a.x.fuel)
	}
	a.b = appendU32(append(a.b, opLocalSet), a.own-1)
	return a
}

// lend brings the fuel to the global, for what runs next, and back takes it from there.
func (a asm) lend() asm {
	if a.own == 0 {
		return a
	}
	return a.level().set(a.x.fuel)
}

func (a asm) back() asm {
	if a.own == 0 {
		return a
	}
	return a.get(a.x.fuel).keep()
}

// charge takes units of fuel, or gives some back.
func (a asm) charge(units int64) asm {
	switch {
	case units > 0:
		return a.level().i64(units).op(opI64Sub).keep()
	case units < 0:
		return a.level().i64(-units).op(opI64Add).keep()
	}
	return a
}

// spend takes fuel, and depth, and looks at what is left; 0 only looks. Where anything is below zero it
// calls slow, which gives back what was taken, and does it all again: so nothing comes after the call,
// and the engine keeps in registers what it had there. The loop that is done again is the one whose
// header this is, if it is one.
func (a asm) spend(units, depth int64, header bool) asm {
	if !header {
		a = a.op(opLoop, typeEmpty)
	}
	a = a.charge(units)
	if depth != 0 {
		a = a.add(a.x.depth, -depth)
	}
	a = a.level()
	if depth != 0 {
		a = a.get(a.x.depth).op(opI64Or)
	}
	a = a.i64(0).op(opI64LtS, opIf, typeEmpty).lend().i64(units).i64(depth).call(a.x.slow).back().op(opBr, 1, opEnd)
	if !header {
		a = a.op(opEnd)
	}
	return a
}

// helpers are the bodies of the added functions, in the order of their indices.
func (x *rewriter) helpers() []asm {
	// slow(units, depth) runs when fuel or depth is below zero, and gives both back.
	slow := x.asm().get(x.depth).i64(0).op(opI64LtS).op(opIf, typeEmpty).
		op(opI32Const, ReasonDepth).call(x.refill).op(opDrop, opUnreachable, opEnd).
		op(opBlock, typeEmpty, opLoop, typeEmpty).
		get(x.fuel).i64(0).op(opI64GeS, opBrIf, 1).
		op(opI32Const, ReasonFuel).call(x.refill).get(x.fuel).op(opI64Add).set(x.fuel).
		op(opBr, 0, opEnd, opEnd).
		get(x.fuel).op(opLocalGet, 0, opI64Add).set(x.fuel).
		get(x.depth).op(opLocalGet, 1, opI64Add).set(x.depth).op(opEnd)
	// elems(n) and bytes(n) charge n things, and return n.
	elems := x.asm().ranged(0, func(a asm) asm { return a.i64(int64(x.opt.MaxTable)) }, 0).op(opLocalGet, 0, opEnd)
	hs := []asm{slow, elems}
	if len(x.mems) > 0 {
		size := func(a asm) asm { return a.op(opMemorySize, 0, opI64ExtendU).i64(16).op(opI64Shl) }
		bytes := x.asm().ranged(0, size, bytesShift).op(opLocalGet, 0, opEnd)
		// grow(pages) does what memory.grow does and charges what it got.
		grow := x.asm().op(opLocalGet, 0, opMemoryGrow, 0, opLocalSet, 1).
			get(x.fuel).
			op(opLocalGet, 1, opI32Const, 0x7f, opI32Eq). // -1
			op(opIf, byte(I64)).i64(0).op(opElse).
			op(opLocalGet, 0, opI64ExtendU).i64(16-bytesShift).op(opI64Shl, opEnd).
			i64(weightHost).op(opI64Add, opI64Sub).set(x.fuel).spend(0, 0, false).
			op(opLocalGet, 1, opEnd)
		grow.locals = []byte{1, 1, byte(I32)}
		hs = append(hs, bytes, grow, x.bulk(opMemoryFill, 0), x.bulk(opMemoryCopy, 0))
		for i := range x.data {
			if _, ok := x.initFn[uint32(i)]; ok {
				hs = append(hs, x.bulk(opMemoryInit, uint32(i)))
			}
		}
	}
	return hs
}

// ranged charges an operation on as many things as a local says, of which limit can be there at most:
// more than that traps or fails, and changes nothing.
func (a asm) ranged(local byte, limit func(asm) asm, shift int64) asm {
	count := func(a asm) asm { return a.op(opLocalGet, local, opI64ExtendU) }
	a = limit(count(limit(count(a.get(a.x.fuel)))))
	return a.op(opI64LtU, opSelect).i64(shift).op(opI64ShrU).i64(weightHost).op(opI64Add, opI64Sub).
		set(a.x.fuel).spend(0, 0, false)
}

// bulk is the body of a function (to, from or value, n i32) that does the instruction chunk by chunk,
// and at once what goes beyond the memory or the segment: that traps before it changes anything.
func (x *rewriter) bulk(op int, segment uint32) asm {
	const to, from, n = 0, 1, 2
	get := func(a asm, local byte) asm { return a.op(opLocalGet, local) }
	do := func(a asm) asm {
		a = a.op(prefixMisc, byte(op))
		switch op {
		case opMemoryInit:
			a.b = append(appendU32(a.b, segment), 0)
		case opMemoryCopy:
			a = a.op(0, 0)
		default:
			a = a.op(0)
		}
		return a
	}
	step := func(a asm, local, op byte) asm { return get(a, local).i32(chunk).op(op, opLocalSet, local) }
	forward := func(a asm) asm {
		a = do(get(get(a, to), from).i32(chunk))
		if op != opMemoryFill {
			a = step(a, from, opI32Add)
		}
		return step(step(a, to, opI32Add), n, opI32Sub)
	}
	// beyond leaves the loop when local + n is more than what there is.
	beyond := func(a asm, local byte) asm { return get(get(a, local).op(opI64ExtendU), n).op(opI64ExtendU, opI64Add) }
	size := func(a asm) asm { return a.op(opMemorySize, 0, opI64ExtendU).i64(16).op(opI64Shl) }

	a := x.asm().op(opBlock, typeEmpty, opLoop, typeEmpty)
	a = get(a, n).i32(chunk).op(opI32LeU, opBrIf, 1)
	a = size(beyond(a, to)).op(opI64GtU, opBrIf, 1)
	switch op {
	case opMemoryCopy:
		a = size(beyond(a, from)).op(opI64GtU, opBrIf, 1)
	case opMemoryInit:
		a = beyond(a, from).i64(int64(len(x.data[segment].bytes))).op(opI64GtU, opBrIf, 1)
	}
	a = a.spend(chunk>>bytesShift, 0, false)
	if op == opMemoryCopy {
		// What overlaps further on is copied from its end.
		a = get(get(a, to), from).op(opI32GtU, opIf, typeEmpty)
		a = step(a, n, opI32Sub)
		a = get(get(a, to), n).op(opI32Add)
		a = do(get(get(a, from), n).op(opI32Add).i32(chunk)).op(opElse)
		a = forward(a).op(opEnd)
	} else {
		a = forward(a)
	}
	a = a.op(opBr, 0, opEnd, opEnd)
	a = a.ranged(n, func(a asm) asm { return a.i64(chunk) }, bytesShift)
	return do(get(get(get(a, to), from), n)).op(opEnd)
}
