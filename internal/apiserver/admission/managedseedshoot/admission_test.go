package managedseedshoot_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/apiserver/admission/admissiontest"
	"gardener.cloud/gardener/internal/apiserver/admission/managedseedshoot"
)

func TestValidate(t *testing.T) {
	managedSeed := &seedmanagementv1alpha1.ManagedSeed{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "seed"}}
	shoot := func(spec, status *string) *corev1beta1.Shoot {
		s := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s"}, Spec: corev1beta1.ShootSpec{SeedName: spec}}
		s.Status.SeedName = status
		return s
	}
	for name, tc := range map[string]struct {
		shoot      *corev1beta1.Shoot
		collection bool
		want       metav1.StatusReason
	}{
		"Shoots elsewhere":     {shoot: shoot(new("other"), new("other"))},
		"a Shoot":              {shoot: shoot(new("seed"), nil), want: metav1.StatusReasonForbidden},
		"a Shoot that leaves":  {shoot: shoot(new("other"), new("seed")), want: metav1.StatusReasonForbidden},
		"all, one has a Shoot": {shoot: shoot(new("seed"), nil), collection: true, want: metav1.StatusReasonForbidden},
		"all, none has Shoots": {shoot: shoot(nil, nil), collection: true},
	} {
		t.Run(name, func(t *testing.T) {
			request := admissiontest.Request{Group: "seedmanagement.gardener.cloud", Resource: "managedseeds", Namespace: "garden", Collection: tc.collection}
			if !tc.collection {
				request.Old = managedSeed
			}
			p := managedseedshoot.New()
			p.GardenCache = admissiontest.Reader(t, []client.Object{managedSeed, tc.shoot}...)
			if err := p.Validate(t.Context(), request.Attributes(), nil); admissiontest.Reason(err) != tc.want {
				t.Errorf("Validate() = %v, want reason %q", err, tc.want)
			}
		})
	}
}
