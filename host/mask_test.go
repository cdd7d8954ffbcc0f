package host

import (
	"testing"
)

func TestMasker_StringValuesOnly(t *testing.T) {
	list, short := secrets([]string{"OPENAI_API_KEY=sk-12345678", "MY_TOKEN=12345678", "OTHER=visible-text", "SHORT=abc", `Q_KEY=quote"and\slash`}, []string{"SHORT"})
	if len(short) != 1 || short[0] != "SHORT" {
		t.Errorf("short: got %v, want [SHORT]", short)
	}
	mask := masker(list)
	tests := []struct{ name, in, want string }{
		{"longest first", `{"a":"x sk-12345678 y"}`, `{"a":"x [OPENAI_API_KEY] y"}`},
		{"not in keys", `{"12345678":"12345678"}`, `{"12345678":"[MY_TOKEN]"}`},
		{"not in numbers", `{"n":12345678,"s":["12345678"]}`, `{"n":12345678,"s":["[MY_TOKEN]"]}`},
		{"escaped", `{"a":"quote\"and\\slash"}`, `{"a":"[Q_KEY]"}`},
		{"nothing to hide", `{"a":"visible-text"}`, `{"a":"visible-text"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := string(mask([]byte(tt.in))); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
