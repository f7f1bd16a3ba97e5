// Package addon renders what a bare kubeadm cluster lacks on a local landscape: pod network, DNS, storage, load
// balancers, metrics, and requests of kube-proxy. Rendering is pure: the same values give the same objects.
package addon

import (
	"fmt"
	"net/netip"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/component/workload"
)

// Values is what addons depend on.
type Values struct {
	// Images are the images' references by the name of their product, such as "coredns".
	Images map[string]string
	// Pods are the ranges of the pod network, one per IP family. Every node has a part of each.
	Pods []netip.Prefix
	// APIServer is the address of the kube-apiserver that also works before Services do.
	APIServer netip.AddrPort
	// DNS is the address of the cluster's DNS service, within the service network.
	DNS netip.Addr
	// DNSReplicas is the number of pods of the DNS service. Several are in different zones.
	DNSReplicas int32
	// LocalDNS are the servers of the names of the landscape's clusters. Each is asked for what those before it do not know. Empty if there
	// are none.
	LocalDNS []netip.AddrPort
	// GardenDomain is the domain of a garden in another cluster, and GardenDNS the server of its names there. A seed needs them before it serves
	// names itself. Empty if LocalDNS are enough.
	GardenDomain string
	GardenDNS    netip.AddrPort
	// Pool are the addresses for Services of type LoadBalancer.
	Pool netip.Prefix
}

// Products are the products whose images addons need.
func Products() []string {
	return []string{"flannel", "coredns", "local-storage", "local-loadbalancer", "metrics-server"}
}

// Objects returns all objects of all addons, in the order in which they are best applied.
func Objects(v Values) ([]client.Object, error) {
	var all []client.Object
	for _, addon := range []func(Values) ([]client.Object, error){kubeProxy, podNetwork, coreDNS, localStorage, localLoadBalancer, metricsServer} {
		objects, err := addon(v)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return all, nil
}

// kubeProxy gives kube-proxy, which kubeadm deploys without requests, a share of busy processors: otherwise new Services are not reachable for minutes.
func kubeProxy(Values) ([]client.Object, error) {
	daemonSet := &unstructured.Unstructured{}
	daemonSet.SetAPIVersion(appsv1.SchemeGroupVersion.String())
	daemonSet.SetKind("DaemonSet")
	daemonSet.SetNamespace(metav1.NamespaceSystem)
	daemonSet.SetName("kube-proxy")
	container := map[string]any{"name": daemonSet.GetName(), "resources": map[string]any{"requests": map[string]any{"cpu": "20m", "memory": "32Mi"}}}
	err := unstructured.SetNestedSlice(daemonSet.Object, []any{container}, "spec", "template", "spec", "containers")
	return []client.Object{daemonSet}, err
}

func (v Values) image(product string) (string, error) {
	if reference, ok := v.Images[product]; ok {
		return reference, nil
	}
	return "", fmt.Errorf("no image of product %q is known", product)
}

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels(name)}
}

func labels(name string) map[string]string { return workload.Labels(name) }

// clusterRole grants rules to the service account of a workload.
func clusterRole(w workload.Workload, rules ...rbacv1.PolicyRule) []client.Object {
	return append([]client.Object{w.ServiceAccount()}, w.ClusterRole("landscape:"+w.Name, rules...)...)
}
