package shootmanagedseed_test

import (
	"context"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/apiserver/admission/admissiontest"
	"gardener.cloud/gardener/internal/apiserver/admission/initializer"
	"gardener.cloud/gardener/internal/apiserver/admission/shootmanagedseed"
)

func TestValidate(t *testing.T) {
	shoot := func(name string, change func(*corev1beta1.ShootSpec)) *corev1beta1.Shoot {
		s := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name}}
		s.Spec.Kubernetes.VerticalPodAutoscaler = &corev1beta1.VerticalPodAutoscaler{Enabled: true}
		s.Spec.Provider.Workers = []corev1beta1.Worker{{Zones: []string{"a", "b", "c"}}}
		if change != nil {
			change(&s.Spec)
		}
		return s
	}
	managedSeed := &seedmanagementv1alpha1.ManagedSeed{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "seed"},
		Spec:       seedmanagementv1alpha1.ManagedSeedSpec{Shoot: &seedmanagementv1alpha1.Shoot{Name: "used"}},
	}
	seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "seed"}, Spec: corev1beta1.SeedSpec{Provider: corev1beta1.SeedProvider{Zones: []string{"a", "b"}}}}
	changed := func(change func(*corev1beta1.ShootSpec)) admissiontest.Request {
		return admissiontest.Request{Object: shoot("used", change), Old: shoot("used", nil)}
	}
	for name, tc := range map[string]struct {
		request admissiontest.Request
		want    metav1.StatusReason
	}{
		"another Shoot goes":  {request: admissiontest.Request{Old: shoot("free", nil)}},
		"the Shoot goes":      {request: admissiontest.Request{Old: shoot("used", nil)}, want: metav1.StatusReasonForbidden},
		"all Shoots go":       {request: admissiontest.Request{Namespace: "garden", Collection: true}, want: metav1.StatusReasonForbidden},
		"all go in another":   {request: admissiontest.Request{Namespace: "other", Collection: true}},
		"the Shoot stays fit": {request: changed(nil)},
		"it gets an ingress": {request: changed(func(s *corev1beta1.ShootSpec) {
			s.Addons = &corev1beta1.Addons{NginxIngress: &corev1beta1.NginxIngress{Addon: corev1beta1.Addon{Enabled: true}}}
		}), want: metav1.StatusReasonForbidden},
		"it loses autoscaling":   {request: changed(func(s *corev1beta1.ShootSpec) { s.Kubernetes.VerticalPodAutoscaler = nil }), want: metav1.StatusReasonForbidden},
		"it loses a zone":        {request: changed(func(s *corev1beta1.ShootSpec) { s.Provider.Workers[0].Zones = []string{"a", "c"} }), want: metav1.StatusReasonForbidden},
		"it loses a spare zone":  {request: changed(func(s *corev1beta1.ShootSpec) { s.Provider.Workers[0].Zones = []string{"a", "b"} })},
		"another Shoot may have": {request: admissiontest.Request{Object: shoot("free", func(s *corev1beta1.ShootSpec) { s.Kubernetes.VerticalPodAutoscaler = nil }), Old: shoot("free", nil)}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.request.Resource = "shoots"
			p := shootmanagedseed.New()
			p.GardenCache = interceptor.NewClient(admissiontest.Reader(t, managedSeed, seed), interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					// Of one that was just created, the cache may not know.
					if fresh := slices.Contains(opts, client.ListOption(initializer.Fresh)); fresh != (tc.request.Object == nil) {
						t.Errorf("ManagedSeeds are read from etcd: %t", fresh)
					}
					return c.List(ctx, list, opts...)
				},
			})
			if err := p.Validate(t.Context(), tc.request.Attributes(), nil); admissiontest.Reason(err) != tc.want {
				t.Errorf("Validate() = %v, want reason %q", err, tc.want)
			}
		})
	}
}
