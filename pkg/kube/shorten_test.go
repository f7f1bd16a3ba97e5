package kube

import (
	"strings"
	"testing"
)

func TestShorten(t *testing.T) {
	for name, tc := range map[string]struct {
		text    string
		maximum int
		want    string
	}{
		"short enough":  {text: "abc", maximum: 3, want: "abc"},
		"too long":      {text: strings.Repeat("a", 100), maximum: 40, want: "aaaaaaaa... (92 more bytes)"},
		"in the middle": {text: strings.Repeat("a", 7) + "€" + strings.Repeat("a", 100), maximum: 40, want: "aaaaaaa... (103 more bytes)"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Shorten(tc.text, tc.maximum); got != tc.want || len(got) > tc.maximum {
				t.Errorf("Shorten() = %q, want %q", got, tc.want)
			}
		})
	}
}
