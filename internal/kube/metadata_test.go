package kube

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

func TestAddToAnnotation(t *testing.T) {
	for name, tc := range map[string]struct {
		value string
		add   []string
		want  string
	}{
		"nothing to nothing":         {},
		"the first":                  {add: []string{"a", "b"}, want: "a,b"},
		"after existing parts":       {value: "a", add: []string{"b"}, want: "a,b"},
		"once":                       {value: "a", add: []string{"b", "a", "b"}, want: "a,b"},
		"nothing new: left as it is": {value: " a , b", add: []string{"b"}, want: " a , b"},
	} {
		t.Run(name, func(t *testing.T) {
			meta := &metav1.ObjectMeta{}
			if tc.value != "" {
				meta.Annotations = map[string]string{"key": tc.value}
			}
			AddToAnnotation(meta, "key", ",", tc.add...)
			if got, ok := meta.Annotations["key"]; got != tc.want || ok != (tc.want != "") {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
