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
	"gardener.cloud/gardener/internal/gardenlet/upgrade/trial"
	"gardener.cloud/gardener/internal/kube"
)

// delete deletes the Seed of a ManagedSeed, and then its gardenlet, which is needed for the former.
func (r *reconciler) delete(ctx context.Context, object *seedmanagementv1alpha1.ManagedSeed, shoot *corev1beta1.Shoot) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(object, constants.FinalizerGardenerName) {
		r.forget(object)
		return reconcile.Result{}, nil
	}
	seed, err := r.seed(ctx, object.Name)
	if err == nil && revives(object, shoot, seed, r.Clock.Now()) {
		return r.revive(ctx, object, shoot, seed)
	}
	r.forget(object)
	missing := ""
	if err == nil {
		missing, err = r.deleteNext(ctx, object, shoot, seed)
	}
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

// forget ends what is known of the gardenlet of a ManagedSeed that is not deployed any more.
func (r *reconciler) forget(object *seedmanagementv1alpha1.ManagedSeed) {
	r.watches.end(client.ObjectKeyFromObject(object))
	r.checks.Forget(client.ObjectKeyFromObject(object))
}

// revive deploys the gardenlet with new credentials while its Seed is deleted: only the gardenlet can do that.
func (r *reconciler) revive(
	ctx context.Context, object *seedmanagementv1alpha1.ManagedSeed, shoot *corev1beta1.Shoot, seed *corev1beta1.Seed,
) (reconcile.Result, error) {
	missing, err := r.deleteSeed(ctx, seed)
	current := deployed{Renews: true}
	if err == nil {
		_, current, err = r.deploy(ctx, object, shoot)
	}
	if errors.Is(err, errUnconfirmed) { // it is tried again
		current.Renews, err = true, nil
	}
	if kube.Contested(err) {
		return kube.Result(err)
	}
	if err != nil {
		r.watches.end(client.ObjectKeyFromObject(object)) // its client may have credentials that are not valid any more
		err = fmt.Errorf("give the gardenlet a new client certificate, so that it deletes Seed %q: %w", object.Name, err)
		return reconcile.Result{}, errors.Join(err, r.report(ctx, object, deleteFailed(err)))
	}
	if err := r.report(ctx, object, deleting(missing+". Its gardenlet gets a new client certificate for that")); err != nil || current.Renews {
		return waiting(trial.SteadyTime, err)
	}
	return waiting(trial.SteadyTime, r.renewed(ctx, object))
}

// deleteSeed deletes a Seed. It returns what that waits for.
func (r *reconciler) deleteSeed(ctx context.Context, seed *corev1beta1.Seed) (missing string, err error) {
	if seed.DeletionTimestamp == nil {
		logf.FromContext(ctx).Info("Deleting Seed", "seed", seed.Name)
		if err := r.GardenAPI.Delete(ctx, seed, client.Preconditions{UID: &seed.UID}); client.IgnoreNotFound(err) != nil {
			return "", fmt.Errorf("delete Seed %q: %w", seed.Name, err)
		}
	}
	return fmt.Sprintf("Waiting until Seed %s is deleted", seed.Name), nil
}

// deleteNext deletes what can be deleted now. It returns what that waits for, or "" if nothing is left. The Seed may be nil.
func (r *reconciler) deleteNext(
	ctx context.Context, object *seedmanagementv1alpha1.ManagedSeed, shoot *corev1beta1.Shoot, seed *corev1beta1.Seed,
) (missing string, err error) {
	if seed != nil {
		missing, err := r.deleteSeed(ctx, seed)
		if err == nil && (renews(object) || expired(seed, r.Clock.Now())) {
			missing += fmt.Sprintf(". Its gardenlet needs a new client certificate for that, which it gets when shoot %s is reconciled", shoot.Name)
		}
		return missing, err
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
