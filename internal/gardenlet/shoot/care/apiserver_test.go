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
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	"gardener.cloud/gardener/test/env"
)

// TestAgainstAPIServer runs all requests to a shoot against a real API server. A second pass changes nothing.
func TestAgainstAPIServer(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := env.Start(t).WriteKubeconfig(file); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	shootClient, err := Connector(clientgoscheme.Scheme, "test", func(*rest.Config) {})(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	defer shootClient.Close()
	if err := shootClient.Healthz(t.Context()); err != nil {
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
	objects := []client.Object{
		node, &coordinationv1.Lease{ObjectMeta: system("gardener-node-agent-n")}, &corev1.Secret{ObjectMeta: config}, &corev1.ServiceAccount{ObjectMeta: system("default")}, pod, webhook,
	}
	for _, object := range objects {
		if err := shootClient.Create(t.Context(), object); client.IgnoreAlreadyExists(err) != nil {
			t.Fatalf("create %T: %v", object, err)
		}
	}
	pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, "Evicted"
	if err := shootClient.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		awaitCached(t, shootClient, object)
	}
	if err := shootClient.ReachNode(t.Context(), "n"); err == nil {
		t.Error("a node that does not exist was reached")
	}

	r := &reconciler{Values: Values{Clock: clock.RealClock{}, Config: gardenletconfigv1alpha1.ShootCareControllerConfiguration{WebhookRemediatorEnabled: new(true)}}}
	pass := func() *observed {
		t.Helper()
		o := &observed{shootClient: shootClient}
		if err := o.readWebhooks(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := o.readNodes(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := r.cleanUpShoot(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		return o
	}
	o := pass()
	if len(o.nodes) != 1 || len(o.leases) == 0 || len(o.osConfigs) != 1 || o.osConfigs[0].Annotations["checksum/data-script"] != "1" || len(o.validating) != 1 {
		t.Errorf("%d nodes, %d leases, configs %v, %d webhooks", len(o.nodes), len(o.leases), o.osConfigs, len(o.validating))
	}
	if err := shootClient.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); !apierrors.IsNotFound(err) {
		t.Errorf("the evicted pod still exists: %v", err)
	}
	if err := shootClient.Get(t.Context(), client.ObjectKeyFromObject(webhook), webhook); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(new(admissionregistrationv1.Ignore), webhook.Webhooks[0].FailurePolicy); diff != "" || webhook.Annotations["gardener.cloud/warning"] == "" {
		t.Errorf("the webhook was not remediated (-want +got):\n%s", diff)
	}
	before := webhook.ResourceVersion
	awaitCached(t, shootClient, webhook)
	pass()
	if err := shootClient.Get(t.Context(), client.ObjectKeyFromObject(webhook), webhook); err != nil || webhook.ResourceVersion != before {
		t.Errorf("a second pass has changed the webhook: %v", err)
	}
}

// awaitCached waits until the watch cache of the API server, from which the passes read, has the current version of an object.
func awaitCached(t *testing.T, c client.Client, object client.Object) {
	t.Helper()
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
	kind, err := c.GroupVersionKindFor(object)
	if err != nil {
		t.Fatal(err)
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind)
	if err := c.List(t.Context(), list, &client.ListOptions{Raw: &metav1.ListOptions{
		ResourceVersion: object.GetResourceVersion(), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	}}); err != nil {
		t.Fatalf("wait until %s %s is cached: %v", kind.Kind, client.ObjectKeyFromObject(object), err)
	}
}
