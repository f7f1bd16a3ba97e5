package kube

import (
	"slices"
	"testing"
)

func TestSplitAnnotation(t *testing.T) {
	for value, want := range map[string][]string{
		"":                    nil,
		" ; ":                 nil,
		"retry":               {"retry"},
		" reconcile ;;retry ": {"reconcile", "retry"},
		"a,b;c":               {"a,b", "c"},
	} {
		if got := SplitAnnotation(value, ";"); !slices.Equal(got, want) {
			t.Errorf("%q has %q, want %q", value, got, want)
		}
	}
}
