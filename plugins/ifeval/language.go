package main

// english is a rule on case, for a text that must be English too. The case decides where it can.
func english(a *args, s string, rightCase bool) verdict {
	if !rightCase {
		return no
	}
	return detected(a, s, "en")
}

func responseLanguage(a *args, s string) verdict {
	return detected(a, s, a.text("language"))
}

func detected(a *args, s, want string) verdict {
	if !a.detect {
		return unknown
	}
	switch got := detect(s); got {
	case "":
		return yes // as the evaluator does where it finds no language
	case undecided:
		return unknown
	default:
		return is(got == want)
	}
}
