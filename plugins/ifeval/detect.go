package main

import (
	"strings"
	"unicode"
)

// undecided is the language of a text that has letters, but nothing that tells languages apart.
const undecided = "?"

// maxDetect bounds what is read of a text to tell its language. Bytes.
const maxDetect = 32 << 10

// detect tells the language of a text (ISO 639-1), "" for one without letters. It is no langdetect: the
// script with the most letters decides, and within a script the letters that only one language has, or the
// commonest words. Where these give nothing it is undecided.
//
// The beginning is enough: langdetect reads 10,000 characters too.
func detect(s string) string {
	s = s[:min(len(s), maxDetect)]
	count := map[string]int{}
	for _, r := range s {
		if r < 0x80 {
			if 'a' <= r|0x20 && r|0x20 <= 'z' {
				count["latin"]++
			}
			continue
		}
		if name := scriptOf(r); name != "" {
			count[name]++
		}
	}
	// Two Latin letters weigh as one: names and terms in it are common in every text.
	best, most := "", 0
	for _, name := range scriptNames() {
		n := count[name]
		if name == "latin" {
			n = (n + 1) / 2
		}
		if n > most {
			best, most = name, n
		}
	}
	if count["kana"] > 0 && (best == "han" || best == "kana") {
		return "ja"
	}
	switch best {
	case "":
		return ""
	case "han":
		return "zh"
	case "kana":
		return "ja"
	case "latin":
		return byWords(s, latinWords)
	case "cyrillic":
		return cyrillic(s)
	case "arabic":
		return arabic(s)
	case "devanagari":
		if strings.Contains(s, "ळ") {
			return "mr" // Hindi and Nepali do not write it
		}
		return byWords(s, devanagariWords)
	}
	return best
}

// scriptNames are the scripts; those that one language uses are named by it.
func scriptNames() []string {
	return []string{
		"latin", "cyrillic", "arabic", "devanagari", "han", "kana", "bn", "gu", "pa", "ta", "te", "kn", "ml", "th", "ko", "he", "el",
	}
}

func scriptOf(r rune) string {
	switch {
	case unicode.Is(unicode.Latin, r):
		return "latin"
	case r < 0x370:
		return ""
	case r < 0x400:
		return "el"
	case r < 0x530:
		return "cyrillic"
	case 0x590 <= r && r < 0x600:
		return "he"
	case 0x600 <= r && r < 0x780:
		return "arabic"
	case 0x900 <= r && r < 0x964 || 0x970 < r && r < 0x980:
		return "devanagari"
	case 0x980 <= r && r < 0xa00:
		return "bn"
	case 0xa00 <= r && r < 0xa80:
		return "pa"
	case 0xa80 <= r && r < 0xb00:
		return "gu"
	case 0xb80 <= r && r < 0xc00:
		return "ta"
	case 0xc00 <= r && r < 0xc80:
		return "te"
	case 0xc80 <= r && r < 0xd00:
		return "kn"
	case 0xd00 <= r && r < 0xd80:
		return "ml"
	case 0xe00 <= r && r < 0xe80:
		return "th"
	case 0x1100 <= r && r < 0x1200, 0xac00 <= r && r < 0xd7b0:
		return "ko"
	case 0x3040 <= r && r < 0x3100:
		return "kana"
	case unicode.Is(unicode.Han, r):
		return "han"
	}
	return ""
}

func cyrillic(s string) string {
	s = strings.ToLower(s)
	uk, ru := strings.Count(s, "і")+strings.Count(s, "ї")+strings.Count(s, "є"), strings.Count(s, "ы")+strings.Count(s, "э")+strings.Count(s, "ё")
	bg := strings.Count(s, "ъ")
	switch {
	case uk > ru && uk > 0:
		return "uk"
	case ru > 0 && ru*2 >= bg:
		return "ru"
	case bg > 0:
		return "bg"
	}
	return byWords(s, cyrillicWords)
}

func arabic(s string) string {
	ur := strings.Count(s, "ٹ") + strings.Count(s, "ڈ") + strings.Count(s, "ڑ") + strings.Count(s, "ں") + strings.Count(s, "ے")
	fa := strings.Count(s, "پ") + strings.Count(s, "چ") + strings.Count(s, "ژ") + strings.Count(s, "گ") + strings.Count(s, "ی")
	ar := strings.Count(s, "ة") + strings.Count(s, "ي") + strings.Count(s, "ى") + strings.Count(s, "أ") + strings.Count(s, "إ") + strings.Count(s, "ك")
	switch {
	case 2*ur > ar && 5*ur > fa:
		return "ur"
	case fa > ar:
		return "fa"
	case ar > 0 || fa == 0:
		return "ar"
	}
	return "fa"
}

// byWords is the language whose commonest words a text has the most, undecided where these are fewer than two
// or two languages have as many.
func byWords(s string, table string) string {
	score := map[string]int{}
	var order []string
	of := map[string][]string{}
	for line := range strings.Lines(table) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		order = append(order, words[0])
		for _, w := range words[1:] {
			of[w] = append(of[w], words[0])
		}
	}
	for w := range strings.FieldsFuncSeq(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) }) {
		for _, language := range of[w] {
			score[language]++
		}
	}
	best, most, tied := undecided, 0, false
	for _, language := range order {
		switch n := score[language]; {
		case n > most:
			best, most, tied = language, n, false
		case n == most:
			tied = true
		}
	}
	if tied || most < 2 {
		return undecided
	}
	return best
}
