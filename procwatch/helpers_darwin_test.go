package procwatch

// systemHelpers are those that only this system can run.
func systemHelpers() map[string]func(args []string) int { return nil }
