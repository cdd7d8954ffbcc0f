package procwatch

import "os"

func stateOf(int) string { return "unknown" }

func pipeHolders([]*os.File) []Process { return nil }
