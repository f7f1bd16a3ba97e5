package shootvalidator

import (
	"fmt"
	"slices"
	"testing"
)

// A shoot gets a domain as soon as those of all shoots that it may conflict with were compared: exactly these have to be read.
func TestConflicting(t *testing.T) {
	labels := []string{"api", "ingress", "a", "b"}
	var domains []string
	for _, one := range labels {
		for _, two := range labels {
			domains = append(domains, fmt.Sprintf("%s.%s.test", one, two), two+".test")
			for _, three := range labels {
				domains = append(domains, fmt.Sprintf("%s.%s.%s.test", one, two, three))
			}
		}
	}
	conflicts := 0
	for _, own := range domains {
		read := conflicting(own)
		for _, other := range domains {
			want := conflict(own, other, false, nil) != nil
			if got := slices.Contains(read, other); got != want {
				t.Errorf("%s conflicts with %s of another project: %t, but it is read: %t", own, other, want, got)
			}
			if want && own != other {
				conflicts++
			}
		}
	}
	if conflicts == 0 {
		t.Error("no domains conflict")
	}
}
