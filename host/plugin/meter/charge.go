package meter

// edit is a change of a function's code.
type edit struct {
	at, end int // what is replaced, in the file; equal = only inserted
	kind    editKind
	check   bool   // charge, enter
	index   uint32 // call: function; leave: label; helper: function
	units   int64  // charge, enter
	// An arm that leaves gives back what its root was charged for the code that it skips: the
	// root's units beyond from, up to to once that is known.
	root     int // -1 = none
	from, to int64
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

// charger finds out what to change in a function: where code must be charged and how much, and
// which charges are followed by a check. Every cycle has one: loops at their header if something
// branches there, functions at their entry.
//
// The count is exact, with fewer charges than basic blocks: code that runs whenever an earlier
// charge has run, and as often, is added to that one. So is code that runs unless an if in between
// leaves; the arm that leaves gives it back.
type charger struct {
	*rewriter
	w     *body
	cur   int   // the edit that pays for where we are
	back  []int // edits with a root whose to is open
	total int64
	calls bool
}

// begin starts a charge of its own.
func (c *charger) begin(at int) {
	c.cur = len(c.edits)
	c.edits = append(c.edits, edit{at: at, end: at, root: -1})
}

// charges fills x.edits for own function i.
func (x *rewriter) charges(i int) (calls bool, refusal *Refusal) {
	c := &charger{rewriter: x, w: &x.body, back: x.back[:0]}
	w := c.w
	w.open(x.module, i)
	x.edits = append(x.edits[:0], edit{at: w.r.pos, end: w.r.pos, kind: editEnter, root: -1})
	for w.next() {
		if !w.dead {
			units := weight(w.instr.op)
			x.edits[c.cur].units += units
			c.total += units
		}
		c.control()
		c.replace()
	}
	if w.r.err != nil {
		return false, w.r.err
	}
	c.settle(0)
	x.back = c.back
	x.edits[0].check = c.calls || c.total > smallLeaf
	return c.calls, nil
}

// control follows the blocks.
func (c *charger) control() {
	w, in := c.w, &c.w.instr
	switch in.op {
	case opBlock, opLoop, opIf:
		f := &w.frames[len(w.frames)-1]
		f.dead, f.open, f.back = w.dead, c.cur, len(c.back)
		f.from = c.edits[c.cur].units
		if in.op != opBlock && !w.dead {
			c.begin(in.end)
			f.arm = c.cur
		}
	case opElse:
		f := &w.frames[len(w.frames)-1]
		f.armLive, f.armCur = !w.dead, c.cur
		if f.dead {
			break
		}
		switch {
		case !w.dead || f.targeted:
			c.begin(in.end)
		case f.escape < len(w.frames)-1:
			c.left(f)
		default: // it traps
			c.cur = f.open
		}
		w.dead = false
	case opEnd:
		c.join(w.pop())
	case opBrIf:
		if !w.dead {
			c.begin(in.end)
		}
	case opBr, opBrTable, opReturn, opUnreachable:
		w.dead = true
	}
}

// join decides who pays for what comes after a block.
func (c *charger) join(f frame) {
	w := c.w
	if f.dead {
		return
	}
	if f.op == opLoop && f.targeted {
		c.edits[f.arm].check = true
	}
	escaped := f.escape < len(w.frames)
	implicit := f.op == opIf // the else that is not written
	comesIn := f.targeted && f.op != opLoop
	switch {
	case w.dead && !f.armLive && !implicit && !comesIn:
		// Nothing falls out.
	case !escaped:
		// Whatever went in comes out.
		c.settle(f.back)
		c.cur, w.dead = f.open, false
	case implicit && w.dead && !comesIn:
		c.left(&f)
		w.dead = false
	case comesIn || implicit || f.armLive && !w.dead:
		c.begin(w.instr.end)
		w.dead = false
	case f.armLive:
		c.cur, w.dead = f.armCur, false
	}
}

// left says that the arm of f leaves: what follows goes on where the if began.
func (c *charger) left(f *frame) {
	e := &c.edits[f.arm]
	e.root, e.from = f.open, f.from
	c.back = append(c.back, f.arm)
	c.cur = f.open
}

// settle ends what the arms since a block's begin give back: code from here on runs after them too.
func (c *charger) settle(from int) {
	for _, i := range c.back[from:] {
		c.edits[i].to = c.edits[c.edits[i].root].units
	}
	c.back = c.back[:from]
}

// replace notes the instructions that must become others.
func (c *charger) replace() {
	w, in := c.w, &c.w.instr
	add := func(kind editKind, from, to int, index uint32) {
		c.edits = append(c.edits, edit{at: from, end: to, kind: kind, index: index, root: -1})
	}
	switch in.op {
	case opReturn:
		add(editLeave, in.at, in.end, uint32(len(w.frames)))
	case opCall:
		c.calls = true
		add(editCall, in.at, in.end, in.index)
	case opCallIndirect:
		c.calls = true
	case opRefFunc:
		add(editRefFunc, in.at, in.end, in.index)
	case opMemoryGrow:
		add(editHelper, in.at, in.end, c.growFn)
	case opDataDrop:
		c.segmentsUsed = true
	case opMemoryInit:
		c.segmentsUsed = true
		add(editHelper, in.at, in.at, c.bytesFn)
	case opMemoryCopy, opMemoryFill:
		add(editHelper, in.at, in.at, c.bytesFn)
	case opTableInit, opTableCopy, opTableGrow, opTableFill:
		add(editHelper, in.at, in.at, c.elemsFn)
	}
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
			a = a.charge(e.units)
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
			units := e.units
			if e.root >= 0 {
				units -= e.to - e.from
			}
			a = a.charge(units)
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
