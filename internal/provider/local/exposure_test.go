package local

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
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
		"a metadata service":      {[]corev1.NodeAddress{internal("169.254.169.254")}, "spec.endpoints[0].addresses[0].address: Invalid value"},
		"an IPv6 address":         {[]corev1.NodeAddress{internal("::ffff:10.1.0.7")}, "spec.endpoints[0].addresses[0].address: Invalid value"},
		"no address":              {[]corev1.NodeAddress{internal("a")}, "spec.endpoints[0].addresses[0].address: Invalid value"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := endpointAddresses([]extensionsv1alpha1.ControlPlaneEndpoint{{NodeName: "n", Addresses: tc.addresses}}, []string{"10.1.0.0/16"})
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
