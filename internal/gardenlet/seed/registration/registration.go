// Package registration creates or updates the Seed of a gardenlet from its configuration. It writes metadata and spec of that one Seed in the
// garden. Source: concepts.txt, gardenlet, "Configuring the Seed to Work with gardenlet".
package registration

import (
	"context"
	"errors"
	"fmt"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// timeout is the end of the registration: a read and a write, repeated after a conflict.
const timeout = time.Minute

// retryAfter is how long after a refusal the Seed is updated again.
const retryAfter = time.Minute

// ErrRefused is in errors for a Seed that exists, and that the garden does not let the gardenlet change: an operator has to do something first, such
// as add a new domain. The shoots of the seed need a gardenlet until then.
var ErrRefused = errors.New("the Seed stays as it is")

// Retry updates the Seed again until the garden no longer refuses it, or the context ends.
func Retry(ctx context.Context, gardenAPI client.Client, config *gardenletconfigv1alpha1.SeedConfig, refused error, clk clock.Clock) {
	log := logf.FromContext(ctx)
	for err := refused; err != nil; err = Register(ctx, gardenAPI, config) {
		log.Error(err, "Failed updating Seed from the configuration, will retry", "after", retryAfter)
		select {
		case <-ctx.Done():
			return
		case <-clk.After(retryAfter):
		}
	}
}

// Register creates the Seed, or updates what differs from the configuration. Labels and annotations that are not in the configuration stay.
func Register(ctx context.Context, gardenAPI client.Client, config *gardenletconfigv1alpha1.SeedConfig) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	log := logf.FromContext(ctx)
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		current := &corev1beta1.Seed{}
		err := gardenAPI.Get(ctx, client.ObjectKey{Name: config.Name}, current)
		if apierrors.IsNotFound(err) {
			log.Info("Creating Seed", "seed", config.Name)
			return gardenAPI.Create(ctx, desired(&corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: config.Name}}, config))
		}
		if err != nil {
			return err
		}
		want := desired(current, config)
		if apiequality.Semantic.DeepEqual(current, want) {
			return nil
		}
		log.Info("Updating Seed", "seed", config.Name)
		err = gardenAPI.Patch(ctx, want, client.MergeFromWithOptions(current, client.MergeFromWithOptimisticLock{}))
		if apierrors.IsForbidden(err) {
			return fmt.Errorf("%w: %w", ErrRefused, err)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("register Seed %q: %w", config.Name, err)
	}
	return nil
}

// desired returns the Seed with labels, annotations and spec of the configuration. The current one is not changed.
func desired(current *corev1beta1.Seed, config *gardenletconfigv1alpha1.SeedConfig) *corev1beta1.Seed {
	seed := current.DeepCopy()
	for key, value := range config.Labels {
		metav1.SetMetaDataLabel(&seed.ObjectMeta, key, value)
	}
	metav1.SetMetaDataLabel(&seed.ObjectMeta, constants.GardenRole, constants.GardenRoleSeed)
	for key, value := range config.Annotations {
		metav1.SetMetaDataAnnotation(&seed.ObjectMeta, key, value)
	}
	seed.Spec = *config.Spec.DeepCopy()
	return seed
}
