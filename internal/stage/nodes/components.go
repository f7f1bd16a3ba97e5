package nodes

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/apiserverproxy"
	"gardener.cloud/gardener/internal/component/coredns"
	"gardener.cloud/gardener/internal/component/kubeproxy"
	"gardener.cloud/gardener/internal/component/metricsserver"
	"gardener.cloud/gardener/internal/component/nodelocaldns"
	"gardener.cloud/gardener/internal/component/nodeproblemdetector"
	"gardener.cloud/gardener/internal/component/vpnshoot"
)

// deploySystemComponents writes the ManagedResources of system components, but for kube-proxy.
func (in Inputs) deploySystemComponents(ctx context.Context) error {
	network, err := in.networkObjects()
	if err != nil {
		return err
	}
	dns, err := render(in.CoreDNS, coredns.Objects)
	if err != nil {
		return err
	}
	metrics, err := render(in.MetricsServer, metricsserver.Objects)
	if err != nil {
		return err
	}
	problems, err := in.NodeProblemDetector()
	if err != nil {
		return err
	}
	errs := []error{ // none depends on another one
		in.Run.ApplyManaged(ctx, networkResource, network...),
		in.Run.ApplyManaged(ctx, coredns.ManagedResourceName, dns...),
		in.Run.ApplyManaged(ctx, metricsserver.ManagedResourceName, metrics...),
		in.Run.ApplyManaged(ctx, nodeproblemdetector.ManagedResourceName, nodeproblemdetector.Objects(problems)...),
	}
	if in.NodeLocalDNS != nil {
		errs = append(errs, in.deployNodeLocalDNS(ctx))
	}
	return errors.Join(errs...)
}

// networkObjects are both ends of the connections between nodes and control plane that are in the cluster.
func (in Inputs) networkObjects() ([]client.Object, error) {
	agent, err := render(in.TunnelAgent, vpnshoot.Objects)
	if err != nil {
		return nil, err
	}
	proxy, err := render(in.APIServerProxy, apiserverproxy.Objects)
	return append(agent, proxy...), err
}

// render renders a component.
func render[V any](values func() (V, error), objects func(V) ([]client.Object, error)) ([]client.Object, error) {
	v, err := values()
	if err != nil {
		return nil, err
	}
	return objects(v)
}

func (in Inputs) deployNodeLocalDNS(ctx context.Context) error {
	objects, err := render(in.NodeLocalDNS, nodelocaldns.Objects)
	if err != nil {
		return err
	}
	return in.Run.ApplyManaged(ctx, nodelocaldns.ManagedResourceName, objects...)
}

// deployCustomDNS writes the server blocks of users for the node-local-dns, as the cluster's DNS server has them.
func (in Inputs) deployCustomDNS(ctx context.Context) error {
	values, err := in.NodeLocalDNS()
	if err != nil {
		return err
	}
	shootClient, err := in.Run.Target.Client(ctx)
	if err != nil {
		return err
	}
	custom, key := &corev1.ConfigMap{}, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: coredns.CustomName}
	if err := shootClient.Get(ctx, key, custom); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read ConfigMap %q: %w", key, err)
	}
	return in.Run.ApplyManaged(ctx, nodelocaldns.CustomManagedResourceName, nodelocaldns.CustomObjects(values, custom.Data)...)
}

// deleteNodeLocalDNS deletes the node-local-dns when there is no node left whose pods use it.
func (in Inputs) deleteNodeLocalDNS(ctx context.Context) error {
	caches := &resourcesv1alpha1.ManagedResource{}
	err := in.Run.SeedAPI.Get(ctx, client.ObjectKey{Namespace: in.Run.Namespace, Name: nodelocaldns.ManagedResourceName}, caches)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read ManagedResource %q: %w", nodelocaldns.ManagedResourceName, err)
	}
	shootClient, err := in.Run.Target.Client(ctx)
	if err != nil {
		return err
	}
	nodes := &corev1.NodeList{}
	if err := shootClient.List(ctx, nodes, client.MatchingLabels(nodelocaldns.NodeLabels())); err != nil {
		return fmt.Errorf("list nodes with node-local-dns: %w", err)
	}
	if len(nodes.Items) > 0 {
		return nil
	}
	return errors.Join(
		in.Run.DeleteManaged(ctx, nodelocaldns.CustomManagedResourceName), in.Run.DeleteManaged(ctx, nodelocaldns.ManagedResourceName),
	)
}

// deployKubeProxy writes the kube-proxies of all pools, and of nodes that are about to be replaced.
func (in Inputs) deployKubeProxy(ctx context.Context) error {
	shootClient, err := in.Run.Target.Client(ctx)
	if err != nil {
		return err
	}
	nodes := &corev1.NodeList{}
	if err := shootClient.List(ctx, nodes); err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	values, err := in.KubeProxy(nodes.Items)
	if err != nil {
		return err
	}
	objects, err := kubeproxy.Objects(values)
	if err != nil {
		return err
	}
	return in.Run.ApplyManaged(ctx, kubeproxy.ManagedResourceName, objects...)
}
