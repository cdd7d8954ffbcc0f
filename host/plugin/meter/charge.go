package meter

// edit is a change of a function's code.
type edit struct {
	at, end int // what is replaced, in the file; equal = only inserted
	kind    editKind
	check   bool   // charge, enter
	header  bool   // charge: what follows is a loop's body, and a branch to it takes no values
	index   uint32 // call: function; leave: label; helper: function; global: global
	units   int64  // charge, enter
	// An arm that leaves gives back what its root was charged for the code that it skips: the
	// root's units beyond from, up to to once that is known.
	root     int // -1 = none
	from, to int64
	// Of a charge that a call has followed: how much more it has paid for since.
	called bool
	late   int64
}

type editKind byte

const (
	editCharge       editKind = iota // units of fuel
	editEnter                        // the same at a function's entry
	editCall                         // a call of another index
	editCallIndirect                 // a call by a table
	editRefFunc                      // the same for ref.func
	editGlobal                       // global.get in its place
	editLeave                        // return becomes a branch, so that depth is given back
	editHelper                       // a call of a helper before an instruction
)

// charger finds out what to change in a function: where code must be charged and how much, and
// which charges are followed by a check. Every cycle has one: loops at their header if something
// branches there, functions at their entry.
//
// The count is exact, with fewer charges than basic blocks: code that runs whenever an earlier
// charge has run, and as often, is added to that one. So is code that runs unless an if in between
// leaves; the arm that leaves gives it back.
//
// Little of what comes after a call is paid for before it: a call that returns from the depths finds
// its callers' code charged long ago, and all of them together run unseen.
type charger struct {
	*rewriter
	w     *body
	cur   int   // the edit that pays for where we are
	back  []int // edits with a root whose to is open
	total int64
	// What total was at the last charge with a check that every way to here has passed.
	looked int64
}

// charged counts the charges after the function's entry. A local saves each of them a store; each call costs one.
func (x *rewriter) charged() int {
	n := 0
	for _, e := range x.edits {
		if e.kind == editCharge && e.units != 0 {
			n++
		}
	}
	return n
}

// begin starts a charge of its own.
func (c *charger) begin(at int) {
	c.cur = len(c.edits)
	c.edits = append(c.edits, edit{at: at, end: at, root: -1})
}

// charges fills x.edits for own function i.
func (x *rewriter) charges(i int) *Refusal {
	x.calls = 0
	c := &charger{rewriter: x, w: &x.body, back: x.back[:0]}
	w := c.w
	w.open(x.module, i)
	x.edits = append(x.edits[:0], edit{at: w.r.pos, end: w.r.pos, kind: editEnter, root: -1})
	for w.next() {
		if !w.dead {
			c.pay(weight(w.instr.op))
		}
		c.control()
		c.replace()
	}
	c.settle(0)
	x.back = c.back
	x.edits[0].check = x.calls > 0 || c.total > smallLeaf
	x.exit = x.calls > 0 && c.total > longExit
	x.holds = x.charged() > x.calls
	x.frame = 1 + int64(w.locals/localsPerDepth) + (c.total+int64(x.calls)*smallLeaf)/codePerDepth
	return w.r.err
}

// pay charges the instruction at hand.
func (c *charger) pay(units int64) {
	at := c.w.instr.at
	if e := &c.edits[c.cur]; e.called && e.late+units > lateUnits && units > 0 {
		c.begin(at)
	}
	if c.total-c.looked > longUnits {
		c.begin(at)
		c.edits[c.cur].check, c.looked = true, c.total
	}
	e := &c.edits[c.cur]
	e.units += units
	if e.called {
		e.late += units
	}
	c.total += units
}

// control follows the blocks.
func (c *charger) control() {
	w, in := c.w, &c.w.instr
	switch in.op {
	case opBlock, opLoop, opIf:
		f := &w.frames[len(w.frames)-1]
		f.dead, f.open, f.back = w.dead, c.cur, len(c.back)
		f.calls, f.looked = c.calls, c.looked
		f.from = c.edits[c.cur].units
		if in.op != opBlock && !w.dead {
			c.begin(in.end)
			f.arm = c.cur
			c.edits[f.arm].header = in.op == opLoop && !in.takes
		}
	case opElse:
		f := &w.frames[len(w.frames)-1]
		f.armLive, f.armCur = !w.dead, c.cur
		if f.dead {
			break
		}
		c.looked = f.looked // whoever comes here has not seen what the other arm looked at
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
	c.looked = f.looked
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
		if c.calls > f.calls {
			e := &c.edits[c.cur]
			e.called, e.late = true, lateUnits
		}
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

func (c *charger) call() {
	c.calls++
	c.edits[c.cur].called = true
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
		c.call()
		add(editCall, in.at, in.end, in.index)
	case opCallIndirect:
		c.call()
		add(editCallIndirect, in.at, in.end, 0)
	case opRefFunc:
		if g, ok := c.reference(in.index); ok {
			add(editGlobal, in.at, in.end, g)
		} else { // not valid, and will not be
			add(editRefFunc, in.at, in.end, in.index)
		}
	case opMemoryGrow:
		add(editHelper, in.at, in.end, c.growFn)
	case opDataDrop:
		c.segmentsUsed = true
	case opMemoryInit:
		c.segmentsUsed = true
		if f, long := c.initFn[in.index]; long {
			add(editHelper, in.at, in.end, f)
		} else {
			add(editHelper, in.at, in.at, c.bytesFn)
		}
	case opMemoryCopy:
		add(editHelper, in.at, in.end, c.copyFn)
	case opMemoryFill:
		add(editHelper, in.at, in.end, c.fillFn)
	case opTableInit, opTableCopy, opTableGrow, opTableFill:
		add(editHelper, in.at, in.at, c.elemsFn)
	}
}
