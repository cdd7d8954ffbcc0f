package procwatch

// Descendants is empty: nothing here shows how another process's child ended.
func (p *Proc) Descendants() []Descendant { return nil }
