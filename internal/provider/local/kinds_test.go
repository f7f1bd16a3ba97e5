package local

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/provider/local/dnsserver"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/pkg/extension"
	"gardener.cloud/gardener/test/golden"
)

func isConfigurationProblem(err error) bool {
	return cmp.Equal(errorcode.Of(err), []corev1beta1.ErrorCode{corev1beta1.ErrorConfigurationProblem})
}

func TestNoConfig(t *testing.T) {
	for raw, fine := range map[string]bool{"": true, "{}": true, `{"apiVersion":"aws/v1","kind":"InfrastructureConfig"}`: false, `[]`: false} {
		if err := noConfig(providerConfig, &runtime.RawExtension{Raw: []byte(raw)}); (err == nil) != fine || err != nil && !isConfigurationProblem(err) {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

func TestDNSRecord(t *testing.T) {
	a := &dnsRecords{dnsserver.New([]string{"local.example"})}
	exists := func() bool {
		_, exists := a.zones.Lookup("a.local.example", dns.TypeA)
		return exists
	}
	record := &extensionsv1alpha1.DNSRecord{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "n"}}
	record.Spec = extensionsv1alpha1.DNSRecordSpec{Name: "a.local.example", RecordType: "A", Values: []string{"10.0.0.1"}}
	record.Spec.Type = Type
	if err := a.Reconcile(t.Context(), record, nil); err != nil || !exists() || *record.Status.Zone != "local.example." {
		t.Errorf("%v, %+v", err, record.Status)
	}
	if !served(record) {
		t.Error("it is not served after a restart")
	}
	record.Status.LastOperation = &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeMigrate}
	if err := a.Migrate(t.Context(), record, nil); err != nil || exists() || served(record) {
		t.Errorf("it has moved, and is still served (%v)", err)
	}
	record.Spec.Name = "a.example.com"
	if err := a.Reconcile(t.Context(), record, nil); !isConfigurationProblem(err) {
		t.Errorf("another zone: %v", err)
	}
}

func TestNetwork(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, resourcesv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	a := &networks{fake.NewClientBuilder().WithScheme(scheme).Build(), "registry.example/flannel:v1"}
	network := &extensionsv1alpha1.Network{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "crazy"}}
	network.Spec.PodCIDR = "10.3.0.0/16"
	if err := a.Reconcile(t.Context(), network, nil); err != nil {
		t.Fatal(err)
	}
	managed := &resourcesv1alpha1.ManagedResource{}
	key := client.ObjectKey{Namespace: namespace, Name: "extension-networking-flannel"}
	if err := a.client.Get(t.Context(), key, managed); err != nil || len(managed.Spec.SecretRefs) != 1 {
		t.Errorf("ManagedResource is %+v, %v", managed.Spec, err)
	}
	if diff := cmp.Diff([]extensionsv1alpha1.IPFamily{"IPv4"}, network.Status.IPFamilies); diff != "" {
		t.Errorf("ipFamilies (-want +got):\n%s", diff)
	}
	for name, end := range map[string]func(context.Context, *extensionsv1alpha1.Network, *extension.Cluster) error{
		"deleted": a.Delete, "deleted by force": a.ForceDelete, "migrated": a.Migrate,
	} {
		if err := a.Reconcile(t.Context(), network, nil); err != nil {
			t.Fatal(err)
		}
		waits(t, end(t.Context(), network, nil), `ManagedResource "extension-networking-flannel" is being deleted`)
		if err := end(t.Context(), network, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	dual := network.DeepCopy()
	dual.Spec.IPFamilies = []extensionsv1alpha1.IPFamily{"IPv4", "IPv6"}
	shoot := &corev1beta1.Shoot{Status: corev1beta1.ShootStatus{Networking: &corev1beta1.NetworkingStatus{Pods: []string{"10.3.0.0/16", "fd00:1::/52"}}}}
	if err := a.Reconcile(t.Context(), dual, &extension.Cluster{Shoot: shoot}); err != nil || len(dual.Status.IPFamilies) != 2 {
		t.Errorf("dual-stack: ipFamilies %v, %v", dual.Status.IPFamilies, err)
	}
	for _, change := range []func(*extensionsv1alpha1.NetworkSpec){
		func(s *extensionsv1alpha1.NetworkSpec) { s.PodCIDR = "fd00::/64" },
		func(s *extensionsv1alpha1.NetworkSpec) { s.IPFamilies = []extensionsv1alpha1.IPFamily{"IPv6", "IPv4"} },
		func(s *extensionsv1alpha1.NetworkSpec) { s.PodCIDR = "10.3.0.0" },
		func(s *extensionsv1alpha1.NetworkSpec) { s.IPFamilies = []extensionsv1alpha1.IPFamily{"IPv4", "IPv6"} },
	} {
		wrong := network.DeepCopy()
		change(&wrong.Spec)
		if err := a.Reconcile(t.Context(), wrong, nil); !isConfigurationProblem(err) {
			t.Errorf("%+v: %v", wrong.Spec, err)
		}
	}
}

func TestContainerRuntime(t *testing.T) {
	r := &extensionsv1alpha1.ContainerRuntime{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "crun-pool"}}
	r.Spec = extensionsv1alpha1.ContainerRuntimeSpec{
		BinaryPath: "/var/bin/containerruntimes",
		WorkerPool: extensionsv1alpha1.ContainerRuntimeWorkerPool{
			Name: "pool", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"worker.gardener.cloud/pool": "pool"}},
		},
	}
	r.Spec.Type = "crun"
	golden.Objects(t, "containerruntime.yaml", append(runtimeInstaller(r, "registry.example/crun:v1"), runtimeClass()))

	c := fake.NewClientBuilder().Build()
	if err := newContainerRuntimes(c, "").Reconcile(t.Context(), r, nil); err == nil {
		t.Error("without an image there is no error")
	}
	r.Spec.ProviderConfig = &runtime.RawExtension{Raw: []byte(`{"kind":"RuntimeConfig"}`)}
	if err := newContainerRuntimes(c, "registry.example/crun:v1").Reconcile(t.Context(), r, nil); !isConfigurationProblem(err) {
		t.Errorf("with a configuration: %v", err)
	}
}
