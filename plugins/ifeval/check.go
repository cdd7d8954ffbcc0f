package main

import (
	"math"
	"strings"

	"github.com/wevalr/wevalr/plugins/sdk"
)

// verdict says whether an instruction was followed. Ordered, so that a prompt's verdict is the least of its
// instructions' and the loose one the greatest of its versions'.
type verdict int

const (
	no verdict = iota
	unknown
	yes
)

func is(ok bool) verdict {
	if ok {
		return yes
	}
	return no
}

func (v verdict) score() sdk.Score {
	if v == unknown {
		return sdk.Skipped("cannot be judged here: see the plugin's rules")
	}
	return sdk.Binary(v == yes)
}

func (v verdict) json() any {
	if v == unknown {
		return nil
	}
	return v == yes
}

// instruction is one thing that a prompt asks for.
type instruction struct {
	id     string
	kwargs map[string]any
}

// instructions reads a prompt's; what is not "" says why it cannot.
func instructions(from map[string]any) (out []instruction, what string) {
	ids, ok := from["instruction_id_list"].([]any)
	if !ok || len(ids) == 0 {
		return nil, "no instruction_id_list"
	}
	kwargs, _ := from["kwargs"].([]any)
	if len(kwargs) != len(ids) {
		return nil, "kwargs are not as many as instructions"
	}
	for i, v := range ids {
		id, ok := v.(string)
		if !ok || !known(id) {
			return nil, "unknown instruction " + id
		}
		args, ok := kwargs[i].(map[string]any)
		if !ok && kwargs[i] != nil {
			return nil, "kwargs of " + id + " are not an object"
		}
		out = append(out, instruction{id, args})
	}
	return out, ""
}

// rule checks one instruction on a text that is not blank.
type rule func(a *args, s string) verdict

// ruleOf is the registry of the published evaluator; nil for what it does not know.
func ruleOf(id string) rule {
	switch id {
	case "keywords:existence":
		return keywords
	case "keywords:frequency":
		return keywordFrequency
	case "keywords:forbidden_words":
		return forbiddenWords
	case "keywords:letter_frequency":
		return letterFrequency
	case "language:response_language":
		return responseLanguage
	case "length_constraints:number_sentences":
		return func(a *args, s string) verdict {
			return a.compare(countSentences(s), "num_sentences", "relation", false)
		}
	case "length_constraints:number_paragraphs":
		return paragraphs
	case "length_constraints:number_words":
		return func(a *args, s string) verdict { return a.compare(countWords(s), "num_words", "relation", false) }
	case "length_constraints:nth_paragraph_first_word":
		return nthParagraph
	case "detectable_content:number_placeholders":
		return func(a *args, s string) verdict { return a.atLeast(countPlaceholders(s), "num_placeholders") }
	case "detectable_content:postscript":
		return postscript
	case "detectable_format:number_bullet_lists":
		return bullets
	case "detectable_format:constrained_response":
		return constrainedResponse
	case "detectable_format:number_highlighted_sections":
		return func(a *args, s string) verdict { return a.atLeast(countHighlights(s), "num_highlights") }
	case "detectable_format:multiple_sections":
		return sections
	case "detectable_format:json_format":
		return func(_ *args, s string) verdict { return is(jsonFormat(s)) }
	case "detectable_format:title":
		return func(_ *args, s string) verdict { return is(hasTitle(s)) }
	case "combination:two_responses":
		return func(_ *args, s string) verdict { return is(twoResponses(s)) }
	case "combination:repeat_prompt":
		return repeatPrompt
	case "startend:end_checker":
		return endPhrase
	case "startend:quotation":
		return func(_ *args, s string) verdict { return is(quoted(s)) }
	case "change_case:capital_word_frequency":
		return func(a *args, s string) verdict {
			return a.compare(countCapitalWords(s), "capital_frequency", "capital_relation", true)
		}
	case "change_case:english_capital":
		return func(a *args, s string) verdict { return english(a, s, isUpper(s)) }
	case "change_case:english_lowercase":
		return func(a *args, s string) verdict { return english(a, s, isLower(s)) }
	case "punctuation:no_comma":
		return func(_ *args, s string) verdict { return is(!strings.Contains(s, ",")) }
	}
	return nil
}

func known(id string) bool { return ruleOf(id) != nil }

func (p *plugin) check(in instruction, s string) (verdict, string) {
	a := &args{kwargs: in.kwargs, detect: p.detect}
	v := ruleOf(in.id)(a, s)
	if a.err != "" {
		return no, a.err
	}
	if a.missing {
		return unknown, ""
	}
	return v, ""
}

// args are an instruction's. An absent one is drawn at random by the published evaluator, so that the
// verdict is unknown; one of another type is the task's error.
type args struct {
	kwargs  map[string]any
	detect  bool
	missing bool
	err     string
}

func (a *args) text(name string) string {
	switch v := a.kwargs[name].(type) {
	case nil:
		a.missing = true
	case string:
		return v
	default:
		a.err = name + " is not a string"
	}
	return ""
}

func (a *args) texts(name string) (out []string) {
	list, ok := a.kwargs[name].([]any)
	if !ok && a.kwargs[name] != nil {
		a.err = name + " is not a list of strings"
	}
	a.missing = a.missing || len(list) == 0
	for _, v := range list {
		s, ok := v.(string)
		if !ok {
			a.err = name + " is not a list of strings"
		}
		out = append(out, s)
	}
	return out
}

// number is a count: negative ones count as absent.
func (a *args) number(name string) float64 {
	f := math.NaN()
	switch v := a.kwargs[name].(type) {
	case nil:
	case int64:
		f = float64(v)
	case float64:
		f = v
	default:
		a.err = name + " is not a number"
	}
	if !(f >= 0) {
		a.missing = true
	}
	return f
}

func (a *args) atLeast(n int, name string) verdict { return is(float64(n) >= a.number(name)) }

// compare holds n against a number with a relation; the number may be negative where signed.
func (a *args) compare(n int, name, relation string, signed bool) verdict {
	want := a.number(name)
	if signed && want < 0 {
		a.missing = false
	}
	switch rel := a.text(relation); {
	case a.missing:
		return unknown
	case rel == "less than":
		return is(float64(n) < want)
	case rel == "at least":
		return is(float64(n) >= want)
	}
	if a.err == "" {
		a.err = relation + ` is neither "less than" nor "at least"`
	}
	return no
}
