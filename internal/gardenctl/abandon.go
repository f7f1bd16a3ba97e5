package gardenctl

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/kube"
)

// notAbandonable returns why the deletion of a shoot cannot be ended without its seed.
func notAbandonable(shoot *corev1beta1.Shoot, lost string) error {
	switch on := ptr.Deref(shoot.Status.SeedName, lost); {
	case on != lost:
		return fmt.Errorf("its control plane is on seed %q, which is not lost", on)
	case shoot.DeletionTimestamp == nil:
		return errors.New("it is not being deleted; delete it first")
	}
	return nil
}

// abandonShoot does in the garden what the gardenlet of the lost seed would have done after it had deleted everything. The finalizer of the Shoot is removed
// last, so that all is repeated after an interruption.
func (c *cli) abandonShoot(ctx context.Context, g *garden, s recoverable, r recovery) error {
	ctx, cancel := within(ctx, requestTimeout)
	defer cancel()
	if err := notAbandonable(s.shoot, r.lost); err != nil {
		return err
	}
	if s.shoot.Status.TechnicalID != "" {
		name := backupEntryName(s.shoot)
		for _, name := range []string{name, constants.BackupSourcePrefix + "-" + name} {
			if err := deleteReleased(ctx, g, &corev1beta1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Namespace: s.shoot.Namespace, Name: name}}); err != nil {
				return err
			}
		}
	}
	if s.state != nil { // it has the credentials of the shoot
		if err := deleteConfirmed(ctx, g, s.state); err != nil {
			return fmt.Errorf("delete ShootState: %w", err)
		}
	}
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := g.client.Get(ctx, client.ObjectKeyFromObject(s.shoot), s.shoot); err != nil {
			return err
		}
		if err := notAbandonable(s.shoot, r.lost); err != nil {
			return err
		}
		before := s.shoot.DeepCopy()
		s.shoot.Status.LastErrors, s.shoot.Status.LastOperation = nil, &corev1beta1.LastOperation{
			Type: corev1beta1.LastOperationTypeDelete, State: corev1beta1.LastOperationStateSucceeded, Progress: 100, LastUpdateTime: metav1.NewTime(c.Clock.Now()),
			Description: fmt.Sprintf("Seed %q is lost, and nothing was deleted there or in the infrastructure.", r.lost),
		}
		// The API server allows to remove the finalizer only after a deletion that has succeeded.
		if err := g.client.Status().Patch(ctx, s.shoot, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return err
		}
		return kube.RemoveFinalizer(ctx, g.client, s.shoot, constants.FinalizerGardenerName)
	})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("end its deletion: %w", err)
	}
	return nil
}

// deleteConfirmed deletes an object that is only deleted with a confirmation. A missing one is not an error.
func deleteConfirmed(ctx context.Context, g *garden, obj client.Object) error {
	err := kube.PatchMetadata(ctx, g.client, obj, func(o *metav1.PartialObjectMetadata) {
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, constants.ConfirmationDeletion, "true")
	})
	if err == nil {
		err = g.client.Delete(ctx, obj, client.Preconditions{UID: new(obj.GetUID())})
	}
	return client.IgnoreNotFound(err)
}

// deleteReleased deletes an object, and removes the finalizer that the gardenlet of the lost seed does not remove any more. A missing one is not an error.
func deleteReleased(ctx context.Context, g *garden, obj client.Object) error {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := g.client.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		if obj.GetDeletionTimestamp() == nil {
			if err := g.client.Delete(ctx, obj, client.Preconditions{UID: new(obj.GetUID())}); err != nil {
				return err
			}
			if err := g.client.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
				return err
			}
		}
		return kube.RemoveFinalizer(ctx, g.client, obj, constants.FinalizerGardenerName)
	})
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("delete %T %q: %w", obj, client.ObjectKeyFromObject(obj), err)
}

// leftOf says what may be left of a shoot that was abandoned.
func leftOf(s recoverable) string {
	id := s.shoot.Status.TechnicalID
	if id == "" {
		return fmt.Sprintf("shoot %s: nothing was created for it", s.shoot.Name)
	}
	left := []string{fmt.Sprintf("machines, volumes, load balancers and networks of %s at the provider %s in region %s", id, s.shoot.Spec.Provider.Type, s.shoot.Spec.Region)}
	if dns := s.shoot.Spec.DNS; dns != nil && dns.Domain != nil {
		left = append(left, "DNS records below "+*dns.Domain+" and the internal domain")
	} else {
		left = append(left, "DNS records below the internal domain")
	}
	if s.entry != nil {
		left = append(left, fmt.Sprintf("backups in directory %s of bucket %s", s.entry.Name, s.entry.Spec.BucketName))
	}
	return fmt.Sprintf("shoot %s: look for %s", s.shoot.Name, strings.Join(left, "; "))
}
