package authorizer

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"gardener.cloud/gardener/internal/kube/bootstraptoken"
)

func TestShootOfBootstrapToken(t *testing.T) {
	token := func(id, description string) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-" + id},
			Data:       map[string][]byte{"description": []byte(description)},
		}
	}
	g := Garden{API: fake.NewClientBuilder().WithObjects(
		token("shoot0", "Used for connecting the self-hosted Shoot garden-p/s to Gardener via 'gardenadm connect'"),
		token("seed00", bootstraptoken.ForSeed("s")),
		token("other0", "Used for connecting the self-hosted Shoot garden-p/s to something else"),
	).Build()}
	for id, want := range map[string]types.NamespacedName{"shoot0": {Namespace: "garden-p", Name: "s"}, "seed00": {}, "other0": {}, "absent": {}} {
		if got, err := g.ShootOfBootstrapToken(t.Context(), "bootstrap-token-"+id); got != want || err != nil {
			t.Errorf("the token %s is for shoot %v (%v), want %v", id, got, err, want)
		}
	}
}
