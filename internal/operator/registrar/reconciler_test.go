package registrar

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
)

func TestDecide(t *testing.T) {
	garden := []operatorv1alpha1.Garden{{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u"}}}
	for name, tc := range map[string]struct {
		gardens []operatorv1alpha1.Garden
		defined bool
		access  string
		want    keys
	}{
		"no Garden":                   {want: keys{}},
		"no Garden, but what it left": {defined: true, access: "a", want: keys{}},
		"a new Garden":                {gardens: garden, want: keys{garden: "u"}},
		"its definitions":             {gardens: garden, defined: true, want: keys{garden: "u", resources: "u"}},
		"its virtual cluster":         {gardens: garden, defined: true, access: "a", want: keys{garden: "u", resources: "u", virtual: "u/a"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := decide(tc.gardens, tc.defined, tc.access); got != tc.want {
				t.Errorf("decide() = %+v, want %+v", got, tc.want)
			}
		})
	}
}
