package managedseed

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/component/gardenlet"
	"gardener.cloud/gardener/internal/component/gardenlet/release"
	"gardener.cloud/gardener/internal/kube"
)

// delete deletes the Seed of a ManagedSeed, and then its gardenlet, which is needed for the former.
func (r *reconciler) delete(ctx context.Context, object *seedmanagementv1alpha1.ManagedSeed, shoot *corev1beta1.Shoot) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(object, constants.FinalizerGardenerName) {
		return reconcile.Result{}, nil
	}
	missing, err := r.deleteNext(ctx, object, shoot)
	switch {
	case kube.Contested(err):
		return kube.Result(err)
	case err != nil:
		return reconcile.Result{}, errors.Join(err, r.report(ctx, object, deleteFailed(err)))
	case missing != "":
		return waiting(r.Config.WaitSyncPeriod.Duration, r.report(ctx, object, deleting(missing)))
	}
	return kube.Result(kube.RemoveFinalizer(ctx, r.gardenCache, object, constants.FinalizerGardenerName))
}

// deleteNext deletes what can be deleted now. It returns what that waits for, or "" if nothing is left.
func (r *reconciler) deleteNext(ctx context.Context, object *seedmanagementv1alpha1.ManagedSeed, shoot *corev1beta1.Shoot) (missing string, err error) {
	seed, err := r.seed(ctx, object.Name)
	if err != nil {
		return "", err
	}
	if seed != nil {
		if seed.DeletionTimestamp == nil {
			logf.FromContext(ctx).Info("Deleting Seed", "seed", seed.Name)
			if err := r.GardenAPI.Delete(ctx, seed, client.Preconditions{UID: &seed.UID}); client.IgnoreNotFound(err) != nil {
				return "", fmt.Errorf("delete Seed %q: %w", seed.Name, err)
			}
		}
		return fmt.Sprintf("Waiting until Seed %s is deleted", seed.Name), nil
	}
	d, err := r.prepare(ctx, object)
	if err != nil {
		return "", err
	}
	if missing, err := r.deleteGardenlet(ctx, d, shoot); missing != "" || err != nil {
		return missing, err
	}
	return "", r.deleteBackupSecret(ctx, object, d.config)
}

// deleteGardenlet deletes what was deployed into a shoot, unless it belongs to another seed. It returns what that waits for.
func (r *reconciler) deleteGardenlet(ctx context.Context, d desired, shoot *corev1beta1.Shoot) (missing string, err error) {
	shootClient, err := r.connect(ctx, shoot)
	if err != nil {
		return "", err
	}
	running, err := release.RunsIn(ctx, shootClient)
	if err != nil {
		return "", err
	}
	if running.Seed != "" && running.Seed != d.gardenlet.Name {
		return "", nil
	}
	objects, err := r.render(d, shoot, nil)
	if err != nil {
		return "", err
	}
	for _, object := range objects {
		if err := shootClient.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("delete %s %q of the gardenlet: %w", object.GetObjectKind().GroupVersionKind().Kind, object.GetName(), err)
		}
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: constants.GardenNamespace}}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: gardenlet.Name}}
	if exists, err := exists(ctx, shootClient, deployment); exists || err != nil {
		return "Waiting until the gardenlet is deleted", err
	}
	if exists, err := exists(ctx, shootClient, namespace); !exists || err != nil {
		return "", err
	}
	if namespace.DeletionTimestamp == nil {
		// It has the kubeconfigs, too.
		if err := shootClient.Delete(ctx, namespace); client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("delete namespace %q: %w", namespace.Name, err)
		}
	}
	return fmt.Sprintf("Waiting until namespace %s of shoot %s is deleted", namespace.Name, shoot.Name), nil
}

func exists(ctx context.Context, reader client.Reader, object client.Object) (bool, error) {
	if err := reader.Get(ctx, client.ObjectKeyFromObject(object), object); apierrors.IsNotFound(err) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("read %T %q: %w", object, client.ObjectKeyFromObject(object), err)
	}
	return true, nil
}

// deleteBackupSecret deletes the credentials for backups if they belong to the ManagedSeed.
func (r *reconciler) deleteBackupSecret(ctx context.Context, object *seedmanagementv1alpha1.ManagedSeed, config release.Configuration) error {
	spec, err := seedSpec(config)
	if err != nil {
		return err
	}
	secret, key := &corev1.Secret{}, backupSecret(spec)
	if key.Name == "" {
		return nil
	}
	if err := r.GardenAPI.Get(ctx, key, secret); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("read Secret %q with the credentials for backups: %w", key, err)
	}
	if !slices.ContainsFunc(secret.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == object.UID }) {
		return nil
	}
	return kube.DeleteUnchanged(ctx, r.GardenAPI, secret)
}
