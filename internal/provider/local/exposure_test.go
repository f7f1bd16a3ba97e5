package local

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	localv1alpha1 "gardener.cloud/gardener/api/provider/local/v1alpha1"
)

func TestEndpointAddresses(t *testing.T) {
	internal := func(address string) corev1.NodeAddress {
		return corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: address}
	}
	for name, tc := range map[string]struct {
		addresses []corev1.NodeAddress
		want      string
	}{
		"an address of a machine": {addresses: []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "a"}, internal("10.1.0.7")}},
		"a name only":             {[]corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "a"}}, "spec.endpoints[0].addresses: Required value"},
		"another pod":             {[]corev1.NodeAddress{internal("10.1.0.8")}, "spec.endpoints[0].addresses[0].address: Invalid value"},
		"a metadata service":      {[]corev1.NodeAddress{internal("169.254.169.254")}, "spec.endpoints[0].addresses[0].address: Invalid value"},
		"an IPv6 address":         {[]corev1.NodeAddress{internal("::ffff:10.1.0.7")}, "spec.endpoints[0].addresses[0].address: Invalid value"},
		"no address":              {[]corev1.NodeAddress{internal("a")}, "spec.endpoints[0].addresses[0].address: Invalid value"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := endpointAddresses([]extensionsv1alpha1.ControlPlaneEndpoint{{NodeName: "n", Addresses: tc.addresses}}, sets.New("10.1.0.7", "2001:db8::7"))
			if tc.want != "" {
				invalid(t, err, tc.want)
				return
			}
			if diff := cmp.Diff([]string{"10.1.0.7"}, got); err != nil || diff != "" {
				t.Errorf("endpointAddresses() (%v, -want +got):\n%s", err, diff)
			}
		})
	}
}

// Only pods that are machines of the shoot, and run, have addresses for a load balancer.
func TestMachineAddresses(t *testing.T) {
	pod := func(namespace, name, ip string, changes ...func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: localv1alpha1.MachineLabels()}}
		p.Status.Phase, p.Status.PodIPs = corev1.PodRunning, []corev1.PodIP{{IP: ip}}
		for _, change := range changes {
			change(p)
		}
		return p
	}
	namespace := localv1alpha1.InfrastructureNamespace("shoot--dev--a")
	c := fake.NewClientBuilder().WithObjects(
		pod(namespace, "machine", "10.1.0.7"),
		pod(namespace, "ended", "10.1.0.8", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }),
		pod(namespace, "bastion", "10.1.0.9", func(p *corev1.Pod) { p.Labels = localv1alpha1.BastionLabels() }),
		pod(localv1alpha1.InfrastructureNamespace("shoot--dev--b"), "machine", "10.1.0.10"),
	).Build()
	got, err := machineAddresses(t.Context(), c, namespace)
	if diff := cmp.Diff(sets.New("10.1.0.7"), got); err != nil || diff != "" {
		t.Errorf("addresses (%v, -want +got):\n%s", err, diff)
	}
}

// The cache has the Services that controllers watch, and no others of the seed.
func TestCacheOfServices(t *testing.T) {
	options := &manager.Options{}
	Component().Options(nil, options)
	var services cache.ByObject
	for object, by := range options.Cache.ByObject {
		if _, ok := object.(*corev1.Service); ok {
			services = by
		}
	}
	for name, tc := range map[string]struct {
		labels map[string]string
		want   bool
	}{
		"bastion": {localv1alpha1.BastionLabels(), true}, "exposure": {localv1alpha1.ExposureLabels(), true}, "other": {map[string]string{"app": "kubernetes"}, false},
	} {
		if services.Label == nil || services.Label.Matches(labels.Set(tc.labels)) != tc.want {
			t.Errorf("the cache has the Service of %s: %t", name, !tc.want)
		}
	}
}
