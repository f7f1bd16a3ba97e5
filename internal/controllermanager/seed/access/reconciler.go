package access

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/controllermanager/references"
	"gardener.cloud/gardener/internal/kube"
)

type reconciler struct{ gardenCache client.Client }

// Reconcile creates, updates and deletes the Roles and RoleBindings of a Seed. Those of a Seed that is being deleted stay, as its gardenlet
// deletes what is in the seed; the garbage collector deletes them with the Seed.
func (r *reconciler) Reconcile(ctx context.Context, seed *corev1beta1.Seed) (reconcile.Result, error) {
	o, err := r.observe(ctx, seed)
	if err != nil {
		return reconcile.Result{}, err
	}
	desired := o.rules()
	var errs []error // namespaces do not depend on each other
	for _, namespace := range slices.Sorted(maps.Keys(desired)) {
		err := r.write(ctx, seed, namespace, desired[namespace])
		if apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			logf.FromContext(ctx).V(1).Info("Granting nothing in a namespace that does not exist", "namespace", namespace)
			err = nil // there is nothing to access; that of the seed is watched
		}
		errs = append(errs, err)
	}
	return kube.Result(errors.Join(append(errs, r.revoke(ctx, seed, desired))...))
}

// observe reads what belongs to a Seed. That a gardenlet can write the status of Shoots grants it nothing: spec.seedName decides.
func (r *reconciler) observe(ctx context.Context, seed *corev1beta1.Seed) (*observed, error) {
	o := &observed{seed: seed, projects: map[string]string{}}
	ofSeed := references.To(references.RefOf(references.Seed, seed))
	shoots, entries, buckets, installations := &corev1beta1.ShootList{}, &corev1beta1.BackupEntryList{}, &corev1beta1.BackupBucketList{}, &corev1beta1.ControllerInstallationList{}
	for _, list := range []client.ObjectList{shoots, entries, buckets, installations} {
		if err := r.gardenCache.List(ctx, list, ofSeed, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list %T of Seed %q: %w", list, seed.Name, err)
		}
	}
	for i := range shoots.Items {
		shoot := &shoots.Items[i]
		if ptr.Deref(shoot.Spec.SeedName, "") != seed.Name {
			continue
		}
		o.shoots = append(o.shoots, *shoot)
		credentials, err := r.credentials(ctx, shoot)
		if err != nil {
			return nil, err
		}
		o.credentials = append(o.credentials, credentials...)
		if issuerSecret(shoot, "") != "" {
			if err := r.addProject(ctx, o.projects, shoot.Namespace); err != nil {
				return nil, err
			}
		}
	}
	o.buckets = buckets.Items
	for i := range entries.Items {
		name := entries.Items[i].Spec.BucketName
		if slices.ContainsFunc(o.buckets, func(b corev1beta1.BackupBucket) bool { return b.Name == name }) {
			continue
		}
		bucket := corev1beta1.BackupBucket{}
		if err := r.gardenCache.Get(ctx, client.ObjectKey{Name: name}, &bucket); err == nil {
			o.buckets = append(o.buckets, bucket)
		} else if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("read BackupBucket %q: %w", name, err)
		}
	}
	for i := range installations.Items {
		ref := installations.Items[i].Spec.DeploymentRef
		if ref == nil {
			continue
		}
		deployment := gardencorev1.ControllerDeployment{}
		if err := r.gardenCache.Get(ctx, client.ObjectKey{Name: ref.Name}, &deployment); err == nil {
			o.deployments = append(o.deployments, deployment)
		} else if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("read ControllerDeployment %q: %w", ref.Name, err)
		}
	}
	return o, nil
}

// credentials returns what the binding of a Shoot refers to.
func (r *reconciler) credentials(ctx context.Context, shoot *corev1beta1.Shoot) ([]references.Ref, error) {
	ref, ok := bindingRef(shoot)
	if !ok {
		return nil, nil
	}
	var binding client.Object = &securityv1alpha1.CredentialsBinding{}
	if ref.Kind == references.SecretBinding {
		binding = &corev1beta1.SecretBinding{}
	}
	if err := r.gardenCache.Get(ctx, ref.ObjectKey(), binding); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read %s %q: %w", ref.Kind, ref.ObjectKey(), err)
	}
	return references.Of(binding, references.Secret, references.InternalSecret), nil
}

// addProject adds the name of the project whose namespace it is.
func (r *reconciler) addProject(ctx context.Context, to map[string]string, namespace string) error {
	projects := &corev1beta1.ProjectList{}
	ref := references.Ref{Kind: references.Namespace, Name: namespace}
	if err := r.gardenCache.List(ctx, projects, references.To(ref), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("find the Project of namespace %q: %w", namespace, err)
	}
	for i := range projects.Items {
		to[namespace] = projects.Items[i].Name
	}
	return nil
}

// write creates or updates the Role and the RoleBinding in a namespace, unless they are up to date.
func (r *reconciler) write(ctx context.Context, seed *corev1beta1.Seed, namespace string, rules []rbacv1.PolicyRule) error {
	role, binding := objects(seed, namespace, rules)
	key := client.ObjectKeyFromObject(role)
	log := logf.FromContext(ctx).WithValues("namespace", namespace)

	before := &rbacv1.Role{}
	switch err := r.gardenCache.Get(ctx, key, before); {
	case apierrors.IsNotFound(err):
		log.Info("Creating Role", "role", key.Name)
		if err := r.gardenCache.Create(ctx, role); err != nil {
			return fmt.Errorf("create Role %q: %w", key, err)
		}
	case err != nil:
		return fmt.Errorf("read Role %q: %w", key, err)
	case !apiequality.Semantic.DeepEqual(before.Rules, role.Rules) || !metav1.IsControlledBy(before, seed):
		log.Info("Updating Role", "role", key.Name)
		role.ResourceVersion = before.ResourceVersion
		if err := r.gardenCache.Update(ctx, role); err != nil {
			return fmt.Errorf("update Role %q: %w", key, err)
		}
	}

	bound := &rbacv1.RoleBinding{}
	switch err := r.gardenCache.Get(ctx, key, bound); {
	case apierrors.IsNotFound(err):
		log.Info("Creating RoleBinding", "roleBinding", key.Name)
		if err := r.gardenCache.Create(ctx, binding); err != nil {
			return fmt.Errorf("create RoleBinding %q: %w", key, err)
		}
	case err != nil:
		return fmt.Errorf("read RoleBinding %q: %w", key, err)
	case bound.RoleRef != binding.RoleRef: // it cannot be changed; the deletion is an event
		log.Info("Deleting RoleBinding to create it again", "roleBinding", key.Name)
		return client.IgnoreNotFound(r.gardenCache.Delete(ctx, bound))
	case !apiequality.Semantic.DeepEqual(bound.Subjects, binding.Subjects) || !metav1.IsControlledBy(bound, seed):
		log.Info("Updating RoleBinding", "roleBinding", key.Name)
		binding.ResourceVersion = bound.ResourceVersion
		if err := r.gardenCache.Update(ctx, binding); err != nil {
			return fmt.Errorf("update RoleBinding %q: %w", key, err)
		}
	}
	return nil
}

// revoke deletes the Roles and RoleBindings in namespaces where nothing is granted any more.
func (r *reconciler) revoke(ctx context.Context, seed *corev1beta1.Seed, desired map[string][]rbacv1.PolicyRule) error {
	roles, bindings := &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}
	if err := errors.Join(r.gardenCache.List(ctx, roles, client.UnsafeDisableDeepCopy), r.gardenCache.List(ctx, bindings, client.UnsafeDisableDeepCopy)); err != nil {
		return fmt.Errorf("list Roles and RoleBindings: %w", err)
	}
	var stale []client.Object
	for i := range bindings.Items {
		stale = append(stale, &bindings.Items[i])
	}
	for i := range roles.Items {
		stale = append(stale, &roles.Items[i])
	}
	var errs []error
	for _, object := range stale {
		if _, ok := desired[object.GetNamespace()]; ok || object.GetName() != namePrefix+seed.Name || !metav1.IsControlledBy(object, seed) {
			continue
		}
		logf.FromContext(ctx).Info("Deleting permissions of a seed in a namespace", "namespace", object.GetNamespace())
		errs = append(errs, client.IgnoreNotFound(r.gardenCache.Delete(ctx, object)))
	}
	return errors.Join(errs...)
}
