package values

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcemanagerconfigv1alpha1 "gardener.cloud/gardener/api/config/resourcemanager/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/imagevector"
	"gardener.cloud/gardener/internal/shoot/observed"
	"gardener.cloud/gardener/internal/shoot/observed/observedtest"
	"gardener.cloud/gardener/internal/stage/credentials"
	"gardener.cloud/gardener/internal/stage/infrastructure"
	"gardener.cloud/gardener/internal/stage/nodes"
	"gardener.cloud/gardener/internal/stage/stagetest"
)

// source returns a source of values with credentials and an Infrastructure.
func source(t *testing.T, clusters *stagetest.Clusters, o *observed.State) Source {
	t.Helper()
	images, err := imagevector.Default()
	if err != nil {
		t.Fatal(err)
	}
	set := credentials.New(Credentials(o, clusters.Seed, clock.RealClock{}))
	stagetest.Generate(t, set)
	return Source{State: o, Credentials: set, Infrastructure: &infrastructure.Result{Infrastructure: &extensionsv1alpha1.Infrastructure{}}, Images: images}
}

// deployed returns the Deployments of system components.
func deployed(t *testing.T) map[string]*appsv1.Deployment {
	t.Helper()
	clusters, o := stagetest.New(t), observedtest.State()
	o.Shoot.Spec.Networking = &corev1beta1.Networking{
		Nodes: new("10.250.0.0/16"), Pods: new("100.96.0.0/11"), Services: new("100.64.0.0/13"),
	}
	s := source(t, clusters, o)
	tasks := nodes.Tasks(nodes.Inputs{
		Run: clusters.Run(), TunnelAgent: s.TunnelAgent, APIServerProxy: s.APIServerProxy, CoreDNS: s.CoreDNS, MetricsServer: s.MetricsServer,
		NodeProblemDetector: s.NodeProblemDetector,
	})
	if err := stagetest.RunTask(t.Context(), t, tasks, "system-components"); err != nil {
		t.Fatal(err)
	}
	secrets := &corev1.SecretList{}
	if err := clusters.Seed.List(t.Context(), secrets, client.InNamespace(o.Namespace)); err != nil {
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

// If all pools have taints, the webhook adds tolerations to pods of system components, which it selects by a label.
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
	o := observedtest.State()
	o.Shoot = shoot
	values, err := source(t, stagetest.New(t), o).ResourceManager(1)
	if err != nil {
		t.Fatal(err)
	}
	got := values.Config.Webhooks.SystemComponentsConfig.PodTolerations
	if diff := cmp.Diff(want, got[1:]); diff != "" { // the first one is always there
		t.Errorf("tolerations (-want +got):\n%s", diff)
	}
}

// The delay of node agents is what the shoot owner has set.
func TestNodeAgentDelay(t *testing.T) {
	for value, want := range map[string]time.Duration{"": 5 * time.Minute, "0": 0, "600": 10 * time.Minute} {
		o := observedtest.State()
		o.Shoot.Annotations = map[string]string{constants.ShootCloudConfigExecutionMaxDelaySeconds: value}
		o.Shoot.Spec.Provider.Workers = []corev1beta1.Worker{{Name: "a"}}
		values, err := source(t, stagetest.New(t), o).ResourceManager(1)
		if err != nil {
			t.Fatal(err)
		}
		resourcemanagerconfigv1alpha1.SetDefaults(&values.Config)
		if got := values.Config.Controllers.NodeAgentReconciliationDelay.MaxDelay.Duration; got != want {
			t.Errorf("%q: gardener-resource-manager distributes node agents over %s, want %s", value, got, want)
		}
	}
}

// Pods that have to be in each zone would stay pending if they may not run in one of them.
func TestSystemZones(t *testing.T) {
	o := observedtest.State()
	o.Shoot.Spec.Provider.Workers = []corev1beta1.Worker{
		{Name: "a", Maximum: 1, Zones: []string{"z1"}},
		{Name: "empty", Zones: []string{"z3"}},
		{Name: "b", Maximum: 1, Zones: []string{"z2"}, SystemComponents: &corev1beta1.WorkerSystemComponents{}},
	}
	values, err := source(t, stagetest.New(t), o).System(nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"z1"}, values.Zones); diff != "" {
		t.Errorf("zones (-want +got):\n%s", diff)
	}
}
