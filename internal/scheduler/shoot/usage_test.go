package shoot

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

func TestUsage(t *testing.T) {
	key := types.NamespacedName{Namespace: "garden-dev", Name: "shoot"}
	on := func(spec, status string) *corev1beta1.Shoot {
		s := testShoot()
		if spec != "" {
			s.Spec.SeedName = &spec
		}
		if status != "" {
			s.Status.SeedName = &status
		}
		return s
	}
	recreated := func(s *corev1beta1.Shoot) *corev1beta1.Shoot {
		s.UID = "2"
		return s
	}
	r := &request{shoot: key, uid: "1"}
	type state struct {
		Counts map[string]int64
		Left   []string // by the last step
	}
	for name, tc := range map[string]struct {
		steps func(*usage) (left []string)
		want  state
	}{
		"a shoot counts for its seed": {
			func(u *usage) []string { return u.set(key, on("a", "a")) },
			state{map[string]int64{"a": 1}, nil},
		},
		"a shoot that is migrated counts for both seeds": {
			func(u *usage) []string { u.set(key, on("a", "a")); return u.set(key, on("b", "a")) },
			state{map[string]int64{"a": 1, "b": 1}, nil},
		},
		"a shoot that was migrated left one seed": {
			func(u *usage) []string { u.set(key, on("b", "a")); return u.set(key, on("b", "b")) },
			state{map[string]int64{"b": 1}, []string{"a"}},
		},
		"a deleted shoot left its seed": {
			func(u *usage) []string { u.set(key, on("a", "")); return u.delete(key) },
			state{map[string]int64{}, []string{"a"}},
		},
		"a place is held": {
			func(u *usage) []string { u.assume(r, "a"); return nil },
			state{map[string]int64{"a": 1}, nil},
		},
		"a place is held while the informer shows no binding": {
			func(u *usage) []string { u.assume(r, "a"); u.confirm(key); return u.set(key, on("", "")) },
			state{map[string]int64{"a": 1}, nil},
		},
		"a place is counted once when the informer shows the binding": {
			func(u *usage) []string { u.assume(r, "a"); u.confirm(key); return u.set(key, on("a", "")) },
			state{map[string]int64{"a": 1}, nil},
		},
		"a place is released when another scheduler bound the shoot": {
			func(u *usage) []string { u.assume(r, "a"); return u.set(key, on("b", "")) },
			state{map[string]int64{"b": 1}, []string{"a"}},
		},
		"a place is released when the shoot was created again": {
			func(u *usage) []string { u.assume(r, "a"); return u.set(key, recreated(on("", ""))) },
			state{map[string]int64{}, []string{"a"}},
		},
		"a place is released when the shoot is deleted": {
			func(u *usage) []string { u.assume(r, "a"); return u.delete(key) },
			state{map[string]int64{}, []string{"a"}},
		},
		"a second decision replaces the first": {
			func(u *usage) []string { u.assume(r, "a"); u.assume(r, "b"); return nil },
			state{map[string]int64{"b": 1}, nil},
		},
		"a place is released once": {
			func(u *usage) []string { u.assume(r, "a"); u.release(key); return u.release(key) },
			state{map[string]int64{}, nil},
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUsage()
			left := tc.steps(&u)
			if diff := cmp.Diff(tc.want, state{u.counts, left}); diff != "" {
				t.Errorf("usage (-want +got):\n%s", diff)
			}
		})
	}
}
