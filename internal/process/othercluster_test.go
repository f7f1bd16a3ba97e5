package process

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// A kubeconfig that is for another cluster now is not used: all machines would be lost, and created again there.
func TestOtherClusterCheck(t *testing.T) {
	api := fake.NewClientBuilder().WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "a"}}).Build()
	for cluster, fine := range map[string]bool{"": true, "a": true, "b": false} {
		if err := (&OtherCluster{UID: cluster}).Check(t.Context(), api); (err == nil) != fine {
			t.Errorf("%q: %v", cluster, err)
		}
	}
}

// The server of a user leads clients nowhere else, and cannot fill the memory of the process.
func TestOtherClusterIsAUsers(t *testing.T) {
	reached := false
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	defer inside.Close()
	handler := http.RedirectHandler(inside.URL, http.StatusTemporaryRedirect)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(w, r) }))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	kubeconfig := `{kind: Config, apiVersion: v1, current-context: a, contexts: [{name: a, context: {user: a, cluster: a}}], users: [{name: a, user: {token: t}}],
clusters: [{name: a, cluster: {server: "` + server.URL + `", insecure-skip-tls-verify: true}}]}`
	if err := os.WriteFile(file, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := (&OtherCluster{Kubeconfig: file, Blocked: func(string) string { return "" }}).Config()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{})
	if err == nil {
		err = c.Get(t.Context(), client.ObjectKey{Name: "kube-system"}, &corev1.Namespace{})
	}
	if reached || err == nil || !strings.Contains(err.Error(), "redirects to another one") {
		t.Errorf("it has followed a redirect (%t): %v", reached, err)
	}
}
