package gardenctl

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
)

// lostBastions returns the Bastions of a lost seed that its gardenlet would have to release. If only some shoots are recovered, only those of these.
func lostBastions(ctx context.Context, g *garden, r recovery) ([]operationsv1alpha1.Bastion, error) {
	ctx, cancel := within(ctx, requestTimeout)
	defer cancel()
	list := &operationsv1alpha1.BastionList{}
	if err := g.client.List(ctx, list, client.MatchingFields{"spec.seedName": r.lost}); err != nil {
		return nil, fmt.Errorf("list Bastions of seed %q: %w", r.lost, err)
	}
	return slices.DeleteFunc(list.Items, func(b operationsv1alpha1.Bastion) bool {
		return !slices.Contains(b.Finalizers, constants.FinalizerGardenerName) ||
			len(r.shoots) > 0 && !slices.Contains(r.shoots, b.Namespace+"/"+b.Spec.ShootRef.Name)
	}), nil
}

// releaseBastions deletes Bastions of shoots that are handed over, and removes the finalizer of them and of those that are being deleted. It is the lost gardenlet
// that removes it otherwise, and they keep the shoot and its project from being deleted.
func (c *cli) releaseBastions(ctx context.Context, g *garden, bastions []operationsv1alpha1.Bastion, done []recoverable) error {
	failed := 0
	for i := range bastions {
		b := &bastions[i]
		handedOver := slices.ContainsFunc(done, func(s recoverable) bool {
			return s.shoot.Namespace == b.Namespace && s.shoot.Name == b.Spec.ShootRef.Name
		})
		if b.DeletionTimestamp == nil && !handedOver {
			continue
		}
		if err := c.releaseBastion(ctx, g, b); err != nil {
			failed++
			fmt.Fprintln(c.ErrOut, err)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d Bastions are not released; repeat the command", failed)
	}
	return nil
}

func (c *cli) releaseBastion(ctx context.Context, g *garden, b *operationsv1alpha1.Bastion) error {
	ctx, cancel := within(ctx, requestTimeout)
	defer cancel()
	if err := deleteReleased(ctx, g, b); err != nil {
		return err
	}
	_, err := fmt.Fprintf(c.Out, "bastion %s of shoot %s in namespace %s is deleted; its machine may be left in the infrastructure\n", b.Name, b.Spec.ShootRef.Name, b.Namespace)
	return err
}
