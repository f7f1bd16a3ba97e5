package installation

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/chart"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/helm"
)

const fieldManager = "gardenlet"

type reconciler struct {
	Values
	gardenCache, seedCache client.Client
	charts                 *chart.Puller
}

// Reconcile installs an extension, or removes it.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	ci := &corev1beta1.ControllerInstallation{}
	if err := r.gardenCache.Get(ctx, req.NamespacedName, ci); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	// The cache may not have the conditions yet that the last pass has written.
	if err := r.GardenAPI.Get(ctx, req.NamespacedName, ci); err != nil {
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
	seed := &corev1beta1.Seed{}
	if err := r.gardenCache.Get(ctx, client.ObjectKey{Name: r.SeedName}, seed); err != nil {
		return reconcile.Result{}, fmt.Errorf("read Seed %q: %w", r.SeedName, err)
	}
	objects, err := r.render(ctx, ci, deployment, seed)
	if err != nil {
		statusErr := r.writeConditions(ctx, ci, invalid(err))
		if statusErr == nil && errors.Is(err, chart.ErrInvalid) {
			return reconcile.Result{}, reconcile.TerminalError(err)
		}
		return kube.Result(errors.Join(err, statusErr))
	}
	if err := r.install(ctx, ci, deployment, seed.Spec.Provider.Zones, objects); err != nil {
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
	ctx context.Context, ci *corev1beta1.ControllerInstallation, deployment *gardencorev1.ControllerDeployment, seed *corev1beta1.Seed,
) ([]*unstructured.Unstructured, error) {
	identity := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: constants.ClusterIdentity}
	if err := r.GardenAPI.Get(ctx, key, identity); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read identity of the garden: %w", err)
	}
	version, err := r.SeedVersion.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("read version of the seed: %w", err)
	}
	data, err := chart.ReadResources(ctx, r.GardenAPI, deployment.Resources)
	if err != nil {
		return nil, err
	}
	values, err := r.values(deployment, data, seed, identity.Data[constants.ClusterIdentity])
	if err != nil {
		return nil, fmt.Errorf("%w: values: %w", chart.ErrInvalid, err)
	}
	archive := deployment.Helm.RawChart
	if len(archive) == 0 {
		if deployment.Helm.OCIRepository == nil {
			return nil, fmt.Errorf("%w: ControllerDeployment %q has no chart", chart.ErrInvalid, deployment.Name)
		}
		if archive, err = r.charts.PullFor(ctx, r.GardenAPI, deployment.Helm.OCIRepository); err != nil {
			return nil, err
		}
	}
	objects, err := helm.Render(archive, helm.Release{
		Name: ci.Spec.RegistrationRef.Name, Namespace: namespaceName(ci), Kubernetes: *version, Values: values,
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", chart.ErrInvalid, data.Withheld(err))
	}
	for _, object := range objects {
		// The Secrets with the access are in the namespace of the extension.
		access := gardenAccess(deployment) && object.GetNamespace() == namespaceName(ci) && object.GetLabels()[constants.InjectGardenKubeconfig] != "false"
		if err := chart.ChangePods(object, func(spec *corev1.PodSpec) {
			if access {
				injectAccess(spec, r.kubeconfigName())
			}
			injectSeedName(spec, r.SeedName)
		}); err != nil {
			return nil, fmt.Errorf("%w: %w", chart.ErrInvalid, data.Withheld(&helm.Error{At: "pods of a " + object.GetKind(), Err: err}))
		}
	}
	return objects, nil
}

// install applies the objects for an extension to the seed. Without garden access, that of a former version of the ControllerDeployment is
// revoked when its pods have been replaced in the ManagedResource.
func (r *reconciler) install(
	ctx context.Context, ci *corev1beta1.ControllerInstallation, deployment *gardencorev1.ControllerDeployment, zones []string,
	objects []*unstructured.Unstructured,
) error {
	existing := &corev1.Namespace{}
	if err := r.seedCache.Get(ctx, client.ObjectKey{Name: namespaceName(ci)}, existing); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read namespace %q: %w", namespaceName(ci), err)
	} else if existing.DeletionTimestamp != nil { // what is applied to it would be deleted too
		return fmt.Errorf("namespace %q is being deleted", namespaceName(ci))
	}
	access := gardenAccess(deployment)
	own := []client.Object{namespace(ci, zones)}
	if access {
		secrets, err := r.accessObjects(ci)
		if err != nil {
			return err
		}
		own = append(own, secrets...)
	}
	if err := kube.Apply(ctx, r.seedCache, fieldManager, own...); err != nil {
		return err
	}
	managed, err := managedObjects(ci, objects, chart.UsesSecrets(deployment.Resources))
	if err != nil {
		return err
	}
	if err := kube.Apply(ctx, r.seedCache, fieldManager, managed...); err != nil || access {
		return err
	}
	return r.revokeAccess(ctx, ci)
}

// revokeAccess deletes the access of an extension to the garden: first the Secrets, so that the token requestor does not recreate the
// ServiceAccount.
func (r *reconciler) revokeAccess(ctx context.Context, ci *corev1beta1.ControllerInstallation) error {
	for _, name := range []string{accessSecret, r.kubeconfigName()} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespaceName(ci), Name: name}}
		if err := r.seedCache.Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete Secret %q: %w", client.ObjectKeyFromObject(secret), err)
		}
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: constants.SeedNamespaceNamePrefix + r.SeedName, Name: namespaceName(ci),
	}}
	if err := r.gardenCache.Delete(ctx, account); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete ServiceAccount %q in the garden: %w", client.ObjectKeyFromObject(account), err)
	}
	return nil
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
	if err := r.revokeAccess(ctx, ci); err != nil {
		return err
	}
	// A ControllerInstallation that is created afterwards may have the same name, and must find no namespace that is being deleted.
	if err := r.seedCache.Delete(ctx, namespace(ci, nil)); err == nil {
		return nil // the watch triggers when it is deleted
	} else if !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete namespace %q: %w", namespaceName(ci), err)
	}
	return kube.RemoveFinalizer(ctx, r.gardenCache, ci, constants.FinalizerControllerInstallation)
}
