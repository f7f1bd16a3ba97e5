package lifecycle

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/pkg/extension"
)

// The first run of a flow ends with the networks that the infrastructure has chosen in the Shoot, the Cluster resource and the Network.
func TestNetworksOfTheInfrastructure(t *testing.T) {
	l, o := newLandscape(t), complete(workers)
	o.Shoot.Spec.Networking, o.Shoot.Status.Networking = &corev1beta1.Networking{Type: new("local")}, nil
	infrastructure := &extensionsv1alpha1.Infrastructure{}
	infrastructure.Namespace, infrastructure.Name = o.Namespace, o.Shoot.Name
	infrastructure.Status.EgressCIDRs = []string{"203.0.113.7/32"}
	infrastructure.Status.Networking = &extensionsv1alpha1.InfrastructureStatusNetworking{
		Nodes: []string{"10.1.0.0/16"}, Pods: []string{"10.3.0.0/16"}, Services: []string{"10.4.0.0/16"},
	}
	if err := errors.Join(l.garden.Create(t.Context(), o.Shoot.DeepCopy()), l.seed.Create(t.Context(), infrastructure)); err != nil {
		t.Fatal(err)
	}
	l.run(t, (*reconciler).reconcileFlow, o, -1)

	want := &corev1beta1.Networking{Type: new("local"), Nodes: new("10.1.0.0/16"), Pods: new("10.3.0.0/16"), Services: new("10.4.0.0/16")}
	used := &corev1beta1.NetworkingStatus{
		Nodes: []string{"10.1.0.0/16"}, Pods: []string{"10.3.0.0/16"}, Services: []string{"10.4.0.0/16"}, EgressCIDRs: []string{"203.0.113.7/32"},
	}
	shoot := &corev1beta1.Shoot{}
	if err := l.garden.Get(t.Context(), client.ObjectKeyFromObject(o.Shoot), shoot); err != nil {
		t.Fatal(err)
	}
	cluster, err := extension.ReadCluster(t.Context(), l.seed, o.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]*corev1beta1.Shoot{"Shoot": shoot, "Cluster": cluster.Shoot} {
		if diff := cmp.Diff(want, got.Spec.Networking); diff != "" {
			t.Errorf("spec.networking of the %s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(used, got.Status.Networking); diff != "" {
			t.Errorf("status.networking of the %s (-want +got):\n%s", name, diff)
		}
	}
	network := &extensionsv1alpha1.Network{}
	if err := l.seed.Get(t.Context(), client.ObjectKeyFromObject(infrastructure), network); err != nil {
		t.Fatal(err)
	}
	if network.Spec.PodCIDR != "10.3.0.0/16" || network.Spec.ServiceCIDR != "10.4.0.0/16" {
		t.Errorf("the Network is %+v", network.Spec)
	}
}

// A shoot is deleted whose infrastructure has never reported the networks.
func TestDeletionWithoutNetworksOfTheInfrastructure(t *testing.T) {
	l, o := newLandscape(t), complete(workers)
	o.Shoot.Status.Networking = nil
	l.run(t, (*reconciler).deletionFlow, o, -1)
}
