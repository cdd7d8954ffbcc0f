package main

import (
	"errors"
	"io/fs"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/wevalr/wevalr/plugins/abi"
	"github.com/wevalr/wevalr/plugins/sdk"
	"github.com/wevalr/wevalr/plugins/sdk/sdktest"
)

func ask(id string, kwargs map[string]any) abi.Task {
	return abi.Task{Key: "k", Metadata: map[string]any{"instruction_id_list": []any{id}, "kwargs": []any{kwargs}}}
}

type kw = map[string]any

// value is a verdict for a table: "1", "0" or "null".
func value(s abi.Score) string {
	switch {
	case s.Value == nil:
		return "null"
	case *s.Value == 1:
		return "1"
	}
	return "0"
}

func TestStrict_Rules(t *testing.T) {
	p := sdktest.New(t, sdktest.Host{})
	for _, c := range []struct {
		id         string
		kwargs     kw
		completion string
		want       string
	}{
		{"punctuation:no_comma", nil, "a b", "1"},
		{"punctuation:no_comma", nil, "a, b", "0"},
		{"punctuation:no_comma", nil, "全角，是", "1"},
		{"punctuation:no_comma", nil, " \n", "0"}, // a blank completion follows nothing
		{"keywords:existence", kw{"keywords": []any{"Straße", "b.d"}}, "STRAßE bad", "1"},
		{"keywords:existence", kw{"keywords": []any{"a", "z"}}, "abc", "0"},
		{"keywords:existence", kw{"keywords": []any{"C++"}}, "I like c++.", "1"},
		{"keywords:existence", kw{"keywords": []any{}}, "abc", "null"},
		{"keywords:frequency", kw{"keyword": "an ", "frequency": int64(2), "relation": "at least"}, "banana", "1"},
		{"keywords:frequency", kw{"keyword": "an", "frequency": int64(2), "relation": "less than"}, "banana", "0"},
		{"keywords:frequency", kw{"keyword": "an", "frequency": int64(2)}, "banana", "null"},
		{"keywords:forbidden_words", kw{"forbidden_words": []any{"fun"}}, "It is FUN.", "0"},
		{"keywords:forbidden_words", kw{"forbidden_words": []any{"fun"}}, "functional éfun", "1"},
		{"keywords:forbidden_words", kw{"forbidden_words": []any{"été"}}, "L'été", "0"},
		{"keywords:letter_frequency", kw{"letter": "Ü", "let_frequency": int64(2), "let_relation": "at least"}, "Übel übt", "1"},
		{"keywords:letter_frequency", kw{"letter": "ab", "let_frequency": int64(2), "let_relation": "at least"}, "abab", "null"},
		{"length_constraints:number_words", kw{"num_words": int64(3), "relation": "at least"}, "one-two l'été", "1"},
		{"length_constraints:number_words", kw{"num_words": 4.0, "relation": "less than"}, "one-two l'été", "0"},
		{"length_constraints:number_words", kw{"num_words": int64(-1), "relation": "less than"}, "x", "null"},
		{"length_constraints:number_paragraphs", kw{"num_paragraphs": int64(2)}, "a\n***\nb\n***", "1"},
		{"length_constraints:number_paragraphs", kw{"num_paragraphs": int64(2)}, "a *** *** b", "0"},
		{"length_constraints:nth_paragraph_first_word", kw{"num_paragraphs": int64(2), "nth_paragraph": int64(2), "first_word": "Now"}, "a\n\n\"now, b", "1"},
		{"length_constraints:nth_paragraph_first_word", kw{"num_paragraphs": int64(2), "nth_paragraph": int64(2), "first_word": "now"}, "a\n\n\n\nnow b", "0"},
		{"length_constraints:nth_paragraph_first_word", kw{"num_paragraphs": int64(2), "nth_paragraph": int64(3), "first_word": "now"}, "a", "null"},
		{"length_constraints:number_sentences", kw{"num_sentences": int64(2), "relation": "less than"}, "Mr. X ate 3.5 pies.", "1"},
		{"detectable_content:number_placeholders", kw{"num_placeholders": int64(2)}, "[a] [[b] [c\n]", "1"},
		{"detectable_content:number_placeholders", kw{"num_placeholders": int64(3)}, "[a] [[b] [c\n]", "0"},
		{"detectable_content:postscript", kw{"postscript_marker": "P.S."}, "x\np. s. y", "1"},
		{"detectable_content:postscript", kw{"postscript_marker": "P.P.S"}, "x\nP.P. s y", "1"},
		{"detectable_content:postscript", kw{"postscript_marker": "NB:"}, "nb: x", "1"},
		{"detectable_format:number_bullet_lists", kw{"num_bullets": int64(3)}, "* a\n\n\n - b\n**c**\n*\nd\n *", "1"},
		{"detectable_format:number_bullet_lists", kw{"num_bullets": int64(1)}, "a * b\n\t- c", "1"},
		{"detectable_format:number_highlighted_sections", kw{"num_highlights": int64(2)}, "*a* **b** * * c*\nd*", "1"},
		{"detectable_format:number_highlighted_sections", kw{"num_highlights": int64(3)}, "*a* **b** * * c*\nd*", "0"},
		{"detectable_format:number_highlighted_sections", kw{"num_highlights": int64(1)}, "**b**", "1"},
		{"detectable_format:multiple_sections", kw{"section_spliter": "Section", "num_sections": int64(2)}, "Section 1 a\nSection\u00a0٢", "1"},
		{"detectable_format:multiple_sections", kw{"section_spliter": "Section", "num_sections": int64(2)}, "SECTION 1 Section X", "0"},
		{"detectable_format:title", nil, "<<a>>", "1"},
		{"detectable_format:title", nil, "<< >> <<\n>>", "0"},
		{"detectable_format:constrained_response", nil, "So: My answer is maybe.", "1"},
		{"detectable_format:constrained_response", nil, "my answer is maybe.", "0"},
		{"detectable_format:json_format", nil, "```json\n{\"a\": [1.5e3, NaN, \"\\ud800\", {}, []]}\n```", "1"},
		{"detectable_format:json_format", nil, "{\"a\": 1,}", "0"},
		{"detectable_format:json_format", nil, "[01]", "0"},
		{"detectable_format:json_format", nil, "{'a': 1}", "0"},
		{"detectable_format:json_format", nil, "[1] x", "0"},
		{"detectable_format:json_format", nil, "[\"a\nb\"]", "0"},
		{"detectable_format:json_format", nil, "{\"a\" 1}", "0"},
		{"detectable_format:json_format", nil, "[1.]", "0"},
		{"detectable_format:json_format", nil, "-", "0"},
		{"detectable_format:json_format", nil, "[[1, 2], {\"b\": {\"c\": null}}, true]", "1"},
		{"combination:two_responses", nil, "a ****** b", "1"},
		{"combination:two_responses", nil, "a ****** a", "0"},
		{"combination:two_responses", nil, "a ****** b ******", "1"},
		{"combination:two_responses", nil, "a ****** ****** b", "0"},
		{"combination:repeat_prompt", kw{"prompt_to_repeat": "Say ÄH"}, " say äh\nno", "1"},
		{"combination:repeat_prompt", kw{"prompt_to_repeat": "Say ah"}, "I say ah", "0"},
		{"startend:end_checker", kw{"end_phrase": "The End "}, "so\n\"the end\"\n", "1"},
		{"startend:end_checker", kw{"end_phrase": "The End"}, "the end.", "0"},
		{"startend:quotation", nil, "\n\"a\" ", "1"},
		{"startend:quotation", nil, "\"", "0"},
		{"startend:quotation", nil, "“a”", "0"},
		{"change_case:capital_word_frequency", kw{"capital_frequency": int64(4), "capital_relation": "at least"}, "CAN'T STOP-ME a I,B", "1"},
		{"change_case:capital_word_frequency", kw{"capital_frequency": int64(5), "capital_relation": "less than"}, "CAN'T STOP-ME a I,B", "0"},
		{"change_case:english_capital", nil, "THIS IS THE END OF IT.", "1"},
		{"change_case:english_capital", nil, "THIS IS THE END OF it.", "0"},
		{"change_case:english_capital", nil, "1234", "0"},
		{"change_case:english_lowercase", nil, "das ist nicht das ende der welt", "0"},
		{"change_case:english_lowercase", nil, "galway", "null"},
		{"language:response_language", kw{"language": "de"}, "Das ist nicht das Ende der Welt.", "1"},
		{"language:response_language", kw{"language": "en"}, "Das ist nicht das Ende der Welt.", "0"},
		{"language:response_language", kw{"language": "ko"}, "1, 2", "1"}, // no language: counts as followed
	} {
		got, err := p.Score("strict", ask(c.id, c.kwargs), abi.Episode{Completion: c.completion})
		if err != nil || len(got) != 2 {
			t.Errorf("%s %v %q: got %v, %v", c.id, c.kwargs, c.completion, got, err)
			continue
		}
		if value(got[0]) != c.want || value(got[1]) != c.want || got[1].Name != "strict/"+c.id {
			t.Errorf("%s %v %q: got %s and %s %s, want %s", c.id, c.kwargs, c.completion, value(got[0]), got[1].Name, value(got[1]), c.want)
		}
	}
}

func TestDetect(t *testing.T) {
	for want, s := range map[string]string{
		"en": "It is not what you think it is.", "fr": "Ce n'est pas la fin du monde, dit-elle.", "it": "Il mare è bello e non è lontano da qui.",
		"es": "El perro no es el mejor amigo de los gatos.", "pt": "Você não sabe o que os outros fazem.", "fi": "Minä en ole täällä, mutta hän on.",
		"sw": "Habari ya leo ni nzuri kwa watu wa nchi hii.", "vi": "Tôi không có một con mèo và các bạn.", "ru": "Это был не он, а она, и мы это знаем.",
		"uk": "Це не він, і ми її знаємо.", "bg": "Това е човекът, който беше тук.", "ar": "هذا هو الكتاب الذي قرأته أمس", "fa": "این یک کتاب است که خواندم و پدر گفت",
		"ur": "یہ ایک کتاب ہے جو میں نے پڑھی", "hi": "यह एक किताब है और वह नहीं है", "mr": "ही एक गोष्ट आहे आणि ती नाही", "ne": "यो एक किताब हो र त्यो छैन छ",
		"ta": "இது ஒரு புத்தகம்", "te": "ఇది ఒక పుస్తకం", "kn": "ಇದು ಒಂದು ಪುಸ್ತಕ", "gu": "આ એક પુસ્તક છે", "pa": "ਇਹ ਇੱਕ ਕਿਤਾਬ ਹੈ", "bn": "এটি একটি বই",
		"ml": "ഇതൊരു പുസ്തകമാണ്", "th": "นี่คือหนังสือ", "ko": "이것은 책입니다", "ja": "これは本です", "zh": "这是一本书", "he": "זה ספר", "": "123 !",
		undecided: "Nemo",
	} {
		if got := detect(s); got != want {
			t.Errorf("%q: got %q, want %q", s, got, want)
		}
	}
}

func TestCountSentences(t *testing.T) {
	for s, want := range map[string]int{
		"":                                      0,
		"One":                                   1,
		"One. Two! Three? four":                 4,
		"Mr. Smith met Dr. Who. He left.":       2,
		"It cost 3.50 in the U.S. in all.":      1,
		"He lives in the U.S. The rest do not.": 2,
		"Johann S. Bach wrote it. Good.":        2,
		"1. First\n2. Second":                   3, // Punkt takes a list's numbers for sentences
		"He said \"Go.\" She went.":             2,
		"(He went.) (She too.)":                 2,
		"Wait... what? No":                      2,
		"Well... You know":                      1,
		"no space.Here":                         1,
		"Hello!!! World":                        2,
		"A. \n\n":                               1,
		"e.g. this, i.e. that. End.":            4, // it does not know them
	} {
		if got := countSentences(s); got != want {
			t.Errorf("%q: got %d, want %d", s, got, want)
		}
	}
}

func TestScorers_Loose(t *testing.T) {
	p := sdktest.New(t, sdktest.Host{})
	for _, c := range []struct{ completion, strict, loose string }{
		{"Sure, here:\nno commas", "0", "1"},
		{"no commas\nBye, now", "0", "1"},
		{"Sure, here:\nno commas\nBye, now", "0", "1"},
		{"Sure, here:\na, b\nBye, now", "0", "0"},
		{"a, b", "0", "0"},
	} {
		for scorer, want := range map[string]string{"strict": c.strict, "loose": c.loose} {
			got, err := p.Score(scorer, ask("punctuation:no_comma", nil), abi.Episode{Completion: c.completion})
			if err != nil || value(got[0]) != want {
				t.Errorf("%s %q: got %v, %v, want %s", scorer, c.completion, got, err, want)
			}
		}
	}
	got, err := p.Score("loose", ask("startend:quotation", nil), abi.Episode{Completion: "**\"a\"**"})
	if err != nil || value(got[0]) != "1" {
		t.Errorf("asterisks: got %v, %v", got, err)
	}
}

// Several instructions: one score each, the second of a kind numbered; a prompt is what its worst is.
func TestStrict_Prompt(t *testing.T) {
	task := abi.Task{Key: "k", Data: map[string]any{
		"instruction_id_list": []any{"punctuation:no_comma", "length_constraints:number_words", "length_constraints:number_words", "language:response_language"},
		"kwargs":              []any{nil, kw{"num_words": int64(2), "relation": "at least"}, kw{"num_words": int64(4), "relation": "less than"}, kw{"language": "en"}},
	}}
	for completion, want := range map[string]string{"a b c": "null", "a, b c": "0"} {
		got, err := sdktest.New(t, sdktest.Host{Options: kw{"language": "skip"}}).Score("strict", task, abi.Episode{Completion: completion})
		if err != nil || len(got) != 5 || value(got[0]) != want {
			t.Fatalf("%q: got %v, %v", completion, got, err)
		}
		if got[3].Name != "strict/length_constraints:number_words.2" || value(got[4]) != "null" || len(got[0].Metadata["followed"].([]any)) != 4 {
			t.Errorf("%q: got %+v", completion, got)
		}
	}
}

func TestScore_BadTasks(t *testing.T) {
	p := sdktest.New(t, sdktest.Host{})
	for name, task := range map[string]abi.Task{
		"nothing":      {},
		"empty list":   {Metadata: kw{"instruction_id_list": []any{}}},
		"few kwargs":   {Metadata: kw{"instruction_id_list": []any{"punctuation:no_comma"}}},
		"unknown":      ask("punctuation:no_dots", nil),
		"no id":        {Metadata: kw{"instruction_id_list": []any{1.5}, "kwargs": []any{nil}}},
		"bad kwargs":   {Metadata: kw{"instruction_id_list": []any{"punctuation:no_comma"}, "kwargs": []any{"x"}}},
		"bad number":   ask("detectable_content:number_placeholders", kw{"num_placeholders": "two"}),
		"bad text":     ask("startend:end_checker", kw{"end_phrase": int64(2)}),
		"bad list":     ask("keywords:existence", kw{"keywords": "x"}),
		"bad element":  ask("keywords:existence", kw{"keywords": []any{int64(1)}}),
		"bad relation": ask("length_constraints:number_words", kw{"num_words": int64(2), "relation": "exactly"}),
	} {
		_, err := p.Score("strict", task, abi.Episode{Completion: "x"})
		var own *sdk.Error
		if !errors.As(err, &own) || own.Code != "bad_task" {
			t.Errorf("%s: got %v, want bad_task", name, err)
		}
	}
	if _, err := sdktest.New(t, sdktest.Host{Options: kw{"language": "guess"}}).Init(); err == nil {
		t.Error("language: got no error")
	}
}

func TestTasks(t *testing.T) {
	host := func(file string) sdktest.Host {
		return sdktest.Host{Datasets: map[string]fs.FS{"dataset": fstest.MapFS{"prompts.jsonl": {Data: []byte(file)}}}}
	}
	got, err := sdktest.New(t, host(`{"key": 7, "prompt": "p", "instruction_id_list": ["startend:quotation"], "kwargs": [{}]}`+"\n\n")).Tasks(10)
	want := []abi.Task{{Key: "7", Data: kw{"prompt": "p"}, Metadata: kw{"instruction_id_list": []any{"startend:quotation"}, "kwargs": []any{kw{}}}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, line := range []string{`{`, `[]`, `{"key": 1}`, `{"key": 1, "prompt": "p"}`, `{"key": 1, "prompt": "p", "instruction_id_list": ["x"], "kwargs": [{}]}`} {
		if _, err := sdktest.New(t, host(line)).Tasks(10); err == nil || !strings.HasPrefix(err.Error(), "prompts.jsonl:1: ") {
			t.Errorf("%s: got %v", line, err)
		}
	}
}

// Whatever a model writes, every rule answers.
func TestScorers_Hostile(t *testing.T) {
	p := sdktest.New(t, sdktest.Host{})
	ids := []any{}
	args := []any{}
	all := kw{
		"keywords": []any{"a"}, "keyword": "a", "frequency": int64(3), "relation": "at least", "forbidden_words": []any{"a"}, "letter": "a",
		"let_frequency": int64(2), "let_relation": "at least", "language": "en", "num_sentences": int64(3), "num_paragraphs": int64(3), "num_words": int64(3),
		"nth_paragraph": int64(1), "first_word": "a", "num_placeholders": int64(2), "postscript_marker": "P.S.", "num_bullets": int64(2), "num_highlights": int64(2),
		"num_sections": int64(2), "section_spliter": "Section", "prompt_to_repeat": "a", "end_phrase": "a", "capital_frequency": int64(2), "capital_relation": "at least",
	}
	for id := range strings.FieldsSeq(`keywords:existence keywords:frequency keywords:forbidden_words keywords:letter_frequency language:response_language
length_constraints:number_sentences length_constraints:number_paragraphs length_constraints:number_words length_constraints:nth_paragraph_first_word
detectable_content:number_placeholders detectable_content:postscript detectable_format:number_bullet_lists detectable_format:constrained_response
detectable_format:number_highlighted_sections detectable_format:multiple_sections detectable_format:json_format detectable_format:title combination:two_responses
combination:repeat_prompt startend:end_checker startend:quotation change_case:capital_word_frequency change_case:english_capital change_case:english_lowercase
punctuation:no_comma`) {
		ids = append(ids, id)
		args = append(args, all)
	}
	task := abi.Task{Key: "k", Metadata: kw{"instruction_id_list": ids, "kwargs": args}}
	texts := []string{"", "\xff\xfe", "\xff.\xff \xff", "a\x00b", "\u202e*", "İ\u0130", "-", "*", "**", "<<>>", "[", ".", "'", "''", "\"", "```", "\\", "{\"\\u12", strings.Repeat("[", 5000)}
	size := 200_000
	if testing.Short() {
		size = 20_000
	}
	for _, unit := range []string{"a", "A. ", "* ", "**", "\n", "\n\n", "[", "<", "a.b?", "ß", "日", "\xff", "\"", "-", "*\n", "{\"a\":"} {
		texts = append(texts, strings.Repeat(unit, size/len(unit)))
	}
	for _, s := range texts {
		for _, scorer := range []string{"strict", "loose"} {
			got, err := p.Score(scorer, task, abi.Episode{Completion: s})
			if err != nil || len(got) != len(ids)+1 {
				t.Errorf("%s %.20q: got %d scores, %v", scorer, s, len(got), err)
			}
		}
	}
}
