package webhook

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcemanagerconfigv1alpha1 "gardener.cloud/gardener/api/config/resourcemanager/v1alpha1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/kube/removaltaint"
)

const (
	serviceHost = "KUBERNETES_SERVICE_HOST"

	// Clients read their token from this path; the names are those of Kubernetes.
	tokenVolume, tokenPath = "kube-api-access-gardener", "/var/run/secrets/kubernetes.io/serviceaccount"
	tokenVolumePrefix      = "kube-api-access-"
	rootCAConfigMap        = "kube-root-ca.crt"
	// defaultTokenSeconds is how long a token is valid.
	defaultTokenSeconds = 43200

	templateHash = "pod-template-hash"
)

// setServiceHost sets the host of the API server in an environment variable, unless the container has it.
func setServiceHost(pod *corev1.Pod, host string) {
	if pod.Labels[resourcesv1alpha1.KubernetesServiceHostInject] == "disable" {
		return
	}
	for _, container := range containersOf(&pod.Spec) {
		if !slices.ContainsFunc(container.Env, func(e corev1.EnvVar) bool { return e.Name == serviceHost }) {
			container.Env = append(container.Env, corev1.EnvVar{Name: serviceHost, Value: host})
		}
	}
}

// setSeccompProfile sets the profile of pods that have none.
func setSeccompProfile(pod *corev1.Pod) {
	if pod.Spec.SecurityContext == nil {
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{}
	}
	if pod.Spec.SecurityContext.SeccompProfile == nil {
		pod.Spec.SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	}
}

// spreadTemplate restricts topology spread constraints to pods of one template, so that pods are balanced after a rolling update.
func spreadTemplate(pod *corev1.Pod) {
	hash, ok := pod.Labels[templateHash]
	if _, skip := pod.Labels[resourcesv1alpha1.PodTopologySpreadConstraintsSkip]; !ok || skip {
		return
	}
	for i := range pod.Spec.TopologySpreadConstraints {
		constraint := &pod.Spec.TopologySpreadConstraints[i]
		if constraint.LabelSelector == nil {
			constraint.LabelSelector = &metav1.LabelSelector{}
		}
		metav1.AddLabelToSelector(constraint.LabelSelector, templateHash, hash)
	}
}

// mountToken mounts a token into pods whose service account disables the default one, unless they refuse a token themselves.
func mountToken(ctx context.Context, target client.Reader, pod *corev1.Pod, seconds int64) error {
	name := pod.Spec.ServiceAccountName
	if pod.Labels[resourcesv1alpha1.ProjectedTokenSkip] == "true" || !ptr.Deref(pod.Spec.AutomountServiceAccountToken, true) || name == "" || name == "default" ||
		slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return strings.HasPrefix(v.Name, tokenVolumePrefix) }) {
		return nil
	}
	account := &corev1.ServiceAccount{}
	if err := target.Get(ctx, client.ObjectKey{Namespace: pod.Namespace, Name: name}, account); err != nil {
		return fmt.Errorf("read ServiceAccount %q: %w", name, err)
	}
	if ptr.Deref(account.AutomountServiceAccountToken, true) {
		return nil
	}
	if value, ok := pod.Annotations[resourcesv1alpha1.ProjectedTokenExpirationSeconds]; ok {
		wanted, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return &invalidError{fmt.Errorf("annotation %s: %q is not a number", resourcesv1alpha1.ProjectedTokenExpirationSeconds, value)}
		}
		seconds = wanted
	}
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: tokenVolume, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: new(int32(420)),
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: &seconds, Path: "token"}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: rootCAConfigMap}, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
			}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
				{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}},
			}}},
		},
	}}})
	for _, container := range containersOf(&pod.Spec) {
		if !slices.ContainsFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == tokenPath }) {
			container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: tokenVolume, MountPath: tokenPath, ReadOnly: true})
		}
	}
	return nil
}

// placeSystemComponent assigns pods to nodes for system components. Pods of DaemonSets have their node already.
func placeSystemComponent(
	ctx context.Context, target client.Reader, pod *corev1.Pod, c resourcemanagerconfigv1alpha1.SystemComponentsConfigWebhookConfig,
) error {
	if pod.Labels[resourcesv1alpha1.SystemComponentsConfigSkip] == "true" {
		return nil
	}
	if owner := metav1.GetControllerOf(pod); owner != nil && owner.Kind == "DaemonSet" {
		return nil
	}
	if len(c.PodNodeSelector) > 0 && pod.Spec.NodeSelector == nil {
		pod.Spec.NodeSelector = map[string]string{}
	}
	maps.Copy(pod.Spec.NodeSelector, c.PodNodeSelector)
	for _, toleration := range c.PodTolerations {
		addToleration(pod, toleration)
	}
	if len(c.NodeSelector) == 0 {
		return nil
	}
	nodes := &corev1.NodeList{}
	if err := target.List(ctx, nodes, client.MatchingLabels(c.NodeSelector)); err != nil {
		return fmt.Errorf("list nodes for system components: %w", err)
	}
	slices.SortFunc(nodes.Items, func(a, b corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	for i := range nodes.Items {
		for _, taint := range nodes.Items[i].Spec.Taints {
			if !knownTaint(taint) {
				addToleration(pod, corev1.Toleration{Key: taint.Key, Operator: corev1.TolerationOpEqual, Value: taint.Value, Effect: taint.Effect})
			}
		}
	}
	return nil
}

// knownTaint says whether a taint depends on the state of a node. Pods must not tolerate these in general.
func knownTaint(taint corev1.Taint) bool {
	for _, prefix := range []string{"node.kubernetes.io/", "node.cloudprovider.kubernetes.io/"} {
		if strings.HasPrefix(taint.Key, prefix) {
			return true
		}
	}
	return removaltaint.Is(taint) || taint.Key == constants.TaintNodeCriticalComponentsNotReady || taint.Key == machinev1alpha1.PreferNoScheduleKey
}

func addToleration(pod *corev1.Pod, toleration corev1.Toleration) {
	if !slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool { return apiequality.Semantic.DeepEqual(t, toleration) }) {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, toleration)
	}
}
