package attack

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/apiserver/admission/shootdns"
	"gardener.cloud/gardener/internal/apiserver/admission/shootvalidator"
	"gardener.cloud/gardener/test/env"
)

// Records below a default domain are written with the credentials of the landscape, and the gateway of a seed leads each name to the
// kube-apiserver that has it. So a shoot must not have a name of another project, or an internal one, whichever way it claims the name.
func TestDomainOfAnother(t *testing.T) {
	g := start(t, shootdns.Name)
	credentials := corev1beta1.SeedDNSProviderConfig{Type: "local", Domain: "second.example.net"}
	second := &corev1beta1.Seed{}
	if err := g.c.Get(t.Context(), client.ObjectKey{Name: seedName}, second); err != nil {
		t.Fatal(err)
	}
	credentials.CredentialsRef = second.Spec.DNS.Internal.CredentialsRef
	second.ObjectMeta = metav1.ObjectMeta{Name: "second"}
	second.Spec.DNS.Defaults = []corev1beta1.SeedDNSProviderConfig{credentials}
	second.Spec.Ingress.Domain = "ingress.second.example.com"
	env.Edit(t, g.c, &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: seedName}}, func(s *corev1beta1.Seed) {
		first := credentials
		first.Domain = "first.example.net"
		s.Spec.DNS.Defaults = []corev1beta1.SeedDNSProviderConfig{first}
	})
	g.create(t, namespace("seed-second"), second)
	env.EditStatus(t, g.c, second, func(seed *corev1beta1.Seed) {
		seed.Status.Conditions = []corev1beta1.Condition{{Type: corev1beta1.SeedGardenletReady, Status: corev1beta1.ConditionTrue}}
	})

	unmanaged := []corev1beta1.DNSProvider{{Type: new("unmanaged"), Primary: new(true)}}
	for name, tc := range map[string]struct {
		domain    string
		providers []corev1beta1.DNSProvider
		seed      *string
		refused   bool
	}{
		"internal name of another project":                {domain: "victim.prod.internal.example.com", seed: new(seedName), refused: true},
		"internal name of another project, unmanaged":     {domain: "victim.prod.internal.example.com", providers: unmanaged, seed: new(seedName), refused: true},
		"internal name, before there is a seed":           {domain: "victim.prod.internal.example.com", refused: true},
		"default name of another project":                 {domain: "victim.prod.first.example.net", seed: new(seedName), refused: true},
		"default name of another project, unmanaged":      {domain: "victim.prod.first.example.net", providers: unmanaged, seed: new(seedName), refused: true},
		"default name there, before there is a seed":      {domain: "victim.prod.first.example.net", refused: true},
		"default name of another project on another seed": {domain: "victim.prod.first.example.net", providers: unmanaged, seed: new("second"), refused: true},
		"above all default names":                         {domain: "example.net", providers: unmanaged, seed: new(seedName), refused: true},
		"name of the ingress of a seed":                   {domain: "x.ingress.local.example.com", providers: unmanaged, seed: new(seedName), refused: true},
		"a name of its own":                               {domain: "evil.attacker.first.example.net", seed: new(seedName)},
		"a domain of its own":                             {domain: "evil.example.org", providers: unmanaged, seed: new(seedName)},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := newShoot("evil")
			shoot.Spec.SeedName, shoot.Spec.DNS = tc.seed, &corev1beta1.DNS{Domain: &tc.domain, Providers: tc.providers}
			err := g.c.Create(t.Context(), shoot, client.DryRunAll)
			if tc.refused != apierrors.IsInvalid(err) || !tc.refused && err != nil {
				t.Errorf("a Shoot with domain %q: %v", tc.domain, err)
			}
		})
	}

	// Without a seed it is created, as one of the seeds offers the domain. The other one has no credentials for it.
	shoot := newShoot("evil")
	shoot.Spec.SeedName, shoot.Spec.DNS = nil, &corev1beta1.DNS{Domain: new("evil.attacker.first.example.net")}
	g.create(t, shoot)
	for seed, refused := range map[string]bool{"second": true, seedName: false} {
		t.Run("binding to "+seed, func(t *testing.T) {
			bound := shoot.DeepCopy()
			bound.Spec.SeedName = &seed
			err := g.c.SubResource("binding").Update(t.Context(), bound, client.DryRunAll)
			if refused != apierrors.IsInvalid(err) || !refused && err != nil {
				t.Errorf("bind the Shoot: %v", err)
			}
		})
	}
}

// Whoever has no records to write can claim any domain. So a claim must not keep other projects from having theirs: neither that of a domain
// that all domains of a country are below, nor that of the organization that a project belongs to.
func TestDomainThatBlocksOthers(t *testing.T) {
	g := start(t, shootvalidator.Name)
	const victims = "garden-victim"
	g.create(t, namespace(victims), &corev1beta1.Project{
		ObjectMeta: metav1.ObjectMeta{Name: "victim"}, Spec: corev1beta1.ProjectSpec{Namespace: new(victims)},
	}, &securityv1alpha1.CredentialsBinding{
		ObjectMeta:     metav1.ObjectMeta{Namespace: victims, Name: "evil"},
		CredentialsRef: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: victims, Name: "evil"},
		Provider:       securityv1alpha1.CredentialsBindingProvider{Type: "local"},
	})
	claim := func(in, name, domain string) *corev1beta1.Shoot {
		shoot := newShoot(name)
		shoot.Namespace, shoot.Spec.SeedName = in, nil
		shoot.Spec.DNS = &corev1beta1.DNS{Domain: &domain, Providers: []corev1beta1.DNSProvider{{Type: new("unmanaged"), Primary: new(true)}}}
		return shoot
	}
	for _, domain := range []string{"com", "co.uk", "github.io", "local"} {
		if err := g.c.Create(t.Context(), claim(attackers, "evil", domain), client.DryRunAll); !apierrors.IsForbidden(err) {
			t.Errorf("the domain %s: %v", domain, err)
		}
	}
	g.create(t, claim(attackers, "evil", "example.org"))
	for domain, free := range map[string]bool{"victim.example.org": true, "example.org": false, "api.example.org": false} {
		g.eventually(t, domain, func() error { // the API server sees the other Shoot a moment later
			err := g.c.Create(t.Context(), claim(victims, "own", domain), client.DryRunAll)
			if err == nil && !free {
				return errors.New("another project gets it")
			}
			if free {
				return err
			}
			return nil
		})
	}
}
