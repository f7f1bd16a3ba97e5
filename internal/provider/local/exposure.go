package local

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	localv1alpha1 "gardener.cloud/gardener/api/provider/local/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/pkg/extension"
)

// exposurePort is the name of the port of a load balancer.
const exposurePort = "kube-apiserver"

// exposures reconciles SelfHostedShootExposures: a load balancer beside the machines, in front of those that run an API server.
type exposures struct{ *places }

// Reconcile applies the load balancer, and reports its address.
func (a *exposures) Reconcile(ctx context.Context, exposure *extensionsv1alpha1.SelfHostedShootExposure, _ *extension.Cluster) error {
	if err := noConfig(providerConfig, exposure.Spec.ProviderConfig); err != nil {
		return err
	}
	at, err := a.machines(ctx, exposure.Namespace)
	if err != nil {
		return err
	}
	namespace, name := localv1alpha1.InfrastructureNamespace(exposure.Namespace), exposureObject(exposure.Name)
	machines, err := machineAddresses(ctx, at.reader, namespace)
	if err != nil {
		return err
	}
	addresses, err := endpointAddresses(exposure.Spec.Endpoints, machines)
	if err != nil {
		return errorcode.With(err, corev1beta1.ErrorConfigurationProblem)
	}
	objects := []client.Object{
		exposurePolicy(namespace, name, exposure.Spec.Port), exposureEndpoints(namespace, name, exposure.Spec.Port, addresses),
		exposureService(namespace, name, exposure.Spec.Port),
	}
	if err := kube.Apply(ctx, at, Name, objects...); err != nil {
		return err
	}
	service := &corev1.Service{}
	if err := at.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, service); err != nil {
		return fmt.Errorf("read Service %q: %w", name, err)
	}
	if len(service.Status.LoadBalancer.Ingress) == 0 {
		return at.wait("The load balancer has no address yet")
	}
	exposure.Status.Ingress = nil
	for _, address := range service.Status.LoadBalancer.Ingress {
		exposure.Status.Ingress = append(exposure.Status.Ingress, corev1.LoadBalancerIngress{IP: address.IP, Hostname: address.Hostname})
	}
	return nil
}

// Delete deletes the load balancer.
func (a *exposures) Delete(ctx context.Context, exposure *extensionsv1alpha1.SelfHostedShootExposure, _ *extension.Cluster) error {
	at, err := a.machines(ctx, exposure.Namespace)
	if errors.Is(err, errNoInfrastructure) {
		return nil // it has been deleted with its namespace
	}
	if err != nil {
		return err
	}
	meta := metav1.ObjectMeta{Namespace: localv1alpha1.InfrastructureNamespace(exposure.Namespace), Name: exposureObject(exposure.Name)}
	return remove(ctx, at, &corev1.Service{ObjectMeta: meta}, &discoveryv1.EndpointSlice{ObjectMeta: meta}, &networkingv1.NetworkPolicy{ObjectMeta: meta})
}

// ForceDelete does not wait for another cluster, which may not exist any more.
func (a *exposures) ForceDelete(ctx context.Context, exposure *extensionsv1alpha1.SelfHostedShootExposure, cluster *extension.Cluster) error {
	if err := a.Delete(ctx, exposure, cluster); err != nil {
		logf.FromContext(ctx).Info("Not waiting for the deletion of a load balancer", "result", err.Error())
	}
	return nil
}

// Migrate keeps it, as the machines stay where they are.
func (a *exposures) Migrate(context.Context, *extensionsv1alpha1.SelfHostedShootExposure, *extension.Cluster) error {
	return nil
}

// machineAddresses returns the addresses of the machines in a namespace. A machine that has ended has none: its address may be that of another pod now.
func machineAddresses(ctx context.Context, reader client.Reader, namespace string) (sets.Set[string], error) {
	pods := &corev1.PodList{}
	if err := reader.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabels(localv1alpha1.MachineLabels())); err != nil {
		return nil, fmt.Errorf("list Pods of machines: %w", err)
	}
	addresses := sets.New[string]()
	for i := range pods.Items {
		status := pods.Items[i].Status
		if status.Phase == corev1.PodSucceeded || status.Phase == corev1.PodFailed {
			continue
		}
		for _, ip := range status.PodIPs {
			addresses.Insert(ip.IP)
		}
	}
	return addresses, nil
}

// endpointAddresses returns an address of each node, which is an IPv4 address of a machine of the shoot: a load balancer must not lead to anything else,
// such as the metadata service of the cluster that it is in, or its other pods.
func endpointAddresses(endpoints []extensionsv1alpha1.ControlPlaneEndpoint, machines sets.Set[string]) ([]string, error) {
	var addresses []string
	for i, endpoint := range endpoints {
		path := field.NewPath("spec", "endpoints").Index(i).Child("addresses")
		j := slices.IndexFunc(endpoint.Addresses, func(a corev1.NodeAddress) bool { return a.Type == corev1.NodeInternalIP })
		if j < 0 {
			return nil, field.Required(path, "needs an address of type InternalIP")
		}
		address := endpoint.Addresses[j].Address
		if ip, err := netip.ParseAddr(address); err != nil || !ip.Is4() || !machines.Has(address) {
			return nil, field.Invalid(path.Index(j).Child("address"), address, "must be the IPv4 address of a machine of the shoot")
		}
		addresses = append(addresses, address)
	}
	return addresses, nil
}

// exposureObject is the name of the objects of a SelfHostedShootExposure.
func exposureObject(exposure string) string { return serviceName("exposure-", exposure) }

// exposureService is the load balancer. It selects no pods: only machines that are healthy are endpoints.
func exposureService(namespace, name string, port int32) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: localv1alpha1.ExposureLabels()},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, AllocateLoadBalancerNodePorts: new(false), ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyCluster,
			Ports: []corev1.ServicePort{{Name: exposurePort, Port: port, TargetPort: intstr.FromInt32(port), Protocol: corev1.ProtocolTCP}},
		},
	}
}

// exposureEndpoints are where the load balancer leads to.
func exposureEndpoints(namespace, name string, port int32, addresses []string) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{
			discoveryv1.LabelServiceName: name, discoveryv1.LabelManagedBy: Name,
		}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new(exposurePort), Port: &port, Protocol: new(corev1.ProtocolTCP)}},
	}
	for _, address := range addresses {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}})
	}
	return slice
}

// exposurePolicy lets everybody connect to the API servers on machines.
func exposurePolicy(namespace, name string, port int32) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: localv1alpha1.ExposureLabels(), Annotations: map[string]string{
			constants.GardenerDescription: "Lets machines with an API server be reached through the load balancer of their SelfHostedShootExposure.",
		}},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: *noBastion(), PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{{Ports: []networkingv1.NetworkPolicyPort{tcp(port)}}},
		},
	}
}

// watchExposures requeues SelfHostedShootExposures when Services in the seed change.
func watchExposures(b *builder.Builder, toObjects handler.MapFunc) {
	b.Watches(&corev1.Service{}, ofControlPlane(toObjects))
}
