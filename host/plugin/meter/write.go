package meter

// weight is what an instruction costs, apart from the length it works on.
func weight(op int) int64 {
	switch op {
	case opNop, opBlock, opLoop, opElse, opEnd:
		return 0
	case opRefFunc:
		return weightHost
	}
	return 1
}

// code rewrites the bodies and adds the helpers.
func (x *rewriter) code() ([]byte, *Refusal) {
	helpers := x.helpers()
	s := x.secs[secCode]
	size := s.end - s.pos
	out := appendU32(make([]byte, 0, size+size/2+256), uint32(len(x.bodies)+len(helpers)))
	var f []byte
	for i := range x.bodies {
		if refusal := x.charges(i); refusal != nil {
			return nil, refusal
		}
		f = x.write(f[:0], i)
		out = appendBytes(out, f)
	}
	for _, h := range helpers {
		if h.locals == nil {
			h.locals = []byte{0}
		}
		out = appendBytes(out, append(h.locals, h.b...))
	}
	return out, nil
}

// write appends the rewritten body of own function i. Where something must be given back at its end it is
// wrapped in a block: depth, by one that calls, and fuel, by one that holds it.
func (x *rewriter) write(dst []byte, i int) []byte {
	a := asm{x: x, b: dst}
	last := x.bodies[i].pos
	calls := x.calls > 0
	if x.holds {
		a, last = a.hold(i)
	}
	wrapped := calls || x.holds
	for k := range x.edits {
		e := &x.edits[k]
		a.b = append(a.b, x.b[last:e.at]...)
		last = e.end
		switch e.kind {
		case editEnter:
			depth := int64(0)
			if calls {
				depth = x.frame
			}
			if e.check {
				a = a.spend(e.units, depth, false)
			} else {
				a = a.charge(e.units)
			}
			if wrapped {
				a = a.op(opBlock)
				a.b = append(a.b, x.resultType(i)...)
			}
		case editCharge:
			units := e.units
			if e.root >= 0 {
				units -= e.to - e.from
			}
			if e.check {
				a = a.spend(units, 0, e.header)
			} else {
				a = a.charge(units)
			}
		case editCall:
			a = a.lend().call(x.function(e.index)).back()
		case editCallIndirect:
			a = a.lend()
			a.b = append(a.b, x.b[e.at:e.end]...)
			a = a.back()
		case editRefFunc:
			a.b = appendU32(append(a.b, opRefFunc), x.function(e.index))
		case editGlobal:
			a = a.get(e.index)
		case editLeave:
			if !wrapped {
				a.b = append(a.b, x.b[e.at:e.end]...)
				break
			}
			a.b = appendU32(append(a.b, opBr), e.index)
		case editHelper:
			a = a.lend().call(e.index).back()
		}
	}
	a.b = append(a.b, x.b[last:x.bodies[i].end]...)
	if calls {
		a = a.add(x.depth, x.frame)
		if x.exit {
			a = a.spend(0, 0, false)
		}
	}
	if wrapped {
		a = a.lend().op(opEnd)
	}
	return a.b
}

// hold gives own function i a local that holds the fuel, and says where its code begins.
func (a asm) hold(i int) (with asm, code int) {
	x := a.x
	code = x.edits[0].at
	r := reader{b: x.b, pos: x.bodies[i].pos, end: code}
	a.b = appendU32(a.b, r.u32()+1)
	a.b = append(a.b, x.b[r.pos:code]...)
	a = a.op(1, byte(I64))
	a.own = uint32(x.body.locals) + 1
	return a.back(), code
}

// resultType is the block type with the results of own function i.
func (x *rewriter) resultType(i int) []byte {
	switch rs := x.body.typ.Results; len(rs) {
	case 0:
		return []byte{typeEmpty}
	case 1:
		return []byte{byte(rs[0])}
	}
	index := x.ownFuncs()[i]
	t, ok := x.results[index]
	if !ok {
		t = x.addType(FuncType{Results: x.body.typ.Results})
		x.results[index] = t
	}
	return appendS64(nil, int64(t))
}
