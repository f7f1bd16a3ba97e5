package managedresource

import (
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/pkg/secrets"
)

// before are labels and annotations of the manifest that was applied last.
type before struct {
	labels, annotations map[string]string
}

// mergeOptions say which fields of the live object are kept.
type mergeOptions struct {
	// overwriteLabels and overwriteAnnotations remove those that are not in the manifest.
	overwriteLabels, overwriteAnnotations bool
	// keepReplicas keeps spec.replicas, because an autoscaler sets it.
	keepReplicas bool
}

// merge returns the object for an update: the manifest, with what is kept of the live object: its status and identity, labels and
// annotations of other clients, and fields that controllers set.
func merge(desired, live *unstructured.Unstructured, last before, o mergeOptions) *unstructured.Unstructured {
	merged := desired.DeepCopy()
	metadata, _ := live.DeepCopy().Object["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	merged.Object["metadata"] = metadata
	for _, field := range []string{"finalizers", "ownerReferences"} {
		if wanted, ok, err := unstructured.NestedSlice(desired.Object, "metadata", field); ok && err == nil {
			have, _, _ := unstructured.NestedSlice(live.Object, "metadata", field)
			metadata[field] = union(have, wanted)
		}
	}
	merged.SetLabels(three(desired.GetLabels(), live.GetLabels(), last.labels, o.overwriteLabels))
	merged.SetAnnotations(three(desired.GetAnnotations(), live.GetAnnotations(), last.annotations, o.overwriteAnnotations))
	delete(merged.Object, "status")
	if status, ok := live.Object["status"]; ok {
		merged.Object["status"] = runtime.DeepCopyJSONValue(status)
	}

	kind := desired.GroupVersionKind().GroupKind()
	switch kind.Group {
	case "apps", "":
		if isWorkload(kind) {
			if o.keepReplicas || Truthy(desired.GetAnnotations()[resourcesv1alpha1.PreserveReplicas]) {
				take(merged, live, "spec", "replicas")
			}
			// A manifest without a number leaves it to an autoscaler that need not be a HorizontalPodAutoscaler. The API server would set it to one.
			takeDefault(merged, live, "spec", "replicas")
			if Truthy(desired.GetAnnotations()[resourcesv1alpha1.PreserveResources]) {
				keepResources(merged, live, "spec", "template", "spec")
			}
			// kubectl rollout restart is not a change of the manifest.
			takeDefault(merged, live, "spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt")
		}
	}
	switch kind {
	case schema.GroupKind{Group: "apps", Kind: "StatefulSet"}:
		take(merged, live, "spec", "volumeClaimTemplates") // the API server refuses every change
	case schema.GroupKind{Kind: "Service"}:
		mergeService(merged, live)
	case schema.GroupKind{Kind: "Secret"}:
		// The token is not in the manifest; the token controller writes it.
		if kind, _, _ := unstructured.NestedString(desired.Object, "type"); kind == string(corev1.SecretTypeServiceAccountToken) {
			for _, key := range []string{corev1.ServiceAccountTokenKey, corev1.ServiceAccountRootCAKey, corev1.ServiceAccountNamespaceKey} {
				takeDefault(merged, live, "data", key)
			}
		}
		// Nor is the one that the token requestor writes: pods could not start until it writes it again.
		if desired.GetLabels()[resourcesv1alpha1.ResourceManagerPurpose] == resourcesv1alpha1.LabelPurposeTokenRequest {
			for _, key := range []string{resourcesv1alpha1.DataKeyToken, resourcesv1alpha1.DataKeyKubeconfig, secrets.DataKeyCertificateBundle} {
				takeDefault(merged, live, "data", key)
			}
			takeDefault(merged, live, "metadata", "annotations", resourcesv1alpha1.ServiceAccountTokenRenewTimestamp)
		}
	case schema.GroupKind{Kind: "ServiceAccount"}:
		takeDefault(merged, live, "secrets")
		takeDefault(merged, live, "imagePullSecrets")
	case schema.GroupKind{Kind: "Namespace"}:
		takeDefault(merged, live, "spec")
	case schema.GroupKind{Kind: "PersistentVolumeClaim"}:
		requests, ok, err := unstructured.NestedFieldCopy(desired.Object, "spec", "resources")
		take(merged, live, "spec")
		if ok && err == nil {
			set(merged, requests, "spec", "resources") // a volume can grow
		}
	case schema.GroupKind{Kind: "PersistentVolume"}:
		takeDefault(merged, live, "spec", "claimRef")
	case schema.GroupKind{Group: "batch", Kind: "CronJob"}:
		if Truthy(desired.GetAnnotations()[resourcesv1alpha1.PreserveResources]) {
			keepResources(merged, live, "spec", "jobTemplate", "spec", "template", "spec")
		}
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
		if Truthy(desired.GetAnnotations()[resourcesv1alpha1.PreserveResources]) {
			keepResources(merged, live, "spec", "template", "spec")
		}
		if manual, _, _ := unstructured.NestedBool(desired.Object, "spec", "manualSelector"); !manual {
			take(merged, live, "spec", "selector")
			labels, _, _ := unstructured.NestedStringMap(live.Object, "spec", "template", "metadata", "labels")
			for _, label := range []string{"controller-uid", "batch.kubernetes.io/controller-uid", "job-name", "batch.kubernetes.io/job-name"} {
				if value, ok := labels[label]; ok {
					set(merged, value, "spec", "template", "metadata", "labels", label)
				}
			}
		}
		// The template is immutable, also that of a Job from before pods had this label.
		take(merged, live, "spec", "template", "metadata", "labels", resourcesv1alpha1.ManagedBy)
	case schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"},
		schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}:
		mergeNamed(merged, live, []string{"webhooks"}, []string{"clientConfig", "caBundle"})
	case schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:
		// kube-controller-manager writes the rules of a role that aggregates others.
		if _, aggregates, _ := unstructured.NestedMap(desired.Object, "aggregationRule"); aggregates {
			take(merged, live, "rules")
		}
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		// Where there is no webhook any more, one with only a CA bundle would be invalid.
		clientConfig := []string{"spec", "conversion", "webhook", "clientConfig"}
		if _, converts, _ := unstructured.NestedMap(desired.Object, clientConfig...); converts {
			takeDefault(merged, live, append(clientConfig, "caBundle")...)
		}
	}
	return merged
}

// isWorkload says whether objects of a kind have a pod template.
func isWorkload(kind schema.GroupKind) bool {
	switch kind.Kind {
	case "Deployment", "StatefulSet", "ReplicaSet", "DaemonSet":
		return kind.Group == "apps"
	case "ReplicationController":
		return kind.Group == ""
	}
	return false
}

// three is a three-way merge of desired, live and last applied values: additions of other clients are kept, entries that are no longer desired are removed.
func three(desired, live, last map[string]string, overwrite bool) map[string]string {
	out := map[string]string{}
	if !overwrite {
		maps.Copy(out, live)
		for key := range last {
			delete(out, key)
		}
	}
	maps.Copy(out, desired)
	return out
}

// mergeService keeps the addresses and ports that the cluster has allocated for a Service.
func mergeService(merged, live *unstructured.Unstructured) {
	typeOf := func(o *unstructured.Unstructured) string {
		kind, _, _ := unstructured.NestedString(o.Object, "spec", "type")
		if kind == "" {
			return "ClusterIP"
		}
		return kind
	}
	wanted, have := typeOf(merged), typeOf(live)
	if wanted == "ExternalName" {
		return
	}
	if have != "ExternalName" {
		for _, field := range []string{"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy", "sessionAffinity"} {
			takeDefault(merged, live, "spec", field)
		}
	}
	if wanted == "LoadBalancer" && have == wanted {
		// Some controllers of load balancers write the address that they have allocated to loadBalancerIP.
		for _, field := range []string{"loadBalancerClass", "loadBalancerIP", "allocateLoadBalancerNodePorts", "externalTrafficPolicy", "healthCheckNodePort"} {
			takeDefault(merged, live, "spec", field)
		}
	}
	if wanted == "NodePort" || wanted == "LoadBalancer" {
		mergeNamed(merged, live, []string{"spec", "ports"}, []string{"nodePort"})
	}
}

// keepResources keeps the resources of containers in the live object.
func keepResources(merged, live *unstructured.Unstructured, pod ...string) {
	for _, list := range []string{"containers", "initContainers"} {
		overNamed(merged, live, append(slices.Clone(pod), list), func(wanted, have map[string]any) {
			if resources, ok := have["resources"]; ok {
				wanted["resources"] = runtime.DeepCopyJSONValue(resources)
			}
		})
	}
}

// mergeNamed copies a field of list elements from the live elements of the same name, if it is not set.
func mergeNamed(merged, live *unstructured.Unstructured, list, field []string) {
	overNamed(merged, live, list, func(wanted, have map[string]any) {
		if _, ok, err := unstructured.NestedFieldNoCopy(wanted, field...); ok || err != nil {
			return
		}
		if value, ok, err := unstructured.NestedFieldCopy(have, field...); ok && err == nil {
			_ = unstructured.SetNestedField(wanted, value, field...)
		}
	})
}

// overNamed calls a function with the elements of two lists that have the same name, or the same port.
func overNamed(merged, live *unstructured.Unstructured, list []string, do func(wanted, have map[string]any)) {
	wantedList, _, _ := unstructured.NestedFieldNoCopy(merged.Object, list...)
	haveList, _, _ := unstructured.NestedFieldNoCopy(live.Object, list...)
	wanted, _ := wantedList.([]any)
	have, _ := haveList.([]any)
	for _, w := range wanted {
		w, ok := w.(map[string]any)
		if !ok {
			continue
		}
		for _, h := range have {
			if h, ok := h.(map[string]any); ok && w["name"] == h["name"] && w["port"] == h["port"] {
				do(w, h)
			}
		}
	}
}

// take copies a field from the live object, or removes it if that does not have it.
func take(merged, live *unstructured.Unstructured, path ...string) {
	value, ok, err := unstructured.NestedFieldCopy(live.Object, path...)
	if err != nil {
		return
	}
	if !ok {
		unstructured.RemoveNestedField(merged.Object, path...)
		return
	}
	set(merged, value, path...)
}

// takeDefault copies a field from the live object if the manifest does not have it.
func takeDefault(merged, live *unstructured.Unstructured, path ...string) {
	if _, ok, err := unstructured.NestedFieldNoCopy(merged.Object, path...); ok || err != nil {
		return
	}
	if value, ok, err := unstructured.NestedFieldCopy(live.Object, path...); ok && err == nil {
		set(merged, value, path...)
	}
}

func set(object *unstructured.Unstructured, value any, path ...string) {
	_ = unstructured.SetNestedField(object.Object, value, path...)
}

func union(have, wanted []any) []any {
	out := slices.Clone(have)
	for _, w := range wanted {
		if !slices.ContainsFunc(out, func(h any) bool { return apiequality.Semantic.DeepEqual(h, w) }) {
			out = append(out, w)
		}
	}
	return out
}

// Truthy parses the value of a boolean annotation. An invalid value counts as false.
func Truthy(value string) bool {
	on, err := strconv.ParseBool(value)
	return err == nil && on
}
