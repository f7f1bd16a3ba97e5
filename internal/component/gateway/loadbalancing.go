package gateway

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/workload"
)

const (
	// InternalService is the name of the Service by which pods of control planes reach the pods of a gateway that ends TLS connections.
	InternalService = "istio-ingressgateway-internal"
	// LoadBalancingConfigMap is the name of the ConfigMap in the namespace of a control plane with its LoadBalancing.
	LoadBalancingConfigMap = "istio-internal-load-balancing"

	// keyNamespace and keyHosts are the keys in that ConfigMap. Hosts are one per line.
	keyNamespace, keyHosts = "istio-namespace", "hosts"

	// allGateways is the alias of the namespaces of all gateways. With a namespace in it, the label of clients would be too long.
	allGateways = "all-istio-ingresses"
	// labelledPort is the port in the label of clients, which extensions may set themselves. The pods listen on proxyPort.
	labelledPort = 9443
)

// LoadBalancing says how pods of a control plane reach their kube-apiserver through a gateway.
type LoadBalancing struct {
	// Namespace is that of the gateway.
	Namespace string
	// Hosts are the names of the kube-apiserver that lead to the gateway.
	Hosts []string
}

// ConfigMap renders the ConfigMap for the namespace of a control plane.
func (l LoadBalancing) ConfigMap(namespace string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: LoadBalancingConfigMap},
		Data:       map[string]string{keyNamespace: l.Namespace, keyHosts: strings.Join(l.Hosts, "\n")},
	}
}

// LoadBalancingOf returns what such a ConfigMap says. It is false if that is not complete.
func LoadBalancingOf(configMap *corev1.ConfigMap) (LoadBalancing, bool) {
	l := LoadBalancing{Namespace: configMap.Data[keyNamespace], Hosts: strings.Fields(configMap.Data[keyHosts])}
	return l, l.Namespace != "" && len(l.Hosts) > 0
}

// InternalAddresses are the addresses of an InternalService. A Service of another type was not deployed for pods.
func InternalAddresses(service *corev1.Service) []string {
	if service.Spec.Type != corev1.ServiceTypeClusterIP {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(service.Spec.ClusterIPs), func(ip string) bool { return ip == "" || ip == corev1.ClusterIPNone })
}

// InternalPolicyLabel is the label of pods of control planes that may connect to the InternalService of each gateway.
func InternalPolicyLabel() string {
	return workload.PolicyLabel(allGateways+"-"+InternalService, labelledPort)
}

// internalService renders the InternalService. Its port is that of the Service of a kube-apiserver, as host aliases have none. The pods listen on
// the same port for all clients: while pods of control planes still have its address, the Service also leads to a gateway that passes TLS through.
func internalService(w workload.Workload) *corev1.Service {
	service := w.Service("tls", port)
	service.Name = InternalService
	service.Annotations = workload.Merge(workload.FromPods(fmt.Sprintf("%s-tcp-%d", InternalService, labelledPort), proxyPort), map[string]string{
		resourcesv1alpha1.NetworkingNamespaceSelectors:             `[{"matchLabels":{"` + constants.GardenRole + `":"` + constants.GardenRoleShoot + `"}}]`,
		resourcesv1alpha1.NetworkingPodLabelSelectorNamespaceAlias: allGateways,
	})
	service.Spec.Type = corev1.ServiceTypeClusterIP
	service.Spec.Ports[0].TargetPort = intstr.FromInt32(proxyPort)
	return service
}
