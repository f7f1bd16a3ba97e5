package webhook

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/resourcemanager/node/hostspread"
)

// mostHosts is the minimum number of hosts that pods are spread over, if there are as many pods.
const mostHosts = 3

// highAvailability configures workloads to tolerate the failure of nodes or zones.
type highAvailability struct {
	target client.Reader
	// notReady and unreachable are for how many seconds pods tolerate these taints. Nil means the default of the API server.
	notReady, unreachable *int64
}

// aim is the configuration of a namespace for its workloads.
type aim struct {
	zones []string
	// failureTolerance is nil if the namespace has no annotation for it, and empty if the annotation is empty.
	failureTolerance *string
	pinned           bool
}

func aimOf(namespace *corev1.Namespace) aim {
	a := aim{pinned: namespace.Annotations[resourcesv1alpha1.HighAvailabilityConfigZonePinning] == "true"}
	for _, zone := range strings.Split(namespace.Annotations[resourcesv1alpha1.HighAvailabilityConfigZones], ",") {
		if zone = strings.TrimSpace(zone); zone != "" && !slices.Contains(a.zones, zone) {
			a.zones = append(a.zones, zone)
		}
	}
	if value, ok := namespace.Annotations[resourcesv1alpha1.HighAvailabilityConfigFailureToleranceType]; ok {
		a.failureTolerance = &value
	}
	return a
}

func (h *highAvailability) handle(ctx context.Context, request admission.Request) admission.Response {
	namespace := &corev1.Namespace{}
	if err := h.target.Get(ctx, client.ObjectKey{Name: request.Namespace}, namespace); err != nil {
		return admission.Errored(http.StatusInternalServerError, fmt.Errorf("read namespace %q: %w", request.Namespace, err))
	}
	a := aimOf(namespace)
	switch request.Kind.Kind {
	case "Deployment":
		d := &appsv1.Deployment{}
		return change(request, d, func() error {
			return h.workload(ctx, a, request, d.ObjectMeta, &d.Spec.Replicas, d.Spec.Selector, &d.Spec.Template.Spec)
		})
	case "StatefulSet":
		s := &appsv1.StatefulSet{}
		return change(request, s, func() error {
			return h.workload(ctx, a, request, s.ObjectMeta, &s.Spec.Replicas, s.Spec.Selector, &s.Spec.Template.Spec)
		})
	case "HorizontalPodAutoscaler":
		autoscaler := &autoscalingv2.HorizontalPodAutoscaler{}
		return change(request, autoscaler, func() error { return scaler(a, autoscaler) })
	}
	return admission.Allowed("")
}

// workload changes a Deployment or StatefulSet.
func (h *highAvailability) workload(
	ctx context.Context, a aim, request admission.Request, metadata metav1.ObjectMeta, replicas **int32, selector *metav1.LabelSelector, pod *corev1.PodSpec,
) error {
	want, err := replicasFor(a, metadata)
	if err != nil {
		return err
	}
	most := int32(0)
	autoscalers := &autoscalingv2.HorizontalPodAutoscalerList{}
	if err := h.target.List(ctx, autoscalers, client.InNamespace(request.Namespace)); err != nil {
		return fmt.Errorf("list HorizontalPodAutoscalers: %w", err)
	}
	for _, autoscaler := range autoscalers.Items {
		if ref := autoscaler.Spec.ScaleTargetRef; ref.Kind == request.Kind.Kind && ref.Name == metadata.Name {
			most = autoscaler.Spec.MaxReplicas
		}
	}
	have := ptr.Deref(*replicas, 1)
	// Zero replicas of a hibernated workload stay, and an autoscaler may have set more.
	if want != nil && have != 0 && (most == 0 || have < *want) {
		*replicas = want
		have = *want
	}
	if len(a.zones) > 0 && (a.failureTolerance != nil || a.pinned) {
		pin(pod, a.zones)
	}
	hostSpread := metadata.Annotations[resourcesv1alpha1.HighAvailabilityConfigHostSpread] == "true"
	if hostSpread {
		single, err := hostspread.Single(ctx, h.target)
		if err != nil {
			return err
		}
		hostSpread = !single // on the only node, the second pod would wait for ever
	}
	spread(pod, constraints(a, have, max(most, have), selector, hostSpread))
	tolerate(pod, corev1.TaintNodeNotReady, h.notReady)
	tolerate(pod, corev1.TaintNodeUnreachable, h.unreachable)
	return nil
}

// scaler sets minReplicas of an autoscaler.
func scaler(a aim, autoscaler *autoscalingv2.HorizontalPodAutoscaler) error {
	want, err := replicasFor(a, autoscaler.ObjectMeta)
	if err != nil || want == nil || ptr.Deref(autoscaler.Spec.MinReplicas, 1) == 0 {
		return err
	}
	autoscaler.Spec.MinReplicas = want
	autoscaler.Spec.MaxReplicas = max(autoscaler.Spec.MaxReplicas, *want)
	return nil
}

// replicasFor returns the number of replicas, or nil if it is not configured.
func replicasFor(a aim, metadata metav1.ObjectMeta) (*int32, error) {
	if value, ok := metadata.Annotations[resourcesv1alpha1.HighAvailabilityConfigReplicas]; ok {
		n, err := strconv.ParseInt(value, 10, 32)
		if err != nil || n < 0 {
			return nil, &invalidError{fmt.Errorf("annotation %s: %q is not a number of pods", resourcesv1alpha1.HighAvailabilityConfigReplicas, value)}
		}
		return new(int32(n)), nil
	}
	switch metadata.Labels[resourcesv1alpha1.HighAvailabilityConfigType] {
	case resourcesv1alpha1.HighAvailabilityConfigTypeServer:
		return new(int32(2)), nil
	case resourcesv1alpha1.HighAvailabilityConfigTypeController:
		if a.failureTolerance != nil && *a.failureTolerance == "" {
			return new(int32(1)), nil
		}
		return new(int32(2)), nil
	}
	return nil, nil
}

// pin restricts pods to zones.
func pin(pod *corev1.PodSpec, zones []string) {
	if pod.Affinity == nil {
		pod.Affinity = &corev1.Affinity{}
	}
	if pod.Affinity.NodeAffinity == nil {
		pod.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	required := pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil {
		required = &corev1.NodeSelector{}
		pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = required
	}
	if len(required.NodeSelectorTerms) == 0 {
		required.NodeSelectorTerms = []corev1.NodeSelectorTerm{{}}
	}
	for i := range required.NodeSelectorTerms { // one of them has to match
		term := &required.NodeSelectorTerms[i]
		term.MatchExpressions = append(slices.DeleteFunc(term.MatchExpressions, func(r corev1.NodeSelectorRequirement) bool {
			return r.Key == corev1.LabelTopologyZone
		}), corev1.NodeSelectorRequirement{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: zones})
	}
}

// constraints are the topology spread constraints for hosts and zones.
func constraints(a aim, replicas, most int32, selector *metav1.LabelSelector, hostSpread bool) []corev1.TopologySpreadConstraint {
	if replicas <= 1 {
		return nil
	}
	hosts := corev1.TopologySpreadConstraint{
		TopologyKey: corev1.LabelHostname, MaxSkew: 1, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: selector,
	}
	if strict := hostSpread || ptr.Deref(a.failureTolerance, "") != ""; strict {
		hosts.WhenUnsatisfiable = corev1.DoNotSchedule
		if len(a.zones) <= 1 {
			hosts.MinDomains = new(min(most, mostHosts))
		}
	}
	if len(a.zones) <= 1 {
		return []corev1.TopologySpreadConstraint{hosts}
	}
	return []corev1.TopologySpreadConstraint{hosts, {
		TopologyKey: corev1.LabelTopologyZone, MinDomains: new(min(most, int32(len(a.zones)))), // zones are few
		MaxSkew: 1, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector,
	}}
}

// spread sets the constraints of a pod. Those for other topology keys are not changed, but for the one for zones from when there were several: with fewer
// zones than its minDomains, a zone gets one pod, and the next one would wait for ever.
func spread(pod *corev1.PodSpec, wanted []corev1.TopologySpreadConstraint) {
	others := slices.DeleteFunc(slices.Clone(pod.TopologySpreadConstraints), func(c corev1.TopologySpreadConstraint) bool {
		return len(wanted) > 0 && c.TopologyKey == corev1.LabelTopologyZone && c.MinDomains != nil ||
			slices.ContainsFunc(wanted, func(w corev1.TopologySpreadConstraint) bool { return w.TopologyKey == c.TopologyKey })
	})
	pod.TopologySpreadConstraints = slices.Concat(others, wanted)
}

// tolerate adds a toleration for a taint with a duration, unless the pod has one.
func tolerate(pod *corev1.PodSpec, taint string, seconds *int64) {
	if seconds == nil || slices.ContainsFunc(pod.Tolerations, func(t corev1.Toleration) bool {
		return t.Key == taint && (t.Effect == "" || t.Effect == corev1.TaintEffectNoExecute)
	}) {
		return
	}
	pod.Tolerations = append(pod.Tolerations, corev1.Toleration{
		Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: seconds,
	})
}
