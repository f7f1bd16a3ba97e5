package certificatesigningrequest

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/kube/bootstraptoken"
)

func TestMayRequest(t *testing.T) {
	const token = "system:bootstrap:abcdef"
	now := time.Now()
	seed := gardenlet{bootstraptoken.Gardenlet{Seed: "a"}, "gardener.cloud:system:seed:a"}
	own := types.NamespacedName{Namespace: "garden-prod", Name: "own"}
	shoot := gardenlet{bootstraptoken.Gardenlet{Shoot: own}, "gardener.cloud:system:shoot:garden-prod:own"}
	seedWith := func(expiry time.Time) *corev1beta1.Seed {
		s := &corev1beta1.Seed{}
		s.Status.ClientCertificateExpirationTimestamp = new(metav1.NewTime(expiry))
		return s
	}
	valid, lapsed := seedWith(now.Add(time.Hour)), seedWith(now.Add(-time.Hour))
	unnamed := &bootstraptoken.Gardenlet{}
	for name, tc := range map[string]struct {
		user      string
		requested gardenlet
		facts     facts
		ok        bool
	}{
		"a renewal":                            {user: seed.user, requested: seed, facts: facts{seed: valid}, ok: true},
		"a renewal for a Seed that is deleted": {user: seed.user, requested: seed},
		"a renewal for another seed":           {user: seed.user + "b", requested: seed},
		"a renewal of a self-hosted shoot":     {user: shoot.user, requested: shoot, ok: true},
		"a renewal for another shoot":          {user: shoot.user + "b", requested: shoot},
		"the ServiceAccount for a seed":        {user: "system:serviceaccount:garden:gardenlet-bootstrap-a", requested: seed, ok: true},
		"the ServiceAccount for another seed":  {user: "system:serviceaccount:garden:gardenlet-bootstrap-b", requested: seed},
		"the ServiceAccount without a seed":    {user: "system:serviceaccount:garden:gardenlet-bootstrap-", requested: shoot},
		// A gardenlet may create ServiceAccounts in the namespace of its seed, and bind them to the role of new gardenlets.
		"a ServiceAccount in the namespace of another seed": {user: "system:serviceaccount:seed-b:gardenlet-bootstrap-a", requested: seed},
		"any user": {user: "alice@example.com", requested: seed},

		"a token for the seed": {user: token, requested: seed, facts: facts{token: &seed.Gardenlet, seed: valid}, ok: true},
		"a token for another seed": {
			user: token, requested: seed, facts: facts{token: &bootstraptoken.Gardenlet{Seed: "b"}},
		},
		"a token for a shoot, for a seed":                      {user: token, requested: seed, facts: facts{token: &shoot.Gardenlet}},
		"a token that is deleted":                              {user: token, requested: seed},
		"a token that names no seed, for a new one":            {user: token, requested: seed, facts: facts{token: unnamed}, ok: true},
		"a token that names no seed, for one that lost access": {user: token, requested: seed, facts: facts{token: unnamed, seed: lapsed}, ok: true},
		"a token that names no seed, for a working one":        {user: token, requested: seed, facts: facts{token: unnamed, seed: valid}},
		"a token that names no seed, for one without a certificate yet": {
			user: token, requested: seed, facts: facts{token: unnamed, seed: &corev1beta1.Seed{}},
		},
		"a token for the self-hosted shoot":         {user: token, requested: shoot, facts: facts{token: &shoot.Gardenlet}, ok: true},
		"a token for a seed, for a shoot":           {user: token, requested: shoot, facts: facts{token: &seed.Gardenlet}},
		"a token that names nothing, for any shoot": {user: token, requested: shoot, facts: facts{token: unnamed}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := mayRequest(tc.user, tc.requested, tc.facts, now); (err == nil) != tc.ok {
				t.Errorf("mayRequest() = %v, want ok %t", err, tc.ok)
			}
		})
	}
}

func TestNewRegistration(t *testing.T) {
	seed := gardenlet{bootstraptoken.Gardenlet{Seed: "a"}, "gardener.cloud:system:seed:a"}
	for name, tc := range map[string]struct {
		user      string
		requested gardenlet
		facts     facts
		want      bool
	}{
		"bootstrap credentials":                        {user: "system:bootstrap:abcdef", requested: seed, want: true},
		"bootstrap credentials, the Seed exists":       {user: "system:bootstrap:abcdef", requested: seed, facts: facts{seed: &corev1beta1.Seed{}}},
		"the gardenlet itself":                         {user: seed.user, requested: seed},
		"bootstrap credentials of a self-hosted shoot": {user: "system:bootstrap:abcdef", requested: gardenlet{user: "gardener.cloud:system:shoot:a:b"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := newRegistration(tc.user, tc.requested, tc.facts); got != tc.want {
				t.Errorf("newRegistration() = %t", got)
			}
		})
	}
}
