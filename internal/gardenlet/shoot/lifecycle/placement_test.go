package lifecycle

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/gardenlet/shoot/credentials"
)

// deployed returns the Deployments in the shoot that run on nodes.
func deployed(t *testing.T) map[string]*appsv1.Deployment {
	t.Helper()
	s, w := newStage(t), example()
	w.shoot.Spec.Networking = &corev1beta1.Networking{
		Nodes: new("10.250.0.0/16"), Pods: new("100.96.0.0/11"), Services: new("100.64.0.0/13"),
	}
	h := &hosted{reconciler: s.reconciler, world: w, shootClient: s.shoot}
	set, err := credentials.Open(t.Context(), h.credentialValues())
	if err != nil {
		t.Fatal(err)
	}
	h.set = set
	if err := errors.Join(set.Etcd(t.Context()), set.Rest(t.Context())); err != nil {
		t.Fatal(err)
	}
	if err := h.deploySystemComponents(t.Context()); err != nil {
		t.Fatal(err)
	}
	secrets := &corev1.SecretList{}
	if err := s.seed.List(t.Context(), secrets, client.InNamespace(w.namespace)); err != nil {
		t.Fatal(err)
	}
	all := map[string]*appsv1.Deployment{}
	for _, secret := range secrets.Items {
		manifests := yaml.NewYAMLOrJSONDecoder(brotli.NewReader(bytes.NewReader(secret.Data[resourcesv1alpha1.CompressedDataKey])), 4096)
		for secret.Data[resourcesv1alpha1.CompressedDataKey] != nil {
			var raw json.RawMessage
			if err := manifests.Decode(&raw); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			deployment := &appsv1.Deployment{}
			if meta := (metav1.TypeMeta{}); json.Unmarshal(raw, &meta) != nil || meta.Kind != "Deployment" {
				continue
			}
			if err := json.Unmarshal(raw, deployment); err != nil {
				t.Fatal(err)
			}
			all[deployment.Name] = deployment
		}
	}
	return all
}

// If all pools have taints, the webhook is what gets system components onto their nodes, and it knows them by a label.
func TestSystemComponentsRunOnTaintedNodes(t *testing.T) {
	all := deployed(t)
	for _, name := range []string{"coredns", "metrics-server", "vpn-shoot"} {
		if all[name] == nil {
			t.Errorf("%s is not deployed", name)
		}
	}
	for name, deployment := range all {
		if deployment.Spec.Template.Labels[resourcesv1alpha1.ManagedBy] != resourcesv1alpha1.GardenerManager {
			t.Errorf("pods of %s stay pending", name)
		}
	}
}

func TestSystemTolerations(t *testing.T) {
	taint := func(value string) corev1.Taint {
		return corev1.Taint{Key: "for", Value: value, Effect: corev1.TaintEffectNoSchedule}
	}
	shoot := &corev1beta1.Shoot{}
	shoot.Spec.Provider.Workers = []corev1beta1.Worker{
		{Name: "a", Maximum: 1, Taints: []corev1.Taint{taint("a"), taint("b")}},
		{Name: "b", Maximum: 1, Taints: []corev1.Taint{taint("b")}, SystemComponents: &corev1beta1.WorkerSystemComponents{Allow: true}},
		{Name: "c", Maximum: 1, Taints: []corev1.Taint{taint("c")}, SystemComponents: &corev1beta1.WorkerSystemComponents{}},
	}
	want := []corev1.Toleration{
		{Key: "for", Operator: corev1.TolerationOpEqual, Value: "a", Effect: corev1.TaintEffectNoSchedule},
		{Key: "for", Operator: corev1.TolerationOpEqual, Value: "b", Effect: corev1.TaintEffectNoSchedule},
	}
	h := &hosted{reconciler: newStage(t).reconciler, world: example()}
	h.shoot = shoot
	set, err := credentials.Open(t.Context(), h.credentialValues())
	if err != nil {
		t.Fatal(err)
	}
	h.set = set
	values, err := h.resourceManagerValues(1)
	if err != nil {
		t.Fatal(err)
	}
	got := values.Config.Webhooks.SystemComponentsConfig.PodTolerations
	if diff := cmp.Diff(want, got[1:]); diff != "" { // the first one is always there
		t.Errorf("tolerations (-want +got):\n%s", diff)
	}
}

// Pods that have to be in each zone would stay pending if they may not run in one of them.
func TestSystemZones(t *testing.T) {
	s, w := newStage(t), example()
	w.shoot.Spec.Provider.Workers = []corev1beta1.Worker{
		{Name: "a", Maximum: 1, Zones: []string{"z1"}},
		{Name: "empty", Zones: []string{"z3"}},
		{Name: "b", Maximum: 1, Zones: []string{"z2"}, SystemComponents: &corev1beta1.WorkerSystemComponents{}},
	}
	h := &hosted{reconciler: s.reconciler, world: w, shootClient: s.shoot}
	set, err := credentials.Open(t.Context(), h.credentialValues())
	if err != nil {
		t.Fatal(err)
	}
	h.set = set
	values, err := h.systemValues(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"z1"}, values.Zones); diff != "" {
		t.Errorf("zones (-want +got):\n%s", diff)
	}
}
