package care

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	"gardener.cloud/gardener/test/env"
)

// TestAgainstAPIServer shows that a real API server understands what a shoot is asked, and that a second look changes nothing.
func TestAgainstAPIServer(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := env.Start(t).WriteKubeconfig(file); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	shoot, err := Connector(clientgoscheme.Scheme, "test")(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	defer shoot.Close()
	if err := shoot.Healthz(t.Context()); err != nil {
		t.Error(err)
	}

	system := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "kube-system", Name: name} }
	config := system("gardener-node-agent-a")
	config.Labels, config.Annotations = map[string]string{"gardener.cloud/role": "operating-system-config"}, map[string]string{"checksum/data-script": "1"}
	pod := &corev1.Pod{ObjectMeta: system("evicted"), Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}, AutomountServiceAccountToken: new(false)}}
	webhook := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "users"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "w.example.com", SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new("https://example.com/")},
			Rules:        []admissionregistrationv1.RuleWithOperations{about("", admissionregistrationv1.Update, "configmaps")},
		}},
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	for _, object := range []client.Object{
		node, &coordinationv1.Lease{ObjectMeta: system("gardener-node-agent-n")}, &corev1.Secret{ObjectMeta: config}, &corev1.ServiceAccount{ObjectMeta: system("default")}, pod, webhook,
	} {
		if err := shoot.Create(t.Context(), object); client.IgnoreAlreadyExists(err) != nil {
			t.Fatalf("create %T: %v", object, err)
		}
	}
	pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, "Evicted"
	if err := shoot.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if err := shoot.ReachNode(t.Context(), "n"); err == nil {
		t.Error("a node was reached that is not there")
	}

	r := &reconciler{Values: Values{Clock: clock.RealClock{}, Config: gardenletconfigv1alpha1.ShootCareControllerConfiguration{WebhookRemediatorEnabled: new(true)}}}
	look := func() *observation {
		t.Helper()
		seen := &observation{access: shoot}
		if err := seen.readWebhooks(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := seen.readNodes(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := r.tidyShoot(t.Context(), seen); err != nil {
			t.Fatal(err)
		}
		return seen
	}
	seen := look()
	if len(seen.nodes) != 1 || len(seen.leases) == 0 || len(seen.configs) != 1 || seen.configs[0].Annotations["checksum/data-script"] != "1" || len(seen.validating) != 1 {
		t.Errorf("%d nodes, %d leases, configs %v, %d webhooks", len(seen.nodes), len(seen.leases), seen.configs, len(seen.validating))
	}
	if err := shoot.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); !apierrors.IsNotFound(err) {
		t.Errorf("the evicted pod is still there: %v", err)
	}
	if err := shoot.Get(t.Context(), client.ObjectKeyFromObject(webhook), webhook); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(new(admissionregistrationv1.Ignore), webhook.Webhooks[0].FailurePolicy); diff != "" || webhook.Annotations["gardener.cloud/warning"] == "" {
		t.Errorf("the webhook is as it was (-want +got):\n%s", diff)
	}
	before := webhook.ResourceVersion
	look()
	if err := shoot.Get(t.Context(), client.ObjectKeyFromObject(webhook), webhook); err != nil || webhook.ResourceVersion != before {
		t.Errorf("a second look has changed the webhook: %v", err)
	}
}
