package values

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/imagevector"
	"gardener.cloud/gardener/internal/component/clusterautoscaler"
	"gardener.cloud/gardener/internal/shoot/observed/observedtest"
	"gardener.cloud/gardener/internal/stage/credentials"
	"gardener.cloud/gardener/internal/stage/stagetest"
)

func TestMaxNodesTotal(t *testing.T) {
	networks := func(pods, nodes []string) corev1beta1.NetworkingStatus {
		return corev1beta1.NetworkingStatus{Pods: pods, Nodes: nodes}
	}
	size := func(four int32) *corev1beta1.KubeControllerManagerConfig {
		return &corev1beta1.KubeControllerManagerConfig{NodeCIDRMaskSize: &four}
	}
	limits := func(nodes int32) *corev1beta1.Limits { return &corev1beta1.Limits{MaxNodesTotal: &nodes} }
	for name, tc := range map[string]struct {
		networks corev1beta1.NetworkingStatus
		config   *corev1beta1.KubeControllerManagerConfig
		limits   *corev1beta1.Limits
		machines int
		want     int64
	}{
		"nothing is known":                   {},
		"pods":                               {networks: networks([]string{"10.0.0.0/16"}, []string{"10.8.0.0/16"}), config: size(24), want: 256},
		"pods, a small range for each node":  {networks: networks([]string{"10.0.0.0/16"}, nil), config: size(26), want: 1024},
		"pods, by default":                   {networks: networks([]string{"10.0.0.0/20"}, nil), want: 16},
		"pods of one node":                   {networks: networks([]string{"10.0.0.0/24"}, nil), config: size(24), want: 1},
		"nodes":                              {networks: networks([]string{"10.0.0.0/11"}, []string{"10.64.0.0/24"}), config: size(24), want: 254},
		"nodes in two ranges":                {networks: networks(nil, []string{"10.64.0.0/24", "10.65.0.0/24"}), want: 508},
		"nodes, a range without addresses":   {networks: networks([]string{"10.0.0.0/16"}, []string{"10.64.0.0/31"}), config: size(24), want: 256},
		"IPv6":                               {networks: networks([]string{"fd00::/56"}, []string{"fd01::/64"}), config: size(64), want: 256},
		"IPv6, all addresses are for nodes":  {networks: networks(nil, []string{"fd01::/120"}), want: 256},
		"IPv6, more than a number can be":    {networks: networks([]string{"fd00::/48"}, []string{"fd01::/8", "fd02::/8"}), config: size(112), want: 0},
		"both, the pods of IPv4 count":       {networks: networks([]string{"fd00::/60", "10.0.0.0/16"}, []string{"10.64.0.0/16"}), config: size(24), want: 256},
		"both, every node has two addresses": {networks: networks(nil, []string{"fd01::/124", "10.64.0.0/24"}), want: 16},
		"the CloudProfile":                   {networks: networks([]string{"10.0.0.0/16"}, nil), config: size(24), limits: limits(100), want: 100},
		"the CloudProfile is no limit":       {networks: networks([]string{"10.0.0.0/16"}, nil), config: size(24), limits: limits(1000), want: 256},
		"the CloudProfile, later":            {networks: networks([]string{"10.0.0.0/16"}, nil), config: size(24), limits: limits(100), machines: 120, want: 120},
		"pods, more machines":                {networks: networks([]string{"10.0.0.0/16"}, nil), config: size(24), limits: limits(100), machines: 300, want: 256},
		"only the CloudProfile":              {limits: limits(3), want: 3},
	} {
		t.Run(name, func(t *testing.T) {
			if got := maxNodesTotal(tc.networks, tc.config, tc.limits, tc.machines); got != tc.want {
				t.Errorf("maxNodesTotal() = %d, want %d", got, tc.want)
			}
		})
	}
}

func TestClusterAutoscaler(t *testing.T) {
	images, err := imagevector.Default()
	if err != nil {
		t.Fatal(err)
	}
	// The original has an image for each minor version.
	original, err := imagevector.Read([]byte(`images: [{name: cluster-autoscaler, repository: registry.example/autoscaler, tag: v1.35.0, targetVersion: "1.35.x"}]`))
	if err != nil {
		t.Fatal(err)
	}
	set := credentials.New(credentials.Values{SeedAPI: fake.NewFakeClient(), Clock: clocktesting.NewFakePassiveClock(metav1.Now().Time)})
	generated := stagetest.Generate(t, set)
	deployments := []extensionsv1alpha1.MachineDeployment{{Name: "a", Minimum: 1, Maximum: 3}}
	for version, image := range map[string]string{
		"1.36.3": "registry.local.gardener.cloud/gardener/cluster-autoscaler:0.1.0", "1.35.4": "registry.example/autoscaler:v1.35.0",
	} {
		o := observedtest.State()
		o.Shoot.Spec.Kubernetes = corev1beta1.Kubernetes{Version: version, ClusterAutoscaler: &corev1beta1.ClusterAutoscaler{}}
		o.CloudProfile = &corev1beta1.CloudProfile{Spec: corev1beta1.CloudProfileSpec{Limits: &corev1beta1.Limits{MaxNodesTotal: new(int32(7))}}}
		got, err := Source{State: o, Credentials: set, Images: images.Overwrite(original)}.ClusterAutoscaler(1, deployments, 9)
		if err != nil {
			t.Fatal(err)
		}
		want := clusterautoscaler.Values{
			Namespace: "shoot--dev--crazy-botany", Image: image, Replicas: 1, GenericKubeconfig: generated.Name("generic-token-kubeconfig"),
			KubernetesVersion: version, Config: o.Shoot.Spec.Kubernetes.ClusterAutoscaler, MachineDeployments: deployments, MaxNodesTotal: 9,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("values for %s (-want +got):\n%s", version, diff)
		}
	}
}
