package procwatch

// Descendants is empty: nothing here shows how another process's child ended.
func (p *Proc) Descendants() []Descendant { return nil }

// Children is empty, for the same reason.
func (p *Proc) Children() []Descendant { return nil }
