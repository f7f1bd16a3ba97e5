package shootdns

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/apiserver/admission/admissiontest"
)

func provider(name string, primary *bool) corev1beta1.DNSProvider {
	return corev1beta1.DNSProvider{Type: &name, Primary: primary}
}

func dns(domain string, providers ...corev1beta1.DNSProvider) *corev1beta1.DNS {
	d := &corev1beta1.DNS{Providers: providers}
	if domain != "" {
		d.Domain = &domain
	}
	return d
}

func TestDNS(t *testing.T) {
	secret := func(name, domain, priority string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Namespace: "garden", Name: name, Labels: map[string]string{constants.GardenRole: constants.GardenRoleDefaultDomain},
			Annotations: map[string]string{constants.DNSDomain: domain, constants.DNSDefaultDomainPriority: priority},
		}}
	}
	own := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "own"}}
	own.Spec.DNS.Defaults = []corev1beta1.SeedDNSProviderConfig{{Domain: "own.example.com"}, {Domain: "second.example.com"}, {Domain: "dev.second.example.com"}}
	own.Spec.DNS.Internal = &corev1beta1.SeedDNSProviderConfig{Domain: "internal.example.net"}
	own.Spec.Ingress = &corev1beta1.Ingress{Domain: "ingress.own.example.net"}
	namespace := "garden-dev"
	reader := admissiontest.Reader(t,
		&corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "dev"}, Spec: corev1beta1.ProjectSpec{Namespace: &namespace}},
		secret("a", "low.example.com", "1"), secret("b", "high.example.com",
			"10"), own, &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "seed"}},
	)
	shoot := func(seed string, d *corev1beta1.DNS) *corev1beta1.Shoot {
		s := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shoot"}, Spec: corev1beta1.ShootSpec{DNS: d}}
		if seed != "" {
			s.Spec.SeedName = &seed
		}
		return s
	}
	for name, tc := range map[string]struct {
		shoot, old *corev1beta1.Shoot
		want       *corev1beta1.DNS
		refused    metav1.StatusReason
	}{
		"no domain before there is a seed":       {shoot: shoot("", nil)},
		"the default domain of highest priority": {shoot: shoot("seed", nil), want: dns("shoot.dev.high.example.com")},
		"the default domain of the seed":         {shoot: shoot("own", nil), want: dns("shoot.dev.own.example.com")},
		"the default domain when it is bound":    {shoot: shoot("seed", nil), old: shoot("", nil), want: dns("shoot.dev.high.example.com")},
		"no records": {shoot: shoot("seed", dns("", provider("unmanaged", nil))), want: dns("",
			provider("unmanaged", new(true)))},
		"the first provider is the primary one": {
			shoot: shoot("seed", dns("a.example.org", provider("x", nil), provider("y", nil))),
			want:  dns("a.example.org", provider("x", new(true)), provider("y", nil)),
		},
		"the primary provider stays": {
			shoot: shoot("", dns("a.example.org", provider("x", nil), provider("y", nil))),
			old:   shoot("", dns("a.example.org", provider("y", new(true)))),
			want:  dns("a.example.org", provider("x", nil), provider("y", new(true))),
		},
		"a name of one's own in the project": {shoot: shoot("seed", dns("x.dev.low.example.com")), want: dns("x.dev.low.example.com")},
		"a name in another project":          {shoot: shoot("", dns("x.prod.low.example.com")), refused: metav1.StatusReasonInvalid},
		"a default domain itself":            {shoot: shoot("", dns("low.example.com")), refused: metav1.StatusReasonInvalid},
		"a default domain of another seed":   {shoot: shoot("own", dns("x.dev.low.example.com")), refused: metav1.StatusReasonInvalid},
		"bound to a seed without the default domain": {
			shoot: shoot("own", dns("x.dev.low.example.com")), old: shoot("", dns("x.dev.low.example.com")), refused: metav1.StatusReasonInvalid,
		},
		"moved to a seed without the default domain": {
			shoot: shoot("seed", dns("x.dev.own.example.com")), old: shoot("own", dns("x.dev.own.example.com")), refused: metav1.StatusReasonInvalid,
		},
		"bound to a seed with the default domain": {
			shoot: shoot("own", dns("x.dev.own.example.com")), old: shoot("", dns("x.dev.own.example.com")), want: dns("x.dev.own.example.com"),
		},
		"bound with a name in another project":    {shoot: shoot("own", dns("x.prod.own.example.com")), old: shoot("", dns("x.prod.own.example.com")), refused: metav1.StatusReasonInvalid},
		"the longest default domain":              {shoot: shoot("own", dns("x.dev.dev.second.example.com")), want: dns("x.dev.dev.second.example.com")},
		"a name in the longest default domain":    {shoot: shoot("own", dns("x.dev.second.example.com")), refused: metav1.StatusReasonInvalid},
		"an internal name":                        {shoot: shoot("", dns("victim.prod.internal.example.net")), refused: metav1.StatusReasonInvalid},
		"an internal name on another seed":        {shoot: shoot("seed", dns("victim.dev.internal.example.net", provider("x", new(true)))), refused: metav1.StatusReasonInvalid},
		"an internal domain, unmanaged":           {shoot: shoot("seed", dns("internal.example.net", provider("unmanaged", nil))), refused: metav1.StatusReasonInvalid},
		"above an internal domain, unmanaged":     {shoot: shoot("seed", dns("example.net", provider("unmanaged", nil))), refused: metav1.StatusReasonInvalid},
		"above a default domain, unmanaged":       {shoot: shoot("seed", dns("example.com", provider("unmanaged", nil))), refused: metav1.StatusReasonInvalid},
		"a name of the ingress, unmanaged":        {shoot: shoot("", dns("x.ingress.own.example.net", provider("unmanaged", nil))), refused: metav1.StatusReasonInvalid},
		"above the ingress of a seed":             {shoot: shoot("seed", dns("own.example.net", provider("x", nil))), want: dns("own.example.net", provider("x", new(true)))},
		"a name in another project, unmanaged":    {shoot: shoot("seed", dns("x.prod.low.example.com", provider("unmanaged", nil))), refused: metav1.StatusReasonInvalid},
		"a name of one's own, unmanaged anywhere": {shoot: shoot("own", dns("x.dev.low.example.com", provider("unmanaged", nil))), want: dns("x.dev.low.example.com", provider("unmanaged", new(true)))},
		"unmanaged no longer": {
			shoot: shoot("own", dns("x.dev.low.example.com")), old: shoot("own", dns("x.dev.low.example.com", provider("unmanaged", nil))),
			refused: metav1.StatusReasonInvalid,
		},
		"a provider for the default domain": {shoot: shoot("seed", dns("", provider("x", new(true)))), refused: metav1.StatusReasonInvalid},
		"what it has, whatever the rule then": {
			shoot: shoot("seed", dns("low.example.com", provider("x", nil))), old: shoot("seed", dns("low.example.com")),
			want: dns("low.example.com", provider("x", nil)),
		},
		"a seed that is not there": {shoot: shoot("gone", nil), refused: "?"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)}
			p.GardenCache = reader
			p.KubeAPI = reader
			request := admissiontest.Request{Object: tc.shoot, Resource: "shoots"}
			if tc.old != nil {
				request.Old = tc.old
			}
			err := p.Admit(t.Context(), request.Attributes(), nil)
			if err == nil {
				err = p.Validate(t.Context(), request.Attributes(), nil)
			}
			if got := admissiontest.Reason(err); got != tc.refused {
				t.Fatalf("error %v, reason %q, want %q", err, got, tc.refused)
			}
			if diff := cmp.Diff(tc.want, tc.shoot.Spec.DNS); err == nil && diff != "" {
				t.Errorf("spec.dns (-want +got):\n%s", diff)
			}
		})
	}
}

// withoutSeedLists is a reader that does not list Seeds.
type withoutSeedLists struct{ client.Reader }

func (r withoutSeedLists) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if _, ok := list.(*corev1beta1.SeedList); ok {
		return errors.New("there are a thousand of them")
	}
	return r.Reader.List(ctx, list, opts...)
}

// A shoot gets the domain of its seed without a list of all seeds.
func TestDefaultDomainOfManySeeds(t *testing.T) {
	namespace := "garden-dev"
	seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "seed"}}
	seed.Spec.DNS.Defaults = []corev1beta1.SeedDNSProviderConfig{{Domain: "example.com"}}
	reader := admissiontest.Reader(t, seed,
		&corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "dev"}, Spec: corev1beta1.ProjectSpec{Namespace: &namespace}},
	)
	p := &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update)}
	p.GardenCache, p.KubeAPI = withoutSeedLists{reader}, reader
	shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shoot"}, Spec: corev1beta1.ShootSpec{SeedName: &seed.Name}}
	if err := p.Admit(t.Context(), admissiontest.Request{Object: shoot, Resource: "shoots"}.Attributes(), nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(dns("shoot.dev.example.com"), shoot.Spec.DNS); diff != "" {
		t.Errorf("spec.dns (-want +got):\n%s", diff)
	}
}
