package networkpolicy

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
)

// input is what the policies of a Service depend on.
type input struct {
	// service is nil if no policies are desired.
	service           *corev1.Service
	namespaces        []corev1.Namespace
	ingresses         []networkingv1.Ingress
	ingressController *IngressController
}

// policies returns the policies of a Service, sorted, and the errors of its annotations.
func policies(in input) ([]*networkingv1.NetworkPolicy, error) {
	if in.service == nil || len(in.service.Spec.Selector) == 0 {
		return nil, nil
	}
	w := &writer{service: in.service}
	var errs []error
	others, err := selected(in)
	errs = append(errs, err)
	for _, port := range portsOf(in.service) {
		id := in.service.Name + "-" + suffix(port)
		w.connection(id, id, port)
		for _, namespace := range others {
			w.connectionFrom(namespace, id, id, port)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(in.service.Annotations)) {
		alias, ok := strings.CutPrefix(key, resourcesv1alpha1.NetworkPolicyFromPolicyAnnotationPrefix)
		if !ok {
			continue
		}
		if alias, ok = strings.CutSuffix(alias, resourcesv1alpha1.NetworkPolicyFromPolicyAnnotationSuffix); !ok {
			continue
		}
		ports, err := parsePorts(key, in.service.Annotations[key])
		errs = append(errs, err)
		for _, port := range ports {
			id := in.service.Name + "-" + suffix(port) + "-via-" + alias
			w.connection(id, alias, port)
			for _, namespace := range others {
				w.connectionFrom(namespace, id, alias, port)
			}
		}
	}
	if value, ok := in.service.Annotations[resourcesv1alpha1.NetworkingFromWorldToPorts]; ok {
		ports, err := parsePorts(resourcesv1alpha1.NetworkingFromWorldToPorts, value)
		if errs = append(errs, err); err == nil { // an empty list would mean all ports
			w.fromWorld(ports)
		}
	}
	if in.ingressController != nil {
		for _, port := range exposed(in) {
			w.fromIngressController(in.ingressController, port)
		}
	}
	slices.SortFunc(w.policies, func(a, b *networkingv1.NetworkPolicy) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return w.policies, errors.Join(errs...)
}

// selected are the names of other namespaces whose pods may connect to the Service.
func selected(in input) ([]string, error) {
	value := in.service.Annotations[resourcesv1alpha1.NetworkingNamespaceSelectors]
	if value == "" {
		return nil, nil
	}
	var desired []metav1.LabelSelector
	if err := json.Unmarshal([]byte(value), &desired); err != nil {
		return nil, fmt.Errorf("annotation %s: %w", resourcesv1alpha1.NetworkingNamespaceSelectors, err)
	}
	var selectors []labels.Selector
	for i := range desired {
		selector, err := metav1.LabelSelectorAsSelector(&desired[i])
		if err != nil {
			return nil, fmt.Errorf("annotation %s, selector %d: %w", resourcesv1alpha1.NetworkingNamespaceSelectors, i, err)
		}
		selectors = append(selectors, selector)
	}
	var names []string
	for _, namespace := range in.namespaces {
		if len(selectors) > 0 && namespace.Name != in.service.Namespace && namespace.DeletionTimestamp == nil && matches(selectors, namespace.Labels) {
			names = append(names, namespace.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// portsOf are the ports of the pods of a Service, each once.
func portsOf(service *corev1.Service) []networkingv1.NetworkPolicyPort {
	var ports []networkingv1.NetworkPolicyPort
	for _, port := range service.Spec.Ports {
		p := policyPort(port)
		if !slices.ContainsFunc(ports, func(o networkingv1.NetworkPolicyPort) bool { return suffix(o) == suffix(p) }) {
			ports = append(ports, p)
		}
	}
	return ports
}

func policyPort(port corev1.ServicePort) networkingv1.NetworkPolicyPort {
	target := port.TargetPort
	if target == (intstr.IntOrString{}) {
		target = intstr.FromInt32(port.Port)
	}
	return networkingv1.NetworkPolicyPort{Protocol: new(cmp.Or(port.Protocol, corev1.ProtocolTCP)), Port: &target}
}

// suffix is the part of names and labels for a port.
func suffix(port networkingv1.NetworkPolicyPort) string {
	return strings.ToLower(string(*port.Protocol)) + "-" + port.Port.String()
}

// parsePorts parses a list of ports in an annotation. Numbers may be strings.
func parsePorts(key, value string) ([]networkingv1.NetworkPolicyPort, error) {
	var ports []networkingv1.NetworkPolicyPort
	if err := json.Unmarshal([]byte(value), &ports); err != nil {
		return nil, fmt.Errorf("annotation %s: %w", key, err)
	}
	for i := range ports {
		if ports[i].Port == nil {
			return nil, fmt.Errorf("annotation %s: port %d has no number", key, i)
		}
		port := intstr.Parse(ports[i].Port.String())
		ports[i].Port = &port
		if ports[i].Protocol == nil {
			ports[i].Protocol = new(corev1.ProtocolTCP)
		}
	}
	return ports, nil
}

// exposed are the ports of the pods that Ingresses have as backends.
func exposed(in input) []networkingv1.NetworkPolicyPort {
	var ports []networkingv1.NetworkPolicyPort
	for i := range in.ingresses {
		for _, backend := range backendsOf(&in.ingresses[i]) {
			if backend.Name != in.service.Name {
				continue
			}
			for _, port := range in.service.Spec.Ports {
				if port.Port != backend.Port.Number && (backend.Port.Name == "" || port.Name != backend.Port.Name) {
					continue
				}
				p := policyPort(port)
				if !slices.ContainsFunc(ports, func(o networkingv1.NetworkPolicyPort) bool { return suffix(o) == suffix(p) }) {
					ports = append(ports, p)
				}
			}
		}
	}
	return ports
}

// writer collects the policies of a Service.
type writer struct {
	service  *corev1.Service
	policies []*networkingv1.NetworkPolicy
}

// add adds a policy.
func (w *writer) add(namespace, name, description string, spec networkingv1.NetworkPolicySpec) {
	w.policies = append(w.policies, &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name,
			Labels: map[string]string{
				resourcesv1alpha1.NetworkingServiceNamespace: w.service.Namespace, resourcesv1alpha1.NetworkingServiceName: w.service.Name,
			},
			Annotations: map[string]string{constants.GardenerDescription: description},
		},
		Spec: spec,
	})
}

func (w *writer) pods() metav1.LabelSelector {
	return metav1.LabelSelector{MatchLabels: w.service.Spec.Selector}
}

func (w *writer) String() string { return w.service.Namespace + "/" + w.service.Name }

// clientsOf selects the pods with the label to connect to something.
func clientsOf(to string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchLabels: map[string]string{resourcesv1alpha1.NetworkPolicyToPrefix + to: constants.NetworkPolicyAllowed}}
}

func namespaceNamed(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: name}}
}

// connection allows labelled pods of the Service's own namespace to connect to it.
func (w *writer) connection(id, label string, port networkingv1.NetworkPolicyPort) {
	from := clientsOf(label)
	w.pair(w.service.Namespace, "ingress-to-"+id, "egress-to-"+id, port,
		networkingv1.NetworkPolicyPeer{PodSelector: &from}, networkingv1.NetworkPolicyPeer{PodSelector: new(w.pods())}, from,
		fmt.Sprintf("pods running in namespace %s labeled with %v", w.service.Namespace, from.MatchLabels))
}

// connectionFrom allows labelled pods of another namespace to connect to the Service.
func (w *writer) connectionFrom(namespace, id, label string, port networkingv1.NetworkPolicyPort) {
	alias := cmp.Or(w.service.Annotations[resourcesv1alpha1.NetworkingPodLabelSelectorNamespaceAlias], w.service.Namespace)
	from := clientsOf(alias + "-" + label)
	w.pair(namespace, "ingress-to-"+id+"-from-"+namespace, "egress-to-"+w.service.Namespace+"-"+id, port,
		networkingv1.NetworkPolicyPeer{NamespaceSelector: namespaceNamed(namespace), PodSelector: &from},
		networkingv1.NetworkPolicyPeer{NamespaceSelector: namespaceNamed(w.service.Namespace), PodSelector: new(w.pods())}, from,
		fmt.Sprintf("pods running in namespace %s labeled with %v", namespace, from.MatchLabels))
}

// fromIngressController allows the pods of the ingress controller to connect to the Service.
func (w *writer) fromIngressController(c *IngressController, port networkingv1.NetworkPolicyPort) {
	id := w.service.Name + "-" + suffix(port)
	w.pair(c.Namespace, "ingress-to-"+id+"-from-ingress-controller", "egress-to-"+w.service.Namespace+"-"+id+"-from-ingress-controller", port,
		networkingv1.NetworkPolicyPeer{NamespaceSelector: namespaceNamed(c.Namespace), PodSelector: &c.PodSelector},
		networkingv1.NetworkPolicyPeer{NamespaceSelector: namespaceNamed(w.service.Namespace), PodSelector: new(w.pods())}, c.PodSelector,
		fmt.Sprintf("ingress controller pods running in the %s namespace labeled with %v", c.Namespace, c.PodSelector.MatchLabels))
}

// pair adds the policies for both ends of a connection: the ingress policy of the Service, and the egress policy of its clients.
func (w *writer) pair(
	namespace, ingress, egress string, port networkingv1.NetworkPolicyPort, from, to networkingv1.NetworkPolicyPeer, clients metav1.LabelSelector, who string,
) {
	w.add(w.service.Namespace, ingress,
		fmt.Sprintf("Allows ingress %s traffic to port %s for pods selected by the %s service selector from %s.", *port.Protocol, port.Port.String(), w, who),
		networkingv1.NetworkPolicySpec{
			PodSelector: w.pods(), PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{from}, Ports: []networkingv1.NetworkPolicyPort{port}}},
		})
	w.add(namespace, egress,
		fmt.Sprintf("Allows egress %s traffic to port %s from %s to pods selected by the %s service selector.", *port.Protocol, port.Port.String(), who, w),
		networkingv1.NetworkPolicySpec{
			PodSelector: clients, PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
			Egress: []networkingv1.NetworkPolicyEgressRule{{To: []networkingv1.NetworkPolicyPeer{to}, Ports: []networkingv1.NetworkPolicyPort{port}}},
		})
}

// fromWorld allows connections from everywhere to some ports of the pods, or to all if the list is empty.
func (w *writer) fromWorld(ports []networkingv1.NetworkPolicyPort) {
	w.add(w.service.Namespace, "ingress-to-"+w.service.Name+"-from-world",
		fmt.Sprintf("Allows ingress traffic from everywhere to ports [%s] for pods selected by the %s service selector.", portList(ports), w),
		networkingv1.NetworkPolicySpec{
			PodSelector: w.pods(), PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{{
				From: []networkingv1.NetworkPolicyPeer{
					{NamespaceSelector: &metav1.LabelSelector{}, PodSelector: &metav1.LabelSelector{}},
					{IPBlock: &networkingv1.IPBlock{CIDR: "0.0.0.0/0"}},
					{IPBlock: &networkingv1.IPBlock{CIDR: "::/0"}},
				},
				Ports: ports,
			}},
		})
}

func portList(ports []networkingv1.NetworkPolicyPort) string {
	var names []string
	for _, port := range ports {
		names = append(names, string(*port.Protocol)+"/"+port.Port.String())
	}
	return strings.Join(names, " ")
}
