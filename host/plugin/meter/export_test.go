package meter

// RewriteNaive is the definition that [Rewrite] is held to: every instruction is charged on its own,
// where it stands, and nothing is checked but at a function's entry.
func RewriteNaive(b []byte, opt Options) ([]byte, error) {
	m, refusal := parse(b, nil)
	if refusal != nil {
		return nil, refusal
	}
	x := &rewriter{module: m, opt: opt.filled(), results: map[uint32]uint32{}}
	if refusal := x.reserved(); refusal != nil {
		return nil, refusal
	}
	x.plan()
	helpers := x.helpers()
	code := appendU32(nil, uint32(len(x.bodies)+len(helpers)))
	for i := range x.bodies {
		c := &charger{rewriter: x, w: &x.body}
		x.calls, x.frame, x.exit = 0, 1, false
		w := c.w
		w.open(m, i)
		x.edits = []edit{{at: w.r.pos, end: w.r.pos, kind: editEnter, check: true, root: -1}}
		for w.next() {
			at := w.instr.at
			if w.instr.op == opElse {
				at = w.instr.end
			}
			x.edits = append(x.edits, edit{at: at, end: at, units: weight(w.instr.op), root: -1})
			if w.instr.op == opEnd {
				w.pop()
			}
			c.replace()
		}
		if w.r.err != nil {
			return nil, w.r.err
		}
		code = appendBytes(code, x.write(nil, i))
	}
	for _, h := range helpers {
		if h.locals == nil {
			h.locals = []byte{0}
		}
		code = appendBytes(code, append(h.locals, h.b...))
	}
	return x.assemble(code), nil
}

// WrongHeights says how many blocks of a valid module's end with another number of values on the stack than they
// have results, and of how many that run to their end.
func WrongHeights(b []byte) (wrong, of int) {
	m, refusal := parse(b, nil)
	if refusal != nil {
		return 0, 0
	}
	var w body
	for i := range m.bodies {
		w.open(m, i)
		var dead []bool // of each open block, whether what comes next in it runs
		gone := false
		for w.next() {
			op, before := w.instr.op, w.height
			if (op == opElse || op == opEnd) && !gone {
				f := w.frames[len(w.frames)-1]
				of++
				if before != f.height+len(f.typ.Results) {
					wrong++
				}
			}
			w.follow()
			switch op {
			case opBlock, opLoop, opIf:
				dead = append(dead, gone)
			case opElse:
				gone = dead[len(dead)-1]
			case opEnd:
				w.pop()
				gone, dead = dead[len(dead)-1], dead[:len(dead)-1]
			case opBr, opBrTable, opReturn, opUnreachable:
				gone = true
			}
		}
	}
	return wrong, of
}
