package bastion_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	"gardener.cloud/gardener/internal/apiserver/admission/admissiontest"
	"gardener.cloud/gardener/internal/apiserver/admission/bastion"
)

func TestAdmit(t *testing.T) {
	shoot := func(name string, change func(*corev1beta1.Shoot)) *corev1beta1.Shoot {
		s := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: "uid"}, Spec: corev1beta1.ShootSpec{
			SeedName: new("seed"), Provider: corev1beta1.Provider{Type: "local"},
		}}
		change(s)
		return s
	}
	reader := admissiontest.Reader(t,
		shoot("running", func(*corev1beta1.Shoot) {}),
		shoot("waiting", func(s *corev1beta1.Shoot) { s.Spec.SeedName = nil }),
		shoot("going", func(s *corev1beta1.Shoot) {
			s.DeletionTimestamp, s.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{"gardener"}
		}),
	)
	given := func(shootName string) *operationsv1alpha1.Bastion {
		return &operationsv1alpha1.Bastion{
			ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "b"},
			Spec:       operationsv1alpha1.BastionSpec{ShootRef: corev1.LocalObjectReference{Name: shootName}, SeedName: new("forged")},
		}
	}
	owner := metav1.OwnerReference{
		APIVersion: "core.gardener.cloud/v1beta1", Kind: "Shoot", Name: "running", UID: "uid", Controller: new(true), BlockOwnerDeletion: new(true),
	}
	for name, tc := range map[string]struct {
		shoot  string
		update bool
		reason metav1.StatusReason
		want   *operationsv1alpha1.Bastion
	}{
		"new": {shoot: "running", want: &operationsv1alpha1.Bastion{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "n", Name: "b", Annotations: map[string]string{"gardener.cloud/created-by": "alice"}, OwnerReferences: []metav1.OwnerReference{owner},
			},
			Spec: operationsv1alpha1.BastionSpec{ShootRef: corev1.LocalObjectReference{Name: "running"}, SeedName: new("seed"), ProviderType: new("local")},
		}},
		"changed": {shoot: "running", update: true, want: &operationsv1alpha1.Bastion{
			ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "b", OwnerReferences: []metav1.OwnerReference{owner}},
			Spec:       operationsv1alpha1.BastionSpec{ShootRef: corev1.LocalObjectReference{Name: "running"}, SeedName: new("seed"), ProviderType: new("local")},
		}},
		"no Shoot":                   {reason: metav1.StatusReasonInvalid},
		"no such Shoot":              {shoot: "x", reason: metav1.StatusReasonInvalid},
		"the Shoot waits for a Seed": {shoot: "waiting", reason: metav1.StatusReasonInvalid},
		"the Shoot is going":         {shoot: "going", reason: metav1.StatusReasonInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			obj := given(tc.shoot)
			request := admissiontest.Request{Group: "operations.gardener.cloud", Resource: "bastions", Object: obj}
			if tc.update {
				request.Old = given(tc.shoot)
			}
			p := bastion.New()
			p.GardenCache = reader
			for range 2 { // the second time, nothing changes
				err := p.Admit(t.Context(), request.Attributes(), nil)
				if admissiontest.Reason(err) != tc.reason {
					t.Fatalf("Admit() = %v, want reason %q", err, tc.reason)
				}
				if err != nil {
					return
				}
			}
			if diff := cmp.Diff(tc.want, obj); diff != "" {
				t.Errorf("Bastion (-want +got):\n%s", diff)
			}
		})
	}
}

// The gardenlet removes its finalizer from a Bastion whose Shoot is gone.
func TestBastionThatIsBeingDeleted(t *testing.T) {
	old := &operationsv1alpha1.Bastion{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "b", DeletionTimestamp: &metav1.Time{Time: time.Unix(1, 0)}, Finalizers: []string{"gardener"}},
		Spec:       operationsv1alpha1.BastionSpec{ShootRef: corev1.LocalObjectReference{Name: "gone"}, SeedName: new("seed"), ProviderType: new("local")},
	}
	want := old.DeepCopy()
	want.Finalizers = nil
	got := want.DeepCopy()
	got.Spec.SeedName, got.Spec.ProviderType = new("forged"), nil
	p := bastion.New()
	p.GardenCache = admissiontest.Reader(t)
	request := admissiontest.Request{Group: "operations.gardener.cloud", Resource: "bastions", Object: got, Old: old}
	if err := p.Admit(t.Context(), request.Attributes(), nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Bastion (-want +got):\n%s", diff)
	}
}
