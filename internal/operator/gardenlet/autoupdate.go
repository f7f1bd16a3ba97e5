package gardenlet

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
)

// UpdateCharts gives the Gardenlets that are labelled for it a chart by its full reference: that of the release of the operator. Secrets with
// credentials and CA bundle that they refer to stay. It is for the end of the Garden's reconciliation, as gardenlets may not be newer than the garden.
func UpdateCharts(ctx context.Context, virtual client.Client, reference string) error {
	gardenlets := &seedmanagementv1alpha1.GardenletList{}
	selector := client.MatchingLabels{operatorv1alpha1.LabelKeyGardenletAutoUpdates: "true"}
	if err := virtual.List(ctx, gardenlets, client.InNamespace(constants.GardenNamespace), selector); err != nil {
		return fmt.Errorf("list Gardenlets: %w", err)
	}
	var errs []error
	for i := range gardenlets.Items {
		before := &gardenlets.Items[i]
		repository := before.Spec.Deployment.Helm.OCIRepository
		if before.DeletionTimestamp != nil || repository.Ref != nil && *repository.Ref == reference {
			continue
		}
		after := before.DeepCopy()
		after.Spec.Deployment.Helm.OCIRepository = gardencorev1.OCIRepository{
			Ref: &reference, PullSecretRef: repository.PullSecretRef, CABundleSecretRef: repository.CABundleSecretRef,
		}
		if err := virtual.Patch(ctx, after, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("update the chart of Gardenlet %q: %w", before.Name, err))
		}
	}
	return errors.Join(errs...)
}
