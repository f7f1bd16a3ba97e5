package attack

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/gardenlet/shoot/care"
	"gardener.cloud/gardener/internal/kube"
)

// The gardenlet reads lists of objects in shoots. Users decide how many objects there are: one list must not fill the memory of a process
// that all shoots of the seed need.
func TestListsInShootsAreLimited(t *testing.T) {
	const far = 4 * kube.MaxShootResponse
	chunk := `{"metadata":{"name":"` + strings.Repeat("x", 1<<20) + `"}},`
	var sent atomic.Int64
	shoot := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/mutatingwebhookconfigurations") {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"admissionregistration.k8s.io/v1","resources":[`+
				`{"name":"mutatingwebhookconfigurations","kind":"MutatingWebhookConfiguration","verbs":["list"]}]}`)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"MutatingWebhookConfigurationList","apiVersion":"admissionregistration.k8s.io/v1","items":[`)
		for sent.Load() < far {
			n, err := io.WriteString(w, chunk)
			if sent.Add(int64(n)); err != nil {
				return
			}
		}
		_, _ = io.WriteString(w, `{}]}`)
	}))
	t.Cleanup(shoot.Close)
	kubeconfig, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"shoot": {Server: shoot.URL}}, CurrentContext: "shoot",
		Contexts: map[string]*clientcmdapi.Context{"shoot": {Cluster: "shoot"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := care.Connector(scheme.Scheme, "test", func(*rest.Config) {})(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	// The error of the transport is in the text of that of the client only.
	if err := c.List(t.Context(), &admissionregistrationv1.MutatingWebhookConfigurationList{}); err == nil || !strings.Contains(err.Error(), kube.ErrTooLarge.Error()) {
		t.Errorf("List() = %v, want %v", err, kube.ErrTooLarge)
	}
	if got := sent.Load(); got >= far {
		t.Errorf("all %d bytes were read", got)
	}
}

// Names and messages of objects in a shoot are part of conditions of objects in the seed and in the garden. They cannot make these so large
// that their status cannot be written, or that they fill the storage.
func TestConditionsAboutShootsAreShort(t *testing.T) {
	now := time.Now()
	long := strings.Repeat("Node was not ready; ", 1<<17)
	conditions, _ := kube.SetCondition(nil, corev1beta1.Condition{Type: corev1beta1.ShootEveryNodeReady, Status: corev1beta1.ConditionFalse, Message: long}, now)
	if got := len(conditions[0].Message); got > kube.MaxMessage {
		t.Errorf("the message has %d bytes", got)
	}
	// It does not change with each check.
	if _, changed := kube.SetCondition(conditions, corev1beta1.Condition{Type: corev1beta1.ShootEveryNodeReady, Status: corev1beta1.ConditionFalse, Message: long}, now); changed {
		t.Error("the same message is another condition")
	}
}
