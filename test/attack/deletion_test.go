package attack

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/test/env"
)

// The deletion of a Shoot deletes what its credentials, domain and networks lead to. Its owner must not exchange them meanwhile.
func TestSpecChangesDuringDeletion(t *testing.T) {
	g := start(t)
	other := &securityv1alpha1.CredentialsBinding{ObjectMeta: metav1.ObjectMeta{Namespace: attackers, Name: "other"}}
	other.CredentialsRef.APIVersion, other.CredentialsRef.Kind, other.CredentialsRef.Namespace, other.CredentialsRef.Name = "v1", "Secret", attackers, "evil"
	other.Provider.Type = "local"
	shoot := newShoot("evil")
	shoot.Spec.Provider.InfrastructureConfig = &runtime.RawExtension{Raw: []byte(`{"a":"b"}`)}
	shoot.Annotations = map[string]string{"confirmation.gardener.cloud/deletion": "true"}
	g.create(t, other, shoot)
	env.Edit(t, g.c, shoot, func(s *corev1beta1.Shoot) { s.Finalizers = []string{"gardener"} })
	if err := g.c.Delete(t.Context(), shoot); err != nil {
		t.Fatal(err)
	}
	key := client.ObjectKeyFromObject(shoot)
	for name, tc := range map[string]struct {
		change func(*corev1beta1.ShootSpec)
		want   []string
	}{
		"other credentials": {
			func(s *corev1beta1.ShootSpec) { s.CredentialsBindingName = new("other") }, []string{"spec.credentialsBindingName"},
		},
		"a domain": {func(s *corev1beta1.ShootSpec) { s.DNS = &corev1beta1.DNS{Domain: new("victim.example.org")} }, []string{"spec.dns"}},
		"another configuration of the provider": {func(s *corev1beta1.ShootSpec) {
			s.Provider.InfrastructureConfig = &runtime.RawExtension{Raw: []byte(`{"a":"c"}`)}
		}, []string{"spec.provider.infrastructureConfig"}},
		"another machine and hibernation": {func(s *corev1beta1.ShootSpec) {
			s.Provider.Workers[0].Maximum = 4
			s.Hibernation = &corev1beta1.Hibernation{Enabled: new(true)}
		}, []string{"spec.hibernation", "spec.provider.workers[0].maximum"}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := g.c.Get(t.Context(), key, shoot); err != nil {
				t.Fatal(err)
			}
			tc.change(&shoot.Spec)
			err := g.c.Update(t.Context(), shoot, client.DryRunAll)
			if diff := cmp.Diff(tc.want, causes(err)); diff != "" || !apierrors.IsInvalid(err) {
				t.Errorf("error %v, fields (-want +got):\n%s", err, diff)
			}
		})
	}
	t.Run("the deletion can end", func(t *testing.T) {
		if err := g.c.Get(t.Context(), key, shoot); err != nil {
			t.Fatal(err)
		}
		shoot.Finalizers = nil
		if err := g.c.Update(t.Context(), shoot); err != nil {
			t.Fatal(err)
		}
		if err := g.c.Get(t.Context(), key, shoot); !apierrors.IsNotFound(err) {
			t.Errorf("read the deleted Shoot: %v", err)
		}
	})
}

// causes returns the fields that a refusal names, sorted.
func causes(err error) []string {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || status.Status().Details == nil {
		return nil
	}
	var fields []string
	for _, cause := range status.Status().Details.Causes {
		fields = append(fields, cause.Field)
	}
	slices.Sort(fields)
	return fields
}
