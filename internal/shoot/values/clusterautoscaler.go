package values

import (
	"math"
	"net/netip"

	"k8s.io/utils/ptr"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/component/clusterautoscaler"
)

// maskSizeIPv4 and maskSizeIPv6 are the prefix lengths of nodes' pod ranges that kube-controller-manager has without a setting.
const maskSizeIPv4, maskSizeIPv6 = 24, 64

// ClusterAutoscaler returns the values of the cluster-autoscaler with a number of pods, given the MachineDeployments that the extension has reported, and how
// many machines there are.
func (s Source) ClusterAutoscaler(replicas int32, deployments []extensionsv1alpha1.MachineDeployment, machines int) (clusterautoscaler.Values, error) {
	image, set, err := s.imageAndCredentials(clusterautoscaler.Name)
	if err != nil {
		return clusterautoscaler.Values{}, err
	}
	networks, err := s.networks()
	if err != nil {
		return clusterautoscaler.Values{}, err
	}
	var limits *corev1beta1.Limits
	if s.CloudProfile != nil {
		limits = s.CloudProfile.Spec.Limits
	}
	kubernetes := s.Shoot.Spec.Kubernetes
	config := kubernetes.ClusterAutoscaler.DeepCopy()
	if config != nil {
		config.Autoscaling = bounded(s.State, config.Autoscaling)
	}
	return clusterautoscaler.Values{
		Namespace: s.Namespace, Image: image, Replicas: replicas, KubernetesVersion: kubernetes.Version, Config: config,
		GenericKubeconfig: set.Name(constants.SecretNameGenericTokenKubeconfig), MachineDeployments: deployments,
		MaxNodesTotal: maxNodesTotal(networks, kubernetes.KubeControllerManager, limits, machines),
	}, nil
}

// maxNodesTotal returns how many nodes a cluster may have: as many as there are pod ranges and addresses for, and as the CloudProfile allows. A limit of
// the CloudProfile below the number of machines, which it may have got later, does not make the cluster smaller. 0 means that there is no limit.
// Source: nodes-and-autoscaling.md 1.2.
func maxNodesTotal(networks corev1beta1.NetworkingStatus, config *corev1beta1.KubeControllerManagerConfig, limits *corev1beta1.Limits, machines int) int64 {
	total := int64(0)
	limit := func(nodes int64) {
		if nodes > 0 && (total == 0 || nodes < total) {
			total = nodes
		}
	}
	limit(podRanges(networks.Pods, config))
	var four, six int64 // each node has an address of each family
	for _, text := range networks.Nodes {
		r, err := netip.ParsePrefix(text)
		switch {
		case err != nil: // the validation, or the extension of the infrastructure, is at fault; it is not for this limit to say so
		case r.Addr().Is4():
			four = sum(four, power(32-r.Bits())-2) // the first and the last address are not for nodes
		default:
			six = sum(six, power(128-r.Bits()))
		}
	}
	limit(four)
	limit(six)
	if limits != nil && limits.MaxNodesTotal != nil && *limits.MaxNodesTotal > 0 {
		limit(max(int64(*limits.MaxNodesTotal), int64(machines)))
	}
	if total == math.MaxInt64 {
		return 0
	}
	return total
}

// podRanges returns for how many nodes the range of pods has a range of their own. With both IP families, that of IPv4 is the smaller one.
func podRanges(pods []string, config *corev1beta1.KubeControllerManagerConfig) int64 {
	if config == nil {
		config = &corev1beta1.KubeControllerManagerConfig{}
	}
	nodes := int64(0)
	for _, text := range pods {
		r, err := netip.ParsePrefix(text)
		switch {
		case err != nil:
		case r.Addr().Is4():
			return power(int(ptr.Deref(config.NodeCIDRMaskSize, maskSizeIPv4)) - r.Bits())
		case len(pods) > 1:
			nodes = power(int(ptr.Deref(config.NodeCIDRMaskSizeIPv6, maskSizeIPv6)) - r.Bits())
		default:
			nodes = power(int(ptr.Deref(config.NodeCIDRMaskSizeIPv6, ptr.Deref(config.NodeCIDRMaskSize, maskSizeIPv6))) - r.Bits())
		}
	}
	return nodes
}

// power returns 2 to the power of bits, at most the largest number.
func power(bits int) int64 {
	switch {
	case bits < 0:
		return 0
	case bits > 62:
		return math.MaxInt64
	}
	return 1 << bits
}

func sum(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
