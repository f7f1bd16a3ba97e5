// Package validationtest helps to test validators.
package validationtest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Expect compares errors by type and path, such as "FieldValueInvalid spec.region", in any order.
func Expect(t *testing.T, got field.ErrorList, want ...string) {
	t.Helper()
	texts := []string{}
	for _, err := range got {
		texts = append(texts, fmt.Sprintf("%s %s", string(err.Type), err.Field))
	}
	want = append([]string{}, want...)
	slices.Sort(texts)
	slices.Sort(want)
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Errorf("unexpected errors (-want +got):\n%s\n%v", diff, got)
	}
}
