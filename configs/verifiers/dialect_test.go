package verifiers_test
func router(a, b string) int { return 0 }
