package meter

// edit is a change of a function's code.
type edit struct {
	at, end int // what is replaced, in the file; equal = only inserted
	kind    editKind
	units   int64  // charge, enter
	check   bool   // charge, enter
	index   uint32 // call: function; leave: label
}

type editKind byte

const (
	editCharge  editKind = iota // units of fuel
	editEnter                   // the same at a function's entry
	editCall                    // a call of another index
	editRefFunc                 // the same for ref.func
	editLeave                   // return becomes a branch, so that depth is given back
	editHelper                  // a call of a helper before an instruction
)

// charges finds out what to change in own function i: where a basic block begins, what it weighs,
// which checks are needed. Every cycle has one: loops at their header if something branches there,
// functions at their entry.
func (x *rewriter) charges(i int) (calls bool, refusal *Refusal) {
	w := &x.body
	w.open(x.module, i)
	x.edits = append(x.edits[:0], edit{at: w.r.pos, end: w.r.pos, kind: editEnter})
	cur := 0 // the edit that pays for the block we are in
	begin := func(at int) {
		cur = len(x.edits)
		x.edits = append(x.edits, edit{at: at, end: at})
	}
	replace := func(kind editKind, index uint32) {
		x.edits = append(x.edits, edit{at: w.instr.at, end: w.instr.end, kind: kind, index: index})
	}
	helper := func(index uint32) {
		x.edits = append(x.edits, edit{at: w.instr.at, end: w.instr.at, kind: editHelper, index: index})
	}
	var total int64
	for w.next() {
		in := &w.instr
		if !w.dead {
			units := weight(in.op)
			x.edits[cur].units += units
			total += units
		}
		switch in.op {
		case opBlock:
			f := &w.frames[len(w.frames)-1]
			f.dead = w.dead
		case opLoop:
			f := &w.frames[len(w.frames)-1]
			f.dead = w.dead
			if !w.dead {
				begin(in.end)
				f.edit = cur
			}
		case opIf:
			f := &w.frames[len(w.frames)-1]
			f.dead = w.dead
			if !w.dead {
				begin(in.end)
			}
		case opElse:
			f := &w.frames[len(w.frames)-1]
			f.armLive = !w.dead
			if w.dead = f.dead; !w.dead {
				begin(in.end)
			}
		case opEnd:
			f := w.pop()
			if f.op == opLoop {
				if f.targeted {
					x.edits[f.edit].check = true
				}
				break // what falls out of a loop goes on in the same block
			}
			join := f.targeted || f.armLive || f.op == opIf && !f.dead
			w.dead = w.dead && !join
			if !w.dead && (join || f.op == opElse) {
				begin(in.end)
			}
		case opBrIf:
			if !w.dead {
				begin(in.end)
			}
		case opReturn:
			replace(editLeave, uint32(len(w.frames)))
			w.dead = true
		case opBr, opBrTable, opUnreachable:
			w.dead = true
		case opCall:
			calls = true
			replace(editCall, in.index)
		case opCallIndirect:
			calls = true
		case opRefFunc:
			replace(editRefFunc, in.index)
		case opMemoryGrow:
			x.edits = append(x.edits, edit{at: in.at, end: in.end, kind: editHelper, index: x.growFn})
		case opMemoryInit:
			x.segmentsUsed = true
			helper(x.bytesFn)
		case opDataDrop:
			x.segmentsUsed = true
		case opMemoryCopy, opMemoryFill:
			helper(x.bytesFn)
		case opTableInit, opTableCopy, opTableGrow, opTableFill:
			helper(x.elemsFn)
		}
	}
	x.edits[0].check = calls || total > smallLeaf
	return calls, w.r.err
}

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
		calls, refusal := x.charges(i)
		if refusal != nil {
			return nil, refusal
		}
		f = x.write(f[:0], i, calls)
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

// write appends the rewritten body of own function i. A function that calls is wrapped in a block
// whose end gives its depth back.
func (x *rewriter) write(dst []byte, i int, calls bool) []byte {
	a := asm{x: x, b: dst}
	last := x.bodies[i].pos
	depth := frameDepth(x.body.locals)
	for k := range x.edits {
		e := &x.edits[k]
		a.b = append(a.b, x.b[last:e.at]...)
		last = e.end
		switch e.kind {
		case editEnter:
			if e.units > 0 {
				a = a.add(x.fuel, -e.units)
			}
			if calls {
				a = a.add(x.depth, -depth)
			}
			if e.check {
				a = a.check(calls)
			}
			if calls {
				a = a.op(opBlock)
				a.b = append(a.b, x.resultType(i)...)
			}
		case editCharge:
			if e.units > 0 {
				a = a.add(x.fuel, -e.units)
			}
			if e.check {
				a = a.check(false)
			}
		case editCall:
			a = a.call(x.function(e.index))
		case editRefFunc:
			a.b = appendU32(append(a.b, opRefFunc), x.function(e.index))
		case editLeave:
			if !calls {
				a.b = append(a.b, x.b[e.at:e.end]...)
				break
			}
			a.b = appendU32(append(a.b, opBr), e.index)
		case editHelper:
			a = a.call(e.index)
		}
	}
	a.b = append(a.b, x.b[last:x.bodies[i].end]...)
	if calls {
		a = a.add(x.depth, depth).op(opEnd)
	}
	return a.b
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
