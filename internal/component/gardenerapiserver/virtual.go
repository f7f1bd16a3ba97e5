package gardenerapiserver

import (
	"errors"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/component/gardenerprocess"
	"gardener.cloud/gardener/internal/component/workload"
)

// Virtual is the virtual garden that aggregates the API server.
type Virtual struct {
	// The fields of all processes that work in a virtual garden.
	gardenerprocess.Virtual
	// ClusterIP is the address of the Service where the API server runs, to which the kube-apiserver of the virtual garden sends requests. Only
	// TargetObjects needs it.
	ClusterIP netip.Addr
	// KubernetesVersion is that of the virtual garden, such as "1.36.3". Only TargetObjects needs it.
	KubernetesVersion string
}

var (
	// slicesOnly is the first version whose kube-apiserver finds the addresses of Services in EndpointSlices, and withSlices the first one that may.
	slicesOnly = version.MustParseGeneric("1.34")
	withSlices = version.MustParseGeneric("1.33")
)

// managedBy is in EndpointSlices, so that no controller deletes them.
const managedBy = "gardener-operator"

// TargetObjects renders what a virtual garden needs to aggregate the API server: bindings of its roles, which gardenrbac has, the versions that are
// served, and a Service in kube-system. The endpoint of the Service is an address in another cluster, so it has no selector. The kube-apiserver needs
// --enable-aggregator-routing, or it would use the address of the Service in the virtual garden.
func TargetObjects(v Values) ([]client.Object, error) {
	if v.Virtual == nil {
		return nil, errors.New("no virtual garden aggregates " + Name)
	}
	if !v.Virtual.ClusterIP.IsValid() {
		return nil, fmt.Errorf("Service %s/%s has no address yet", v.Namespace, Name)
	}
	kubernetes, err := version.ParseGeneric(v.Virtual.KubernetesVersion)
	if err != nil {
		return nil, fmt.Errorf("version of Kubernetes: %w", err)
	}
	service := v.process().Target().Service("https", servicePort)
	service.Spec.Selector, service.Spec.Ports[0].TargetPort = nil, intstr.FromInt32(servicePort)
	objects := append(registration(v), service)
	if kubernetes.AtLeast(withSlices) {
		objects = append(objects, endpointSlice(service, v.Virtual.ClusterIP))
	}
	if kubernetes.LessThan(slicesOnly) {
		objects = append(objects, endpoints(service, v.Virtual.ClusterIP))
	}
	return objects, nil
}

func endpointSlice(service *corev1.Service, address netip.Addr) client.Object {
	family := discoveryv1.AddressTypeIPv4
	if address.Is6() {
		family = discoveryv1.AddressTypeIPv6
	}
	port := service.Spec.Ports[0]
	labels := workload.Merge(service.Labels, map[string]string{discoveryv1.LabelServiceName: service.Name, discoveryv1.LabelManagedBy: managedBy})
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: service.Namespace, Name: service.Name, Labels: labels},
		AddressType: family,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{address.String()}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}},
		Ports:       []discoveryv1.EndpointPort{{Name: &port.Name, Port: &port.Port, Protocol: &port.Protocol}},
	}
}

// endpoints are what kube-apiservers before 1.34 read.
func endpoints(service *corev1.Service, address netip.Addr) client.Object {
	port := service.Spec.Ports[0]
	return &corev1.Endpoints{ //nolint:staticcheck // in use up to Kubernetes 1.33
		ObjectMeta: metav1.ObjectMeta{
			Namespace: service.Namespace, Name: service.Name,
			// The EndpointSlice is written here, too.
			Labels: map[string]string{discoveryv1.LabelSkipMirror: "true"},
		},
		Subsets: []corev1.EndpointSubset{{ //nolint:staticcheck // in use up to Kubernetes 1.33
			Addresses: []corev1.EndpointAddress{{IP: address.String()}},
			Ports:     []corev1.EndpointPort{{Name: port.Name, Port: port.Port, Protocol: port.Protocol}},
		}},
	}
}
