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
