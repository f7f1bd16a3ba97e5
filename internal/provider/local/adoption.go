package local

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/component/machinecontrollermanager"
	"gardener.cloud/gardener/pkg/extension/webhook/controlplane"
)

// adoptionRetry is the delay before machine-controller-managers are checked again of which some have no driver. The webhook may not be registered yet.
const adoptionRetry = 5 * time.Second

// adoption adds the driver, once after the start, to machine-controller-managers that a gardenlet has deployed when there was no webhook: a version of
// this process without one was still running. Without the driver, no machine is created until the next reconciliation of the shoot.
type adoption struct {
	client client.Client
	reader client.Reader
	clock  clock.WithTicker
}

// Start implements manager.Runnable.
func (a *adoption) Start(ctx context.Context) error {
	for {
		err := a.adopt(ctx)
		if err == nil || ctx.Err() != nil {
			return nil
		}
		logf.FromContext(ctx).Info("Checking machine-controller-managers without a driver again", "reason", err.Error())
		timer := a.clock.NewTimer(adoptionRetry)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C():
		}
	}
}

// adopt sends a change of nothing for each machine-controller-manager without a driver, so that the webhook is called.
func (a *adoption) adopt(ctx context.Context) error {
	namespaces := &corev1.NamespaceList{}
	if err := a.reader.List(ctx, namespaces, client.MatchingLabels{constants.ShootProvider: Type}); err != nil {
		return fmt.Errorf("list Namespaces: %w", err)
	}
	var errs []error
	for i := range namespaces.Items {
		deployment := &appsv1.Deployment{}
		err := a.reader.Get(ctx, client.ObjectKey{Namespace: namespaces.Items[i].Name, Name: machinecontrollermanager.Name}, deployment)
		if client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("read Deployment of namespace %q: %w", namespaces.Items[i].Name, err))
		}
		if err != nil || !lacksDriver(deployment) {
			continue
		}
		if err := a.client.Patch(ctx, deployment, client.RawPatch(types.MergePatchType, []byte("{}"))); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("patch Deployment of namespace %q: %w", deployment.Namespace, err))
		} else if err == nil && lacksDriver(deployment) {
			errs = append(errs, fmt.Errorf("the machine-controller-manager in namespace %q has no container %q yet", deployment.Namespace, driverName))
		}
	}
	return errors.Join(errs...)
}

// lacksDriver reports whether a machine-controller-manager needs the driver. One without the label is of an earlier version, and has its own.
func lacksDriver(deployment *appsv1.Deployment) bool {
	container := controlplane.Container(&deployment.Spec.Template.Spec, machinecontrollermanager.Name)
	return deployment.DeletionTimestamp == nil && deployment.Labels[extensionsv1alpha1.LabelMutatedByControlPlaneWebhook] == "true" &&
		container != nil && len(container.Command) > 0 && container.Command[0] == machinecontrollermanager.Command &&
		controlplane.Container(&deployment.Spec.Template.Spec, driverName) == nil
}
