// Package networkpolicy has the labels of pods and the annotations of Services from which gardener-resource-manager writes NetworkPolicies: without
// them, pods in namespaces of Gardener can neither connect nor be connected to.
package networkpolicy

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
)

const (
	// webhookTargets is the alias of ports that kube-apiservers call, and scrapeTargets that of ports with metrics.
	webhookTargets, scrapeTargets = "all-webhook-targets", "all-scrape-targets"
	// extensionsAlias stands for all namespaces of extensions in the labels of kube-apiservers.
	extensionsAlias = "extensions"
)

// Label is the label of pods that may connect to a port of the pods of a Service in their namespace. Its value is constants.NetworkPolicyAllowed.
func Label(service string, port int32) string {
	return fmt.Sprintf("%s%s-tcp-%d", resourcesv1alpha1.NetworkPolicyToPrefix, service, port)
}

// LabelFor is Label for a Service in another namespace, by the name of that namespace, or by the alias in an annotation of the Service.
func LabelFor(namespace, service string, port int32) string {
	return Label(namespace+"-"+service, port)
}

// ScrapeTarget are the annotations of a Service in a control plane namespace whose pods have metrics on some ports.
func ScrapeTarget(ports ...int32) map[string]string { return fromPods(scrapeTargets, ports) }

// WebhookTarget are the annotations of the Service of an extension whose pods serve webhooks on some ports: for the kube-apiservers of all shoots and of
// a garden in the same cluster, and from everywhere, as the kube-apiserver of a seed may run on hosts.
func WebhookTarget(ports ...int32) map[string]string {
	annotations := fromPods(webhookTargets, ports)
	annotations[resourcesv1alpha1.NetworkingFromWorldToPorts] = portList(ports)
	annotations[resourcesv1alpha1.NetworkingPodLabelSelectorNamespaceAlias] = extensionsAlias
	annotations[resourcesv1alpha1.NetworkingNamespaceSelectors] = encode([]metav1.LabelSelector{
		{MatchLabels: map[string]string{corev1.LabelMetadataName: constants.GardenNamespace}},
		{MatchLabels: map[string]string{constants.GardenRole: constants.GardenRoleShoot}},
	})
	return annotations
}

// SeparateWebhookTargets are the annotations of the Service of an extension whose pods serve webhooks for the seed on one port, and for shoots on another. Owners
// of a shoot can have its kube-apiserver call any URL: it reaches the latter only.
func SeparateWebhookTargets(seed, shoots int32) map[string]string {
	annotations := WebhookTarget(shoots)
	annotations[resourcesv1alpha1.NetworkingFromWorldToPorts] = portList([]int32{seed})
	return annotations
}

func fromPods(alias string, ports []int32) map[string]string {
	key := resourcesv1alpha1.NetworkPolicyFromPolicyAnnotationPrefix + alias + resourcesv1alpha1.NetworkPolicyFromPolicyAnnotationSuffix
	return map[string]string{key: portList(ports)}
}

func portList(ports []int32) string {
	list := make([]networkingv1.NetworkPolicyPort, 0, len(ports))
	for _, port := range ports {
		list = append(list, networkingv1.NetworkPolicyPort{Protocol: new(corev1.ProtocolTCP), Port: new(intstr.FromInt32(port))})
	}
	return encode(list)
}

func encode(value any) string {
	data, _ := json.Marshal(value) // of API types
	return string(data)
}
