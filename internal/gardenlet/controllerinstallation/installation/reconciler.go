package installation

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/gardenlet/controllerinstallation/chart"
	"gardener.cloud/gardener/internal/kube"
)

const fieldManager = "gardenlet"

type reconciler struct {
	Values
	gardenCache, seedCache client.Client
	charts                 *chart.Puller
}

// errInvalid is for errors that only a change of the objects in the garden can fix.
var errInvalid = errors.New("not valid")

// Reconcile installs an extension, or removes it.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	ci := &corev1beta1.ControllerInstallation{}
	if err := r.gardenCache.Get(ctx, req.NamespacedName, ci); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if ci.DeletionTimestamp != nil {
		return kube.Result(r.remove(ctx, ci))
	}
	if ci.Spec.DeploymentRef == nil {
		return kube.Result(r.writeConditions(ctx, ci, withoutDeployment()...))
	}
	deployment := &gardencorev1.ControllerDeployment{}
	if err := r.GardenAPI.Get(ctx, client.ObjectKey{Name: ci.Spec.DeploymentRef.Name}, deployment); err != nil {
		return reconcile.Result{}, fmt.Errorf("read ControllerDeployment %q: %w", ci.Spec.DeploymentRef.Name, err)
	}
	if deployment.Helm == nil {
		return reconcile.Result{}, nil // the ControllerDeployment has another type
	}
	if err := kube.AddFinalizer(ctx, r.gardenCache, ci, constants.FinalizerControllerInstallation); err != nil {
		return kube.Result(err)
	}
	objects, err := r.render(ctx, ci, deployment)
	if err != nil {
		if statusErr := r.writeConditions(ctx, ci, invalid(err)); statusErr != nil {
			err = errors.Join(err, statusErr)
		}
		if errors.Is(err, errInvalid) {
			return reconcile.Result{}, reconcile.TerminalError(err)
		}
		return kube.Result(err)
	}
	if err := r.install(ctx, ci, objects); err != nil {
		return kube.Result(errors.Join(err, r.writeConditions(ctx, ci, valid(), failed(err))))
	}
	conditions := []corev1beta1.Condition{valid()}
	if kube.Condition(ci.Status.Conditions, corev1beta1.ControllerInstallationInstalled) == nil {
		conditions = append(conditions, pending()) // then the care reconciler writes it
	}
	return kube.Result(r.writeConditions(ctx, ci, conditions...))
}

// render returns the objects of the chart.
func (r *reconciler) render(
	ctx context.Context, ci *corev1beta1.ControllerInstallation, deployment *gardencorev1.ControllerDeployment,
) ([]*unstructured.Unstructured, error) {
	seed, identity := &corev1beta1.Seed{}, &corev1.ConfigMap{}
	if err := r.gardenCache.Get(ctx, client.ObjectKey{Name: r.SeedName}, seed); err != nil {
		return nil, fmt.Errorf("read Seed %q: %w", r.SeedName, err)
	}
	key := client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: constants.ClusterIdentity}
	if err := r.GardenAPI.Get(ctx, key, identity); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read identity of the garden: %w", err)
	}
	version, err := r.SeedVersion.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("read version of the seed: %w", err)
	}
	values, err := r.values(deployment, seed, identity.Data[constants.ClusterIdentity])
	if err != nil {
		return nil, fmt.Errorf("%w: values: %w", errInvalid, err)
	}
	archive := deployment.Helm.RawChart
	if len(archive) == 0 {
		if deployment.Helm.OCIRepository == nil {
			return nil, fmt.Errorf("%w: ControllerDeployment %q has no chart", errInvalid, deployment.Name)
		}
		if archive, err = r.pull(ctx, deployment.Helm.OCIRepository); err != nil {
			return nil, err
		}
	}
	objects, err := chart.Render(archive, chart.Release{
		Name: ci.Spec.RegistrationRef.Name, Namespace: namespaceName(ci), Kubernetes: *version, Values: values,
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errInvalid, err)
	}
	if ptr.Deref(deployment.InjectGardenKubeconfig, false) {
		for _, object := range objects {
			if err := injectAccess(object, r.kubeconfigName(), r.SeedName); err != nil {
				return nil, fmt.Errorf("%w: %w", errInvalid, err)
			}
		}
	}
	return objects, nil
}

// pull pulls a chart with the credentials that the ControllerDeployment refers to.
func (r *reconciler) pull(ctx context.Context, repository *gardencorev1.OCIRepository) ([]byte, error) {
	var access chart.Access
	for _, secret := range []struct {
		ref  *corev1.LocalObjectReference
		key  string
		into *[]byte
	}{
		{repository.PullSecretRef, corev1.DockerConfigJsonKey, &access.DockerConfig}, {repository.CABundleSecretRef, "bundle.crt", &access.CABundle},
	} {
		if secret.ref == nil {
			continue
		}
		found, key := &corev1.Secret{}, client.ObjectKey{Namespace: constants.GardenNamespace, Name: secret.ref.Name}
		if err := r.GardenAPI.Get(ctx, key, found); err != nil {
			return nil, fmt.Errorf("read Secret %q: %w", key, err)
		}
		*secret.into = found.Data[secret.key]
	}
	return r.charts.Pull(ctx, repository, access)
}

// install applies the objects for an extension to the seed.
func (r *reconciler) install(ctx context.Context, ci *corev1beta1.ControllerInstallation, objects []*unstructured.Unstructured) error {
	access, err := r.accessObjects(ci)
	if err != nil {
		return err
	}
	if err := kube.Apply(ctx, r.seedCache, fieldManager, append([]client.Object{namespace(ci)}, access...)...); err != nil {
		return err
	}
	managed, err := managedObjects(ci, objects)
	if err != nil {
		return err
	}
	return kube.Apply(ctx, r.seedCache, fieldManager, managed...)
}

// remove deletes an extension from the seed, one object after the other, and finally removes the finalizer.
func (r *reconciler) remove(ctx context.Context, ci *corev1beta1.ControllerInstallation) error {
	if !controllerutil.ContainsFinalizer(ci, constants.FinalizerControllerInstallation) {
		return nil
	}
	log := logf.FromContext(ctx)
	mr := &resourcesv1alpha1.ManagedResource{}
	key := client.ObjectKey{Namespace: constants.GardenNamespace, Name: ci.Name}
	if err := r.seedCache.Get(ctx, key, mr); err == nil {
		if mr.DeletionTimestamp == nil {
			log.Info("Deleting ManagedResource", "managedResource", key)
		}
		return client.IgnoreNotFound(r.seedCache.Delete(ctx, mr)) // the watch triggers when it is deleted
	} else if !apierrors.IsNotFound(err) {
		return fmt.Errorf("read ManagedResource %q: %w", key, err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if err := r.seedCache.Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete Secret %q: %w", key, err)
	}
	if err := r.seedCache.Delete(ctx, namespace(ci)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete namespace %q: %w", namespaceName(ci), err)
	}
	return kube.RemoveFinalizer(ctx, r.gardenCache, ci, constants.FinalizerControllerInstallation)
}
