package seedvalidator_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/apiserver/admission/admissiontest"
	"gardener.cloud/gardener/internal/apiserver/admission/seedvalidator"
)

const forbidden = metav1.StatusReasonForbidden

func seed(change func(*corev1beta1.SeedSpec)) *corev1beta1.Seed {
	s := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "seed"}, Spec: corev1beta1.SeedSpec{
		Provider: corev1beta1.SeedProvider{Type: "local", Zones: []string{"a", "b"}},
		DNS: corev1beta1.SeedDNS{
			Internal: &corev1beta1.SeedDNSProviderConfig{Domain: "internal.example.org"},
			Defaults: []corev1beta1.SeedDNSProviderConfig{{Domain: "used.example.org"}, {Domain: "unused.example.org"}},
		},
	}}
	if change != nil {
		change(&s.Spec)
	}
	return s
}

func TestValidate(t *testing.T) {
	on := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "on"}, Spec: corev1beta1.ShootSpec{
		SeedName: new("seed"), DNS: &corev1beta1.DNS{Domain: new("on.dev.used.example.org")},
	}}
	leaving := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "leaving"}, Spec: corev1beta1.ShootSpec{SeedName: new("other")}}
	leaving.Status.SeedName = new("seed")
	identity := &securityv1alpha1.WorkloadIdentity{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "identity"},
		Spec:       securityv1alpha1.WorkloadIdentitySpec{TargetSystem: securityv1alpha1.TargetSystem{Type: "local"}},
	}
	backup := func(provider, name string) *corev1beta1.Seed {
		return seed(func(s *corev1beta1.SeedSpec) {
			s.Backup = &corev1beta1.Backup{Provider: provider, CredentialsRef: &corev1.ObjectReference{Kind: "WorkloadIdentity", Namespace: "garden", Name: name}}
		})
	}
	for name, tc := range map[string]struct {
		stored  []client.Object
		request admissiontest.Request
		want    metav1.StatusReason
	}{
		"goes without Shoots":              {request: admissiontest.Request{Old: seed(nil)}},
		"goes with a Shoot":                {stored: []client.Object{on}, request: admissiontest.Request{Old: seed(nil)}, want: forbidden},
		"goes with a Shoot that leaves":    {stored: []client.Object{leaving}, request: admissiontest.Request{Old: seed(nil)}, want: forbidden},
		"all go, one with a Shoot":         {stored: []client.Object{on, seed(nil)}, request: admissiontest.Request{Collection: true}, want: forbidden},
		"all go without Shoots":            {stored: []client.Object{seed(nil)}, request: admissiontest.Request{Collection: true}},
		"loses a zone":                     {request: admissiontest.Request{Old: seed(nil), Object: seed(func(s *corev1beta1.SeedSpec) { s.Provider.Zones = []string{"a"} })}},
		"loses a zone with Shoots":         {stored: []client.Object{on}, request: admissiontest.Request{Old: seed(nil), Object: seed(func(s *corev1beta1.SeedSpec) { s.Provider.Zones = []string{"a"} })}, want: forbidden},
		"gets a zone with Shoots":          {stored: []client.Object{on}, request: admissiontest.Request{Old: seed(nil), Object: seed(func(s *corev1beta1.SeedSpec) { s.Provider.Zones = []string{"a", "b", "c"} })}},
		"changes its domain with Shoots":   {stored: []client.Object{on}, request: admissiontest.Request{Old: seed(nil), Object: seed(func(s *corev1beta1.SeedSpec) { s.DNS.Internal.Domain = "x" })}, want: forbidden},
		"loses a domain that a Shoot uses": {stored: []client.Object{on}, request: admissiontest.Request{Old: seed(nil), Object: seed(func(s *corev1beta1.SeedSpec) { s.DNS.Defaults = s.DNS.Defaults[1:] })}, want: forbidden},
		"loses a domain that none uses":    {stored: []client.Object{on}, request: admissiontest.Request{Old: seed(nil), Object: seed(func(s *corev1beta1.SeedSpec) { s.DNS.Defaults = s.DNS.Defaults[:1] })}},
		"backs up with an identity":        {stored: []client.Object{identity}, request: admissiontest.Request{Object: backup("local", "identity")}},
		"backs up with one of another":     {stored: []client.Object{identity}, request: admissiontest.Request{Object: backup("other", "identity")}, want: forbidden},
		"backs up with a missing one":      {request: admissiontest.Request{Object: backup("local", "identity")}, want: metav1.StatusReasonInternalError},
	} {
		t.Run(name, func(t *testing.T) {
			tc.request.Resource = "seeds"
			p := seedvalidator.New()
			p.GardenCache = admissiontest.Reader(t, tc.stored...)
			if err := p.Validate(t.Context(), tc.request.Attributes(), nil); admissiontest.Reason(err) != tc.want {
				t.Errorf("Validate() = %v, want reason %q", err, tc.want)
			}
		})
	}
	t.Run("the store is broken", func(t *testing.T) {
		p := seedvalidator.New()
		p.GardenCache = admissiontest.Broken{}
		err := p.Validate(t.Context(), admissiontest.Request{Resource: "seeds", Old: seed(nil)}.Attributes(), nil)
		if admissiontest.Reason(err) != metav1.StatusReasonInternalError {
			t.Errorf("Validate() = %v, want an internal error", err)
		}
	})
}
