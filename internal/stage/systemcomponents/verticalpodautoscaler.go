package systemcomponents

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/crds"
	"gardener.cloud/gardener/internal/component/verticalpodautoscaler"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/flow"
)

func (in *Inputs) deployVPA(ctx context.Context) error {
	objects, err := in.vpaObjects()
	if err != nil {
		return err
	}
	return in.deploy(ctx, objects...)
}

func (in *Inputs) vpaObjects() ([]client.Object, error) {
	return verticalpodautoscaler.Objects(verticalpodautoscaler.Values{
		Namespace: constants.GardenNamespace, Images: in.Images.Autoscaler, Replicas: in.Replicas, Config: in.Autoscaler,
		ServerSecret: in.certificates.Autoscaler, CABundle: in.certificates.CABundle,
	})
}

// deleteVPATasks are the tasks that delete the Vertical Pod Autoscaler with all VerticalPodAutoscalers that Gardener has created, those in
// namespaces of shoots too. The CRDs and VerticalPodAutoscalers of others stay: they may be for another Vertical Pod Autoscaler.
func (in *Inputs) deleteVPATasks(after ...string) []flow.Task {
	return []flow.Task{
		flow.Do("vpa", "Deleting the Vertical Pod Autoscaler", in.deleteVPA, after...),
		// A running recommender would create checkpoints again.
		flow.Await(waitTimeout, "vpa-recommender-deleted", "Waiting until the pods of vpa-recommender are deleted", in.awaitNoRecommender, "vpa"),
		flow.Do("vpa-objects", "Deleting VerticalPodAutoscalers and their checkpoints", in.deleteVPAs, "vpa-recommender-deleted"),
	}
}

func (in *Inputs) deleteVPA(ctx context.Context) error {
	objects, err := in.forDeletion().vpaObjects()
	if err != nil {
		return err
	}
	return in.destroy(ctx, objects...)
}

// awaitNoRecommender waits until no pod of the recommender exists.
func (in *Inputs) awaitNoRecommender(ctx context.Context) error {
	return kube.Await(ctx, in.API, &corev1.PodList{}, func(pods []*corev1.Pod) error {
		if len(pods) > 0 {
			return fmt.Errorf("Pod %q still exists", pods[0].Name)
		}
		return nil
	}, nil, client.InNamespace(constants.GardenNamespace), client.MatchingLabels{constants.App: verticalpodautoscaler.Recommender})
}

// deleteVPAs deletes what the Vertical Pod Autoscaler has worked with: its Leases, and the VerticalPodAutoscalers of Gardener.
func (in *Inputs) deleteVPAs(ctx context.Context) error {
	for _, name := range autoscalerDeployments {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: name}}
		if err := in.API.Delete(ctx, lease); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete Lease %q: %w", name, err)
		}
	}
	return deleteVerticalPodAutoscalers(ctx, in.API)
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

// DeployMissingAutoscalerCRDs creates the CRDs of the Vertical Pod Autoscaler where they are missing. Those of a Vertical Pod Autoscaler that
// another party has installed stay unchanged.
func DeployMissingAutoscalerCRDs(ctx context.Context, c client.WithWatch, fieldManager string) error {
	definitions, err := crds.VerticalPodAutoscaler()
	if err != nil {
		return err
	}
	for _, definition := range definitions {
		err := c.Get(ctx, client.ObjectKeyFromObject(definition), kube.Metadata(definition.GroupVersionKind()))
		if apierrors.IsNotFound(err) {
			err = crds.Deploy(ctx, c, fieldManager, definition)
		}
		if err != nil {
			return fmt.Errorf("create CRD %q: %w", definition.Name, err)
		}
	}
	return nil
}
