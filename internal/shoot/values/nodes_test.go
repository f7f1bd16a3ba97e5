package values

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/shoot/observed"
	"gardener.cloud/gardener/internal/shoot/observed/observedtest"
	"gardener.cloud/gardener/internal/stage/infrastructure"
	"gardener.cloud/gardener/internal/stage/stagetest"
)

// The first run, before the status has the networks that the infrastructure has chosen, has the same networks as later ones: pods would be
// replaced otherwise.
func TestAllNetworks(t *testing.T) {
	desired := &corev1beta1.NetworkingStatus{Nodes: []string{"10.0.0.0/16"}, Pods: []string{"10.3.0.0/16"}, Services: []string{"10.4.0.0/16"}}
	chosen := &extensionsv1alpha1.Infrastructure{}
	chosen.Status.Networking = &extensionsv1alpha1.InfrastructureStatusNetworking{Nodes: []string{"10.1.0.0/16"}}
	older := &extensionsv1alpha1.Infrastructure{}
	older.Status.NodesCIDR = new("10.2.0.0/16")
	for name, tc := range map[string]struct {
		status *corev1beta1.NetworkingStatus
		infra  *extensionsv1alpha1.Infrastructure
		want   []string
	}{
		"nothing is chosen":          {desired, nil, []string{"10.0.0.0/16", "10.3.0.0/16", "10.4.0.0/16"}},
		"nodes are chosen":           {desired, chosen, []string{"10.1.0.0/16", "10.3.0.0/16", "10.4.0.0/16"}},
		"nodes are chosen as before": {desired, older, []string{"10.2.0.0/16", "10.3.0.0/16", "10.4.0.0/16"}},
		"the spec has none":          {nil, chosen, []string{"10.1.0.0/16"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := Source{State: &observed.State{Shoot: &corev1beta1.Shoot{Status: corev1beta1.ShootStatus{Networking: tc.status}}}, Infrastructure: &infrastructure.Result{Infrastructure: tc.infra}}
			if diff := cmp.Diff(tc.want, s.allNetworks()); diff != "" {
				t.Errorf("networks (-want +got):\n%s", diff)
			}
		})
	}
}

// All components have the networks that the infrastructure has chosen, in the first run, too.
func TestNetworksOfTheInfrastructure(t *testing.T) {
	clusters, o := stagetest.New(t), observedtest.State()
	o.Shoot.Spec.Kubernetes.Version = "1.36.3"
	o.Shoot.Spec.Networking, o.Shoot.Status.Networking = &corev1beta1.Networking{IPFamilies: []corev1beta1.IPFamily{"IPv6"}}, nil
	s := source(t, clusters, o)
	if o.NetworksKnown() {
		t.Error("networks are known before the infrastructure is reconciled")
	}
	chosen := &extensionsv1alpha1.Infrastructure{}
	chosen.Status.Networking = &extensionsv1alpha1.InfrastructureStatusNetworking{
		Nodes: []string{"2001:db8:1::/64"}, Pods: []string{"2001:db8:2::/56"}, Services: []string{"2001:db8:4::/108"},
	}
	s.Infrastructure.Infrastructure = chosen
	apiServer, err := s.KubeAPIServer(1, kubeapiserver.Files{})
	if err != nil {
		t.Fatal(err)
	}
	manager, err := s.KubeControllerManager(1)
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := s.KubeProxy(nil)
	if err != nil {
		t.Fatal(err)
	}
	system, err := s.CoreDNS()
	if err != nil {
		t.Fatal(err)
	}
	local, err := s.NodeLocalDNS()
	if err != nil {
		t.Fatal(err)
	}
	configs, err := s.OperatingSystemConfigs()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]any{
		"kube-apiserver": apiServer.ServiceNetworks, "address": apiServer.AdvertiseAddress, "kube-controller-manager": manager.PodNetworks,
		"its Services": manager.ServiceNetworks, "kube-proxy": fmt.Sprint(proxy.PodNetworks), "coredns": fmt.Sprint(system.Addresses),
		"node-local-dns": fmt.Sprint(local.ClusterDNS), "kubelet": fmt.Sprint(configs.ClusterDNS), "shoot-info": s.System(nil).Info.NodeNetworks,
	}
	services := []string{"2001:db8:4::/108"}
	want := map[string]any{
		"kube-apiserver": services, "address": "fd8f:6d53:b97a:1::1", "kube-controller-manager": []string{"2001:db8:2::/56"}, "its Services": services,
		"kube-proxy": "[2001:db8:2::/56]", "coredns": "[2001:db8:4::a]", "node-local-dns": "[2001:db8:4::a]", "kubelet": "[2001:db8:4::a]",
		"shoot-info": []string{"2001:db8:1::/64"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("networks of components (-want +got):\n%s", diff)
	}
}

func TestCores(t *testing.T) {
	o := observedtest.State()
	o.CloudProfile = &corev1beta1.CloudProfile{}
	o.CloudProfile.Spec.MachineTypes = []corev1beta1.MachineType{{Name: "small", CPU: resource.MustParse("2")}, {Name: "large", CPU: resource.MustParse("64")}}
	o.Shoot.Spec.Provider.Workers = []corev1beta1.Worker{
		{Machine: corev1beta1.Machine{Type: "small"}, Minimum: 3, Maximum: 9},
		{Machine: corev1beta1.Machine{Type: "large"}, Minimum: 1},
		{Machine: corev1beta1.Machine{Type: "unknown"}, Minimum: 7},
	}
	if got := cores(o); got != 70 {
		t.Errorf("cores() = %d", got)
	}
}
