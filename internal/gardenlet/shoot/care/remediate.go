package care

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// remediationWarning is the annotation of a webhook configuration that was changed.
const remediationWarning = "Gardener has changed webhooks of this configuration: while their server did not answer, or was slow, the cluster could not " +
	"have woken up, or nodes could not have joined. Leave out the namespace kube-system and cluster-wide resources, or let webhooks fail open."

// cleanUpShoot deletes stale pods of system components, and remediates webhooks if that is configured.
func (r *reconciler) cleanUpShoot(ctx context.Context, o *observed) error {
	if o.shootClient == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var errs []error // the two do not depend on each other
	if ptr.Deref(r.Config.WebhookRemediatorEnabled, false) {
		errs = append(errs, o.remediateWebhooks(ctx))
	}
	if o.nodesError == nil && len(o.nodes) > 0 {
		errs = append(errs, o.deleteStaleSystemPods(ctx, r.Clock.Now()))
	}
	return errors.Join(errs...)
}

// remediateWebhooks changes webhooks that block operations, in all configurations that it can.
func (o *observed) remediateWebhooks(ctx context.Context) error {
	var errs []error
	for i := range o.mutating {
		c := &o.mutating[i]
		errs = append(errs, remediateConfiguration(ctx, o.shootClient, c, func() []webhook { return mutating(c) }))
	}
	for i := range o.validating {
		c := &o.validating[i]
		errs = append(errs, remediateConfiguration(ctx, o.shootClient, c, func() []webhook { return validating(c) }))
	}
	return errors.Join(errs...)
}

func remediateConfiguration(ctx context.Context, shootClient client.Client, config client.Object, webhooks func() []webhook) error {
	if managedByGardener(config) || excluded(config) {
		return nil
	}
	before, changed := config.DeepCopyObject().(client.Object), false //nolint:forcetypeassert // a copy has its original's type
	for _, w := range webhooks() {
		changed = w.remediate() || changed
	}
	if !changed {
		return nil
	}
	annotations := config.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[constants.GardenerWarning] = remediationWarning
	config.SetAnnotations(annotations)
	logf.FromContext(ctx).Info("Remediating webhooks in the shoot", "configuration", config.GetName())
	if err := shootClient.Patch(ctx, config, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patch webhook configuration %q in the shoot: %w", config.GetName(), err)
	}
	return nil
}
