package system

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/excesscapacity"
)

// reserveExcessCapacity deploys the pods that reserve capacity as the setting of the Seed says, and deletes those of a former setting.
func (s *run) reserveExcessCapacity(ctx context.Context) error {
	v := excesscapacity.Values{Namespace: constants.GardenNamespace, Image: s.Images.Pause, Zones: s.seed.Spec.Provider.Zones}
	if settings := s.seed.Spec.Settings; settings != nil {
		v.Reservation = settings.ExcessCapacityReservation
	}
	desired := excesscapacity.Objects(v)
	if err := s.apply(ctx, desired...); err != nil {
		return err
	}
	return s.deleteReservations(ctx, desired)
}

// releaseExcessCapacity deletes all pods that reserve capacity.
func (s *run) releaseExcessCapacity(ctx context.Context) error { return s.deleteReservations(ctx, nil) }

// deleteReservations deletes the Deployments that reserve capacity, except those that are desired.
func (s *run) deleteReservations(ctx context.Context, desired []client.Object) error {
	existing := &appsv1.DeploymentList{}
	err := s.SeedAPI.List(ctx, existing, client.InNamespace(constants.GardenNamespace), client.MatchingLabels(excesscapacity.Labels()))
	if err != nil {
		return fmt.Errorf("list Deployments that reserve capacity: %w", err)
	}
	for i := range existing.Items {
		deployment := &existing.Items[i]
		if slices.ContainsFunc(desired, func(o client.Object) bool { return o.GetName() == deployment.Name }) {
			continue
		}
		if err := s.SeedAPI.Delete(ctx, deployment, client.PropagationPolicy("Background")); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete Deployment %q: %w", client.ObjectKeyFromObject(deployment), err)
		}
	}
	return nil
}
