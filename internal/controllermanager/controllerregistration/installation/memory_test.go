package installation

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

func TestMemory(t *testing.T) {
	seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "seed"}}
	usual, other := testShoot(nil), testShoot(func(s *corev1beta1.Shoot) { s.Spec.Networking.Type = new("cilium") })
	purpose := testShoot(func(s *corev1beta1.Shoot) { s.Spec.Purpose = new(corev1beta1.ShootPurposeTesting) })
	m := newMemory()
	check := func(when string, covers, coversOther, same, sameOther bool) {
		t.Helper()
		got := [4]bool{m.covers("seed", usual), m.covers("seed", other), m.same("seed", usual, purpose), m.same("seed", usual, other)}
		if want := [4]bool{covers, coversOther, same, sameOther}; got != want {
			t.Errorf("%s: covers a usual shoot, another one, same without a change, with one: %v, want %v", when, got, want)
		}
	}
	check("before a reconciliation", false, false, false, false)
	f := found{seed: seed, needs: needs{sets.New[need]()}}
	f.needs.addShoot(usual, seed, domains{}, nil)
	m.set(f)
	check("the first shoot counts, whatever it needs", false, false, true, false)
	f.shoots = 1
	m.set(f)
	check("after a reconciliation", true, false, true, false)
	m.delete("seed")
	check("during a reconciliation", false, false, false, false)
}
