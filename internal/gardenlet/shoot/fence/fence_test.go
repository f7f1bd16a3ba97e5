package fence

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

func TestIsAway(t *testing.T) {
	shoots := schema.GroupResource{Group: "core.gardener.cloud", Resource: "shoots"}
	for name, tc := range map[string]struct {
		spec, status string
		err          error
		away, fails  bool
	}{
		"here":                       {spec: "here", status: "here"},
		"it moves away":              {spec: "other", status: "here"},
		"it moves here":              {spec: "here", status: "other"},
		"it is created here":         {spec: "here"},
		"of another seed":            {spec: "other", status: "other", away: true},
		"it may not be read":         {err: apierrors.NewForbidden(shoots, "x", errors.New("no relationship")), away: true},
		"it does not exist":          {err: apierrors.NewNotFound(shoots, "x"), away: true},
		"the garden does not answer": {err: errors.New("connection refused"), fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := &corev1beta1.Shoot{}
			if tc.spec != "" {
				shoot.Spec.SeedName = &tc.spec
			}
			if tc.status != "" {
				shoot.Status.SeedName = &tc.status
			}
			away, err := isAway(shoot, tc.err, "here")
			if away != tc.away || (err != nil) != tc.fails {
				t.Errorf("isAway() = %t, %v", away, err)
			}
		})
	}
}
