package gardenlet

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/test/env"
)

// testNetworkPolicies creates the namespace of a control plane, and deletes a policy in it.
func (g *garden) testNetworkPolicies(t *testing.T) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shoot--a--b", Labels: map[string]string{"gardener.cloud/role": "shoot"}}}
	if err := g.c.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	want := []string{"allow-to-blocked-cidrs", "allow-to-dns", "allow-to-private-networks", "allow-to-public-networks", "allow-to-runtime-apiserver", "deny-all"}
	complete := func() {
		t.Helper()
		env.AwaitList(t, g.c, func(found []*networkingv1.NetworkPolicy) error {
			var names []string
			for _, policy := range found {
				if policy.Namespace == namespace.Name {
					names = append(names, policy.Name)
				}
			}
			slices.Sort(names)
			if !slices.Equal(names, want) {
				return fmt.Errorf("policies are %q, want %q", names, want)
			}
			return nil
		})
	}
	complete()
	allowed := &networkingv1.NetworkPolicy{}
	if err := g.c.Get(t.Context(), client.ObjectKey{Namespace: namespace.Name, Name: "allow-to-runtime-apiserver"}, allowed); err != nil {
		t.Fatal(err)
	}
	if len(allowed.Spec.Egress) == 0 {
		t.Error("the policy allows no connections to the API server")
	}
	if err := g.c.Delete(t.Context(), allowed); err != nil {
		t.Fatal(err)
	}
	complete()
}
