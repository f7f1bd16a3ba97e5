package fence

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/component/dependencywatchdog"
	"gardener.cloud/gardener/internal/component/extensionobject"
)

// eventReason is that of the events of the Seed.
const eventReason = "ControlPlaneFenced"

// stop scales down what creates and deletes machines, and what evicts pods from them. dependency-watchdog scales up only what has its annotations.
func (r *reconciler) stop(ctx context.Context, namespace string) error {
	var errs []error
	for _, of := range dependencywatchdog.Scaled() {
		deployment := &appsv1.Deployment{}
		if err := r.SeedAPI.Get(ctx, client.ObjectKey{Namespace: namespace, Name: of}, deployment); err != nil {
			errs = append(errs, client.IgnoreNotFound(err))
			continue
		}
		before := deployment.DeepCopy()
		deployment.Spec.Replicas = new(int32(0))
		dependencywatchdog.Release(deployment)
		if err := r.SeedAPI.Patch(ctx, deployment, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			errs = append(errs, fmt.Errorf("scale Deployment %s/%s to zero: %w", namespace, of, err))
		}
	}
	return errors.Join(errs...)
}

// releaseDNS lets extensions write the DNS records no more.
func (r *reconciler) releaseDNS(ctx context.Context, namespace string) error {
	records := &extensionsv1alpha1.DNSRecordList{}
	if err := r.SeedAPI.List(ctx, records, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("list DNSRecords: %w", err)
	}
	var errs []error
	for i := range records.Items {
		errs = append(errs, extensionobject.Migrate(ctx, extensionobject.Values{Client: r.SeedAPI, Clock: r.Clock}, &records.Items[i]))
	}
	return errors.Join(errs...)
}

// report tells operators, who look at the Seed, what to do with what is left.
func (r *reconciler) report(ctx context.Context, namespace string, shoot *corev1beta1.Shoot) error {
	seed := &corev1beta1.Seed{}
	if err := r.gardenCache.Get(ctx, client.ObjectKey{Name: r.SeedName}, seed); err != nil {
		return fmt.Errorf("read Seed: %w", err)
	}
	logf.FromContext(ctx).Info("Fenced the control plane of a shoot of another seed", "shoot", client.ObjectKeyFromObject(shoot))
	r.recorder.Eventf(seed, nil, corev1.EventTypeWarning, eventReason, "Fence",
		"Shoot %s/%s does not belong to this seed, which has its control plane in namespace %s: what acts on machines is scaled to zero, DNS records are released. "+
			"Delete the namespace, and the finalizers of the extension resources in it, if the shoot runs on another seed.", shoot.Namespace, shoot.Name, namespace)
	return nil
}
