package lifecycle

import (
	"errors"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/gardenlet/shoot/credentials"
)

// What users have added to the API can be read by viewers, unless it is encrypted. The API server is asked once in a run.
func TestViewersReadWhatTheAPIServerServes(t *testing.T) {
	s, w := newStage(t), example()
	w.shoot.Spec.Provider.Workers = nil
	w.shoot.Spec.Kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{EncryptionConfig: &corev1beta1.EncryptionConfig{Resources: []string{"keys.example.com"}}}
	h := &hosted{reconciler: s.reconciler, world: w, shootClient: s.shoot}
	set, err := credentials.Open(t.Context(), h.credentialValues())
	if err != nil {
		t.Fatal(err)
	}
	h.set = set
	asked, fails := 0, true
	h.Discover = func(*rest.Config) ([]*metav1.APIResourceList, error) {
		if asked++; fails {
			return nil, errors.New("no answer")
		}
		read := metav1.Verbs{"get", "list", "watch"}
		return []*metav1.APIResourceList{{GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{{Name: "things", Verbs: read}, {Name: "keys", Verbs: read}}}}, nil
	}
	if err := h.grant(t.Context(), s.shoot); err == nil {
		t.Error("nobody knows what may be read, and yet it is granted")
	}
	fails = false
	for range 2 {
		if err := h.grant(t.Context(), s.shoot); err != nil {
			t.Fatal(err)
		}
	}
	if asked != 2 {
		t.Errorf("the API server was asked %d times", asked)
	}
	role := &rbacv1.ClusterRole{}
	if err := s.shoot.Get(t.Context(), client.ObjectKey{Name: "gardener.cloud:system:read-only"}, role); err != nil {
		t.Fatal(err)
	}
	readable := func(group, resource string) bool {
		return slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.APIGroups, group) && slices.Contains(r.Resources, resource)
		})
	}
	if !readable("example.com", "things") || !readable("", "pods") {
		t.Errorf("viewers do not see everything: %v", role.Rules)
	}
	if readable("example.com", "keys") || readable("", "secrets") {
		t.Errorf("viewers see what is secret: %v", role.Rules)
	}
}
