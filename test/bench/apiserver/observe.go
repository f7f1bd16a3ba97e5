package main

import (
	"context"
	"errors"
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/internal/kube"
)

var podMetrics = schema.GroupVersionKind{Group: "metrics.k8s.io", Version: "v1beta1", Kind: "PodMetricsList"}

// observe adds to a sample what is in the namespace of the control plane. What is not there is left out.
func (b *bench) observe(ctx context.Context, s *sample, namespace string) error {
	var pods corev1.PodList
	hpa := &autoscalingv2.HorizontalPodAutoscaler{}
	vpa, metrics := &unstructured.Unstructured{}, &unstructured.UnstructuredList{}
	vpa.SetGroupVersionKind(workload.AutoscalerKind)
	metrics.SetGroupVersionKind(podMetrics)
	selected := []client.ListOption{client.InNamespace(namespace), client.MatchingLabels(kubeapiserver.Labels())}
	err := errors.Join(
		b.seed.List(ctx, &pods, selected...),
		client.IgnoreNotFound(b.seed.Get(ctx, client.ObjectKey{Namespace: namespace, Name: kubeapiserver.Name}, hpa)),
		client.IgnoreNotFound(b.seed.Get(ctx, client.ObjectKey{Namespace: namespace, Name: kubeapiserver.Name + "-vpa"}, vpa)),
		b.seed.List(ctx, metrics, selected...),
	)
	s.pods(pods.Items)
	if hpa.Name != "" {
		s.horizontally(hpa)
	}
	return errors.Join(err, s.usage(metrics.Items), s.vertically(vpa))
}

// pods counts pods and those that are ready, the restarts of their containers, and notes the least and the most that one requests.
func (s *sample) pods(pods []corev1.Pod) {
	for i := range pods {
		pod := &pods[i]
		if pod.DeletionTimestamp != nil {
			continue
		}
		s.Pods++
		if kube.PodReady(pod) == nil {
			s.Ready++
		}
		for _, status := range pod.Status.ContainerStatuses {
			s.Restarts += status.RestartCount
		}
		for _, container := range pod.Spec.Containers {
			if container.Name != kubeapiserver.Name {
				continue
			}
			s.RequestedCPU = append(s.RequestedCPU, container.Resources.Requests.Cpu().AsApproximateFloat64())
			s.RequestedMemory = append(s.RequestedMemory, container.Resources.Requests.Memory().Value())
		}
	}
}

// horizontally notes what the HorizontalPodAutoscaler sees and wants.
func (s *sample) horizontally(hpa *autoscalingv2.HorizontalPodAutoscaler) {
	s.Desired = hpa.Status.DesiredReplicas
	for _, metric := range hpa.Status.CurrentMetrics {
		if metric.Resource == nil || metric.Resource.Current.AverageValue == nil {
			continue
		}
		average := metric.Resource.Current.AverageValue
		switch metric.Resource.Name {
		case corev1.ResourceCPU:
			s.SeenCPU = new(average.AsApproximateFloat64())
		case corev1.ResourceMemory:
			s.SeenMemory = new(average.Value())
		}
	}
}

// usage adds up CPU and memory of the containers of all pods.
func (s *sample) usage(pods []unstructured.Unstructured) error {
	var errs []error
	for i := range pods {
		containers, _, err := unstructured.NestedSlice(pods[i].Object, "containers")
		errs = append(errs, err)
		for _, container := range containers {
			fields, _ := container.(map[string]any)
			cpu, memory, err := amounts(fields, "usage")
			errs = append(errs, err)
			s.CPU += cpu
			s.Memory += memory
		}
	}
	return errors.Join(errs...)
}

// vertically notes what the Vertical Pod Autoscaler recommends for the container.
func (s *sample) vertically(vpa *unstructured.Unstructured) error {
	recommendations, _, err := unstructured.NestedSlice(vpa.Object, "status", "recommendation", "containerRecommendations")
	if err != nil {
		return err
	}
	for _, recommendation := range recommendations {
		if fields, _ := recommendation.(map[string]any); fields["containerName"] == kubeapiserver.Name {
			s.RecommendedCPU, s.RecommendedMemory, err = amounts(fields, "target")
		}
	}
	return err
}

// amounts reads CPU and memory of a field.
func amounts(fields map[string]any, name string) (cpu float64, memory int64, err error) {
	values, _, err := unstructured.NestedStringMap(fields, name)
	if err != nil {
		return 0, 0, err
	}
	for key, value := range values {
		quantity, err := resource.ParseQuantity(value)
		if err != nil {
			return 0, 0, fmt.Errorf("%s of %s: %w", key, name, err)
		}
		switch corev1.ResourceName(key) {
		case corev1.ResourceCPU:
			cpu = quantity.AsApproximateFloat64()
		case corev1.ResourceMemory:
			memory = quantity.Value()
		}
	}
	return cpu, memory, nil
}
