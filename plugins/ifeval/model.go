package main

import (
	"strings"
	"sync"
)

// model stands for Punkt's trained tables. Which words are known in small letters is asked of the text itself
// and of a short list; Punkt asks the Wall Street Journal.
type model struct {
	text    string
	seen    map[string]bool // words of the text in small letters; made when first asked
	outline bool            // the run at hand begins its line, so that a letter is a mark, not a name's

	*lists
}

// lists are the words of the model that are always there.
type lists struct{ abbr, starters, inNames, common, afterNumber words }

type words map[string]struct{}

func (w words) has(word string) bool {
	_, ok := w[word]
	return ok
}

func set(text string) words {
	w := words{}
	for s := range strings.FieldsSeq(text) {
		w[s] = struct{}{}
	}
	return w
}

var theLists = sync.OnceValue(func() *lists {
	return &lists{
		abbr:        set(abbreviations),
		starters:    set(sentenceStarters),
		inNames:     set(wordsInNames),
		common:      set(commonWords),
		afterNumber: set(wordsAfterNumber),
	}
})

func newModel(text string) *model {
	return &model{text: text[:min(len(text), 64<<10)], lists: theLists()} // enough to know its words
}

// The lists hold facts about the English model: how it classes common words. Rare ones, such as the initials
// of people in its corpus, are left out.
const (
	abbreviations = `
adm ala ariz aug ave bros calif chg cie co col colo conn corp cos ct dec dr feb fla fri ft ga gen ill inc jan jr
kan ky lt ltd maj messrs mg mich minn mr mrs ms nev nov oct ok okla ore pa prof rep reps sen sep sept sr st sw
tenn tues va vs vt wash wed wis yr
c d e f g h k l m n p r s t v w
a.c a.d a.g a.h a.m a.s a.t b.v c.v d.c j.b j.c j.j j.k j.p j.r l.a l.p n.c n.d n.h n.j n.m n.v n.y p.m ph.d r.i
s.a s.c s.g s.p.a s.s u.k u.n u.s u.s.a u.s.s.r w.c w.va w.w`

	sentenceStarters = `
according although among both but despite even he however i if in indeed instead it many meanwhile moreover most
nevertheless nonetheless nor separately she similarly since so some the there these they this though thus under
when while yet`

	// wordsInNames are known in small letters, but as parts of names and titles too, so that a capital tells
	// nothing.
	wordsInNames = `
a about all also an and any are art as at be beauty been best both business but by can change city code come
company could d day did do dog e even every family first for free from fun future game get good great had has
have he heart help her history home hope how i if in information is it its just key know life light like love
made make man many market me memory might more most music my natural never new no not now of off on one only or
other our out over own part people place power research science see she small so social some star state story
street sun system take technology than that the their there these they this those time to town tree two under up
use want was we well what when where while who will with words work world would year you`

	// commonWords are known in small letters only.
	commonWords = `
additionally after again always another because before being between can't can different don't during each
especially every everyone experience finally following further furthermore get go going having here his imagine
important including into is isn't keep knowledge later learning let let's maybe much need next nothing often once
perhaps please quite really remember something sometimes soon such surely take thank that's them then therefore
through together too true truly understand until us using very which whether whose why within without writing your`

	// wordsAfterNumber do not start a sentence after a number with a period, capital or not.
	wordsAfterNumber = `
abreast business commodities cooper corrections credit dividend financing insider international leisure letters
notable pepper review who`
)

func (m *model) abbreviation(word string) bool {
	return m.abbr.has(word) || m.abbr.has(word[strings.LastIndexByte(word, '-')+1:])
}

// small says whether a word after a single letter is known in small letters. A letter that begins a line is a
// mark: "I. Introduction". Else an unknown word is taken for a name: "Johann S. Bach".
func (m *model) small(word string) bool {
	return m.outline || m.common.has(word) || m.inNames.has(word) || m.inText(word)
}

// inText says whether the text itself has the word in small letters.
func (m *model) inText(word string) bool {
	if m.seen == nil {
		m.seen = map[string]bool{}
		for w := range strings.FieldsFuncSeq(m.text, func(r rune) bool { return !wordRune(r) && r != '\'' && r != '-' }) {
			if isLower(w) {
				m.seen[w] = true
			}
		}
	}
	return m.seen[word]
}
