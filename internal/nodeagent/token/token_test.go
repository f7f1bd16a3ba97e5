package token

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
	"gardener.cloud/gardener/internal/nodeagent/rootfs"
)

func TestReconcile(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "logs"}}
	c := fake.NewFakeClient()
	r := &reconciler{Values{
		API: c, Root: rootfs.Dir(t.TempDir()), SyncPeriod: time.Hour,
		Configs: []nodeagentconfigv1alpha1.TokenSecretSyncConfig{{SecretName: "logs", Path: "/var/lib/logs/token"}, {SecretName: "other", Path: "/other"}},
	}}
	pass := func(want time.Duration, token string) {
		t.Helper()
		result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(secret)})
		if err != nil || result.RequeueAfter != want {
			t.Errorf("Reconcile() = %v, %v; want it requeued after %s", result, err, want)
		}
		if data, _ := r.Root.Read("/var/lib/logs/token"); string(data) != token {
			t.Errorf("token is %q, want %q", data, token)
		}
	}
	pass(retryAfter, "")
	if err := c.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	pass(retryAfter, "")
	for _, token := range []string{"one", "two"} {
		secret.Data = map[string][]byte{"token": []byte(token)}
		if err := c.Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		pass(time.Hour, token)
	}
	if r.Root.Exists("/other") {
		t.Error("the token was written to the file of another Secret")
	}
}
