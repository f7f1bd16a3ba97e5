package infrastructure

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/component/coredns"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/stage/restart"
)

// families returns the IP families of a Network. One that has one family keeps it until all nodes have both: networks fail on other nodes. In another seed
// it does not exist yet, and the nodes may have stayed. Without a kube-apiserver, there are none.
func (in Inputs) families(ctx context.Context, networking *corev1beta1.Networking, network *extensionsv1alpha1.Network) ([]extensionsv1alpha1.IPFamily, error) {
	var families []extensionsv1alpha1.IPFamily
	for _, family := range networking.IPFamilies {
		families = append(families, extensionsv1alpha1.IPFamily(family))
	}
	if len(families) < 2 {
		return families, nil
	}
	existing := &extensionsv1alpha1.Network{}
	if err := in.Run.SeedAPI.Get(ctx, client.ObjectKeyFromObject(network), existing); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read Network %q: %w", network.Name, err)
	}
	if len(existing.Spec.IPFamilies) > 1 || in.Hibernated {
		return families, nil
	}
	shootClient, err := in.Run.Target.Client(ctx)
	if err != nil {
		return nil, err
	}
	nodes := &corev1.NodeList{}
	if err := shootClient.List(ctx, nodes); err != nil {
		return nil, fmt.Errorf("list nodes of the shoot: %w", err)
	}
	if slices.ContainsFunc(nodes.Items, func(node corev1.Node) bool { return kube.SingleStack(&node) }) {
		logf.FromContext(ctx).Info("The network keeps one IP family, as nodes have pod CIDRs of one only")
		return families[:1], nil
	}
	return families, nil
}

// replaceSingleStackDNS restarts CoreDNS while a pod of it has an address of one IP family only, which it keeps: the Service has an address of each. If nodes
// did not have the new configuration of the network yet, the next reconciliation does it again.
func (in Inputs) replaceSingleStackDNS(ctx context.Context) error {
	network := in.Run.Network()
	if err := in.Run.SeedAPI.Get(ctx, client.ObjectKeyFromObject(network), network); err != nil {
		return fmt.Errorf("read Network %q: %w", network.Name, err)
	}
	if len(network.Status.IPFamilies) < 2 {
		return nil
	}
	shootClient, err := in.Run.Target.Client(ctx)
	if err != nil {
		return err
	}
	pods := &corev1.PodList{}
	if err := shootClient.List(ctx, pods, client.InNamespace(metav1.NamespaceSystem), coredns.PodLabels()); err != nil {
		return fmt.Errorf("list pods of CoreDNS: %w", err)
	}
	if !slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool {
		return pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning && len(pod.Status.PodIPs) == 1 // an evicted one stays as it is
	}) {
		return nil
	}
	return restart.Workload(ctx, shootClient, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: coredns.Name}}, in.Run.Clock.Now())
}
