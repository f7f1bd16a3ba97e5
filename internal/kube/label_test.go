package kube

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

func TestLabelValue(t *testing.T) {
	long := strings.Repeat("a", validation.LabelValueMaxLength)
	if got := LabelValue(long); got != long {
		t.Errorf("a name that fits becomes %q", got)
	}
	hash := LabelValue(long + "a")
	if problems := validation.IsValidLabelValue(hash); len(problems) > 0 || hash == LabelValue(long+"b") {
		t.Errorf("a longer one becomes %q: %v", hash, problems)
	}
}
