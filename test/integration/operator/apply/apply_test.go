// Package apply tests how gardener-operator and the API servers go together with tools that apply manifests from Git.
package apply

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	operatorconfigv1alpha1 "gardener.cloud/gardener/api/config/operator/v1alpha1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/component/crds"
	"gardener.cloud/gardener/internal/operator"
	"gardener.cloud/gardener/test/env"
	"gardener.cloud/gardener/test/ports"
)

const (
	extensionManifest = `
apiVersion: operator.gardener.cloud/v1alpha1
kind: Extension
metadata: {name: applied}
spec:
  resources: [{kind: Worker, type: local}, {kind: Extension, type: a, autoEnable: [shoot]}]
  deployment: {extension: {helm: {ociRepository: {ref: "registry.example.com/chart:v1"}}, values: {a: b}}}
`
	gardenletManifest = `
apiVersion: seedmanagement.gardener.cloud/v1alpha1
kind: Gardenlet
metadata: {name: applied, namespace: garden}
spec:
  deployment: {replicaCount: 1, helm: {ociRepository: {ref: "registry.example.com/chart:v1"}}}
  config:
    apiVersion: gardenlet.config.gardener.cloud/v1alpha1
    kind: GardenletConfiguration
    seedConfig:
      metadata: {name: applied}
      spec:
        provider: {type: local, region: local, zones: ["0"]}
        dns:
          provider: {type: local, credentialsRef: {apiVersion: v1, kind: Secret, namespace: garden, name: dns}}
          internal: {type: local, domain: internal.example.com, credentialsRef: {apiVersion: v1, kind: Secret, namespace: garden, name: dns}}
        ingress: {domain: ingress.example.com, controller: {kind: nginx}}
        networks: {nodes: 10.0.0.0/16, pods: 10.1.0.0/16, services: 10.2.0.0/16}
`
)

// applied checks how tools that apply manifests from Git see an object: applying the same again writes nothing, and another tool may set more fields,
// also those that have a default, without a conflict. Conflicts are for fields that two tools set.
func (r *cluster) applied(t *testing.T, manifest map[string]any, more, conflicting string, read []string, want any) {
	t.Helper()
	apply := func(owner string, content map[string]any) (*unstructured.Unstructured, error) {
		object := &unstructured.Unstructured{Object: content}
		object = object.DeepCopy()
		if err := r.WithWatch.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(owner)); err != nil {
			return nil, err
		}
		stored := &unstructured.Unstructured{}
		stored.SetGroupVersionKind(object.GroupVersionKind())
		return stored, r.Get(t.Context(), client.ObjectKeyFromObject(object), stored)
	}
	must := func(owner string, content map[string]any) *unstructured.Unstructured {
		t.Helper()
		stored, err := apply(owner, content)
		if err != nil {
			t.Fatalf("%s applies: %v", owner, err)
		}
		return stored
	}
	part := func(text string) map[string]any {
		t.Helper()
		object := &unstructured.Unstructured{Object: map[string]any{}}
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			t.Fatal(err)
		}
		whole := &unstructured.Unstructured{Object: manifest}
		object.SetGroupVersionKind(whole.GroupVersionKind())
		object.SetName(whole.GetName())
		object.SetNamespace(whole.GetNamespace())
		return object.Object
	}
	first := must("flux", manifest)
	if again := must("flux", manifest); again.GetGeneration() != first.GetGeneration() || !sameSpec(t, first, again) {
		t.Errorf("applying it again changes the generation from %d to %d", first.GetGeneration(), again.GetGeneration())
	}
	must("other", part(more))
	// What the other tool has set is not reset to the default.
	last := must("flux", manifest)
	if got, _, err := unstructured.NestedFieldNoCopy(last.Object, read...); err != nil || got != want {
		t.Errorf("%v is %v (%v), want %v of the other tool", read, got, err, want)
	}
	if again := must("flux", manifest); again.GetGeneration() != last.GetGeneration() || !sameSpec(t, last, again) {
		t.Error("applying it once more changes it")
	}
	if _, err := apply("other", part(conflicting)); !apierrors.IsConflict(err) {
		t.Errorf("two tools set the same field: got error %v, want a conflict", err)
	}
	if stored := must("flux", manifest); stored.GetGeneration() != last.GetGeneration() {
		t.Error("a conflict changes it")
	}
}

func sameSpec(t *testing.T, a, b *unstructured.Unstructured) bool {
	t.Helper()
	encode := func(u *unstructured.Unstructured) string {
		data, err := json.Marshal(u.Object["spec"])
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	return encode(a) == encode(b)
}

func manifest(t *testing.T, text string) map[string]any {
	t.Helper()
	content := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &content); err != nil {
		t.Fatal(err)
	}
	return content
}

// cluster is a runtime cluster with gardener-operator, and the virtual garden too.
type cluster struct{ client.WithWatch }

func start(t *testing.T) *cluster {
	t.Helper()
	e := env.Start(t, env.Lenient())
	if err := errors.Join(operatorv1alpha1.AddToScheme(e.Scheme), apiextensionsv1.AddToScheme(e.Scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(e.Config, client.Options{Scheme: e.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := crds.Operator()
	if err != nil {
		t.Fatal(err)
	}
	if err := crds.Deploy(t.Context(), c, "test", definitions...); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: constants.GardenNamespace}}); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := e.WriteKubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	free := ports.Free(t, 3)
	config := &operatorconfigv1alpha1.OperatorConfiguration{}
	config.RuntimeClientConnection.Kubeconfig = kubeconfig
	config.Server.Webhooks = operatorconfigv1alpha1.Server{BindAddress: "127.0.0.1", Port: free[0]}
	config.Server.HealthProbes = &operatorconfigv1alpha1.Server{BindAddress: "127.0.0.1", Port: free[1]}
	config.Server.Metrics = &operatorconfigv1alpha1.Server{BindAddress: "127.0.0.1", Port: free[2]}
	operatorconfigv1alpha1.SetDefaults(config)
	t.Setenv(operator.WebhookModeEnv, "url")
	t.Setenv(operator.WebhookURLEnv, net.JoinHostPort("127.0.0.1", strconv.Itoa(free[0])))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- operator.Component().Run(ctx, config, logr.Discard()) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil && !t.Failed() {
			t.Errorf("gardener-operator: %v", err)
		}
	})
	env.Await(t, c, env.Named[*admissionregistrationv1.MutatingWebhookConfiguration]("", operator.Name), env.Exists)
	env.Await(t, c, env.Named[*admissionregistrationv1.ValidatingWebhookConfiguration]("", operator.Name), env.Exists)
	return &cluster{c}
}

// Each kind is applied by two tools, while webhooks set defaults and controllers write finalizers.
func TestApplyByTwo(t *testing.T) {
	r := start(t)
	data, err := os.ReadFile("../../../../internal/validation/operator/testdata/garden.yaml")
	if err != nil {
		t.Fatal(err)
	}
	garden := manifest(t, string(data))
	r.applied(t, garden,
		"spec: {virtualCluster: {kubernetes: {kubeAPIServer: {requests: {maxMutatingInflight: 300}}}}}",
		"spec: {virtualCluster: {gardener: {clusterIdentity: other}}}",
		[]string{"spec", "virtualCluster", "kubernetes", "kubeAPIServer", "requests", "maxMutatingInflight"}, int64(300))

	r.applied(t, manifest(t, extensionManifest),
		"spec: {deployment: {extension: {injectGardenKubeconfig: false}}}",
		"spec: {deployment: {extension: {helm: {ociRepository: {ref: other}}}}}",
		[]string{"spec", "deployment", "extension", "injectGardenKubeconfig"}, false)

	r.applied(t, manifest(t, gardenletManifest),
		"spec: {deployment: {revisionHistoryLimit: 5}}",
		"spec: {deployment: {replicaCount: 2}}",
		[]string{"spec", "deployment", "revisionHistoryLimit"}, int64(5))
}
