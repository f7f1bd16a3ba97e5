package charts_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/component-helpers/auth/rbac/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	providerlocalconfigv1alpha1 "gardener.cloud/gardener/api/config/providerlocal/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/charts"
	"gardener.cloud/gardener/internal/configfile"
	"gardener.cloud/gardener/internal/provider/local"
	configvalidation "gardener.cloud/gardener/internal/validation/config"
	"gardener.cloud/gardener/pkg/helm"
	"gardener.cloud/gardener/test/golden"
)

// render renders the chart as gardenlet does.
func render(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	return renderWith(t, map[string]any{"clusterIPs": map[string]any{"local": "10.2.0.53"}})
}

func renderWith(t *testing.T, dns map[string]any) []*unstructured.Unstructured {
	t.Helper()
	return renderIn(t, "extension-provider-local-abcde", map[string]any{
		"image": "registry.example/gardener:v1", "dns": dns,
		"gardener": map[string]any{"seed": map[string]any{"name": "local"}},
		"images":   map[string]any{"flannel": "registry.example/flannel:v1", "crun": "registry.example/crun:v1", "localStorage": "registry.example/local-storage:v1"},
	})
}

// renderGarden renders the chart as gardener-operator does.
func renderGarden(t *testing.T, enabled any) []*unstructured.Unstructured {
	t.Helper()
	return renderIn(t, "runtime-extension-provider-local", map[string]any{
		"image":    "registry.example/gardener:v1",
		"dns":      map[string]any{"clusterIP": "10.2.0.53", "nodePort": 30053},
		"gardener": map[string]any{"runtimeCluster": map[string]any{"enabled": enabled, "priorityClassName": "gardener-garden-system-200"}},
	})
}

func renderIn(t *testing.T, namespace string, values map[string]any) []*unstructured.Unstructured {
	t.Helper()
	return renderChart(t, charts.ProviderLocal, "provider-local", namespace, values)
}

func renderChart(t *testing.T, chart, release, namespace string, values map[string]any) []*unstructured.Unstructured {
	t.Helper()
	archive, err := charts.Archive(chart)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := helm.Render(archive, helm.Release{
		Name: release, Namespace: namespace, Kubernetes: version.Info{GitVersion: "v1.36.3", Major: "1", Minor: "36"}, Values: values,
	})
	if err != nil {
		t.Fatal(err)
	}
	return rendered
}

func TestProviderLocal(t *testing.T) {
	archive, err := charts.Archive(charts.ProviderLocal)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := charts.Archive(charts.ProviderLocal); err != nil || !bytes.Equal(archive, again) {
		t.Errorf("the chart differs the second time (%v)", err)
	}
	golden.Objects(t, "provider-local.yaml", checked(t, render(t)))
}

// gardener-operator renders both charts of an admission controller with the same values, and adds its own.
func TestProviderLocalAdmission(t *testing.T) {
	values := func(gardener map[string]any) map[string]any {
		return map[string]any{"image": "registry.example/gardener:v1", "replicas": 2, "gardener": gardener}
	}
	runtimeObjects := renderChart(t, charts.ProviderLocalAdmissionRuntime, "provider-local", "garden", values(map[string]any{
		"runtimeCluster": map[string]any{"priorityClassName": "gardener-garden-system-400"},
		"virtualCluster": map[string]any{"enabled": true, "namespace": "extension-provider-local"},
	}))
	virtualObjects := renderChart(t, charts.ProviderLocalAdmissionApplication, "provider-local", "extension-provider-local", values(map[string]any{
		"virtualCluster": map[string]any{"enabled": true, "serviceAccount": map[string]any{"name": "extension-admission-provider-local", "namespace": "kube-system"}},
	}))
	for name, rendered := range map[string][]*unstructured.Unstructured{"runtime": runtimeObjects, "application": virtualObjects} {
		var objects []client.Object
		for _, object := range rendered {
			objects = append(objects, object)
		}
		golden.Objects(t, "provider-local-admission-"+name+".yaml", objects)
	}
	// Who handles requests of users must not read the Secrets of the namespace garden.
	for _, object := range runtimeObjects {
		if object.GroupVersionKind().Group == rbacv1.GroupName {
			t.Errorf("it has permissions in the runtime cluster: %s %s", object.GetKind(), object.GetName())
		}
	}
}

func TestProviderHosts(t *testing.T) {
	var objects []client.Object
	definitions := 0
	for _, object := range renderHosts(t, "extension-provider-hosts-abcde", map[string]any{"seed": map[string]any{"name": "local"}}) {
		if object.GetKind() != "CustomResourceDefinition" {
			objects = append(objects, object)
			continue
		}
		definitions++
		if object.GetAnnotations()[resourcesv1alpha1.KeepObject] != "true" {
			t.Errorf("%s is deleted with the extension, and the inventory with it", object.GetName())
		}
	}
	if definitions != 4 {
		t.Errorf("there are %d definitions", definitions)
	}
	golden.Objects(t, "provider-hosts.yaml", objects)
}

// A garden with its DNS records or backups has a release of its own, without an inventory. In a cluster that is a seed too, they have no object in common.
func TestProviderHostsOfGarden(t *testing.T) {
	ofGarden, objects := map[string]bool{}, []client.Object(nil)
	for _, object := range renderHosts(t, "runtime-extension-provider-hosts", map[string]any{
		"runtimeCluster": map[string]any{"enabled": "true", "priorityClassName": "gardener-garden-system-200"},
	}) {
		ofGarden[keyOf(object)] = true
		objects = append(objects, object)
	}
	golden.Objects(t, "provider-hosts-garden.yaml", objects)
	for _, object := range renderHosts(t, "extension-provider-hosts-abcde", nil) {
		if ofGarden[keyOf(object)] {
			t.Errorf("%s is in both releases", keyOf(object))
		}
	}
}

// renderHosts renders the chart with what gardenlet or gardener-operator adds.
func renderHosts(t *testing.T, namespace string, gardener map[string]any) []*unstructured.Unstructured {
	t.Helper()
	return renderChart(t, charts.ProviderHosts, "provider-hosts", namespace, map[string]any{"image": "registry.example/gardener:v1", "gardener": gardener})
}

func keyOf(object client.Object) string {
	return fmt.Sprint(object.GetObjectKind().GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(object))
}

// checked returns objects whose configuration of provider-local is valid.
func checked(t *testing.T, rendered []*unstructured.Unstructured) []client.Object {
	t.Helper()
	var objects []client.Object
	for _, object := range rendered {
		objects = append(objects, object)
		if object.GetKind() != "ConfigMap" {
			continue
		}
		data := object.Object["data"].(map[string]any)
		kind := configfile.Kind[providerlocalconfigv1alpha1.ProviderLocalConfiguration]{
			AddToScheme: providerlocalconfigv1alpha1.AddToScheme, Validate: configvalidation.ValidateProviderLocal,
		}
		if _, err := kind.Decode([]byte(data["config.yaml"].(string))); err != nil {
			t.Errorf("the configuration of provider-local is invalid: %v", err)
		}
	}
	return objects
}

// In the runtime cluster of a garden, which may be a seed too, there are two releases: they have no object in common.
func TestProviderLocalOfGarden(t *testing.T) {
	objects := checked(t, renderGarden(t, "true"))
	golden.Objects(t, "provider-local-garden.yaml", objects)
	if diff := cmp.Diff(objects, checked(t, renderGarden(t, true))); diff != "" {
		t.Errorf("with a boolean (-string +boolean):\n%s", diff)
	}
	ofGarden := map[string]bool{}
	for _, object := range objects {
		ofGarden[keyOf(object)] = true
	}
	for _, object := range renderWith(t, map[string]any{"servedByGarden": []any{"local"}, "clusterIPs": map[string]any{"other": "10.2.0.53"}, "nodePort": 30053}) {
		if ofGarden[keyOf(object)] {
			t.Errorf("%s is in both releases", keyOf(object))
		}
		if object.GetKind() == "Service" && object.GetName() == "dns" {
			t.Error("the seed has a Service with the port of the garden's")
		}
	}
}

// With several seeds, each has an address of its own for its DNS server, and other clusters reach it by a port of the nodes.
func TestServiceForOtherClusters(t *testing.T) {
	for _, object := range renderWith(t, map[string]any{"clusterIPs": map[string]any{"other": "10.2.0.53"}, "nodePort": 30053}) {
		if object.GetKind() != "Service" || object.GetName() != "dns" {
			continue
		}
		service := &corev1.Service{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, service); err != nil {
			t.Fatal(err)
		}
		if service.Spec.Type != corev1.ServiceTypeNodePort || service.Spec.ClusterIP != "" {
			t.Errorf("the Service of a seed without an address has type %q and address %q", service.Spec.Type, service.Spec.ClusterIP)
		}
		for _, port := range service.Spec.Ports {
			if port.NodePort != 30053 {
				t.Errorf("port %q has port %d of the nodes", port.Name, port.NodePort)
			}
		}
		return
	}
	t.Error("the chart has no Service")
}

// RBAC does not allow to grant permissions that one does not have, so provider-local needs all those that it lets machine-controller-managers have.
func TestProviderLocalMayGrant(t *testing.T) {
	granted := &rbacv1.ClusterRole{}
	for _, object := range render(t) {
		if object.GetKind() == "ClusterRole" {
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, granted); err != nil {
				t.Fatal(err)
			}
		}
	}
	role, _ := local.DriverRole("shoot--dev--crazy", "infra-shoot--dev--crazy")
	if covered, missing := validation.Covers(granted.Rules, role.Rules); !covered {
		t.Errorf("provider-local lacks permissions: %v", missing)
	}
}

func TestArchiveOfUnknownChart(t *testing.T) {
	if _, err := charts.Archive("nothing"); err == nil {
		t.Error("an unknown chart has an archive")
	}
}
