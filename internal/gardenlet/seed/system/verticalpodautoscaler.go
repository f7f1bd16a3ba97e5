package system

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/verticalpodautoscaler"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/flow"
)

func (s *run) deployVPA(ctx context.Context) error {
	objects, err := s.vpaObjects()
	if err != nil {
		return err
	}
	return s.deploy(ctx, objects...)
}

func (s *run) vpaObjects() ([]client.Object, error) {
	v := verticalpodautoscaler.Values{
		Namespace: constants.GardenNamespace, Images: s.Images.Autoscaler, Replicas: s.replicas,
		ServerSecret: s.certificates.vpa, CABundle: s.certificates.caBundle,
	}
	if workload.Autoscaled(s.seed) {
		setting := s.seed.Spec.Settings.VerticalPodAutoscaler
		v.Config = &corev1beta1.VerticalPodAutoscaler{FeatureGates: setting.FeatureGates, MaxAllowed: setting.MaxAllowed}
	}
	return verticalpodautoscaler.Objects(v)
}

// deleteVPATasks are the tasks that delete the Vertical Pod Autoscaler with all VerticalPodAutoscalers that Gardener has created, those in
// namespaces of shoots too. The CRDs and VerticalPodAutoscalers of others stay: they may be for another Vertical Pod Autoscaler.
func (s *run) deleteVPATasks(after ...string) []flow.Task {
	return []flow.Task{
		flow.Do("vpa", "Deleting the Vertical Pod Autoscaler", s.deleteVPA, after...),
		// A running recommender would create checkpoints again.
		flow.Await(waitTimeout, "vpa-recommender-deleted", "Waiting until the pods of vpa-recommender are deleted", s.awaitNoRecommender, "vpa"),
		flow.Do("vpa-objects", "Deleting VerticalPodAutoscalers and their checkpoints", s.deleteVPAs, "vpa-recommender-deleted"),
	}
}

func (s *run) deleteVPA(ctx context.Context) error {
	objects, err := s.forDeletion().vpaObjects()
	if err != nil {
		return err
	}
	return s.destroy(ctx, objects...)
}

// awaitNoRecommender waits until no pod of the recommender exists.
func (s *run) awaitNoRecommender(ctx context.Context) error {
	return kube.Await(ctx, s.SeedAPI, &corev1.PodList{}, func(pods []*corev1.Pod) error {
		if len(pods) > 0 {
			return fmt.Errorf("Pod %q still exists", pods[0].Name)
		}
		return nil
	}, nil, client.InNamespace(constants.GardenNamespace), client.MatchingLabels{constants.App: verticalpodautoscaler.Recommender})
}

// deleteVPAs deletes what the Vertical Pod Autoscaler has worked with: its Leases, and the VerticalPodAutoscalers of Gardener.
func (s *run) deleteVPAs(ctx context.Context) error {
	for _, name := range vpaComponents {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: name}}
		if err := s.SeedAPI.Delete(ctx, lease); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete Lease %q: %w", name, err)
		}
	}
	return deleteVerticalPodAutoscalers(ctx, s.SeedAPI)
}

// deleteVerticalPodAutoscalers deletes the VerticalPodAutoscalers that Gardener has created, and before them their checkpoints: a checkpoint
// names its VerticalPodAutoscaler and nothing else, so without it, the next try would not find the checkpoint.
func deleteVerticalPodAutoscalers(ctx context.Context, c client.Client) error {
	vpas, err := listVPAKind(ctx, c, workload.AutoscalerKind.Kind, client.MatchingLabels{workload.AutoscalerLabel: "true"})
	if err != nil || len(vpas) == 0 {
		return err
	}
	checkpoints, err := listVPAKind(ctx, c, "VerticalPodAutoscalerCheckpoint")
	if err != nil {
		return err
	}
	own := map[client.ObjectKey]bool{}
	for i := range vpas {
		own[client.ObjectKeyFromObject(&vpas[i])] = true
	}
	for i := range checkpoints {
		name, _, _ := unstructured.NestedString(checkpoints[i].Object, "spec", "vpaObjectName")
		if !own[client.ObjectKey{Namespace: checkpoints[i].GetNamespace(), Name: name}] {
			continue
		}
		if err := c.Delete(ctx, &checkpoints[i]); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete VerticalPodAutoscalerCheckpoint %q: %w", client.ObjectKeyFromObject(&checkpoints[i]), err)
		}
	}
	for i := range vpas {
		if err := c.Delete(ctx, &vpas[i]); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete VerticalPodAutoscaler %q: %w", client.ObjectKeyFromObject(&vpas[i]), err)
		}
	}
	return nil
}

// listVPAKind lists objects of a kind of autoscaling.k8s.io. Without its CRD there are none.
func listVPAKind(ctx context.Context, c client.Client, kind string, options ...client.ListOption) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(workload.AutoscalerKind.GroupVersion().WithKind(kind))
	if err := c.List(ctx, list, options...); err != nil && !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("list objects of kind %s: %w", kind, err)
	}
	return list.Items, nil
}
