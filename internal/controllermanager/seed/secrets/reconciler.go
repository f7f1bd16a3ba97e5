package secrets

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

type reconciler struct {
	gardenCache client.Client
	// gardenAPI reads Secrets: their content is needed rarely, and not worth a cache of all Secrets of the garden.
	gardenAPI client.Reader
	selector  labels.Selector
}

// seedsOf returns requests for the seeds that a Secret belongs to: all seeds for an original, one for a copy.
func (r *reconciler) seedsOf(ctx context.Context, obj client.Object) []reconcile.Request {
	if seed, ok := seedOf(obj.GetNamespace()); ok {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: seed}}}
	}
	if obj.GetNamespace() != constants.GardenNamespace {
		return nil
	}
	seeds := &corev1beta1.SeedList{}
	if err := r.gardenCache.List(ctx, seeds, client.UnsafeDisableDeepCopy); err != nil {
		logf.FromContext(ctx).Error(err, "Listing seeds")
		return nil
	}
	var requests []reconcile.Request
	for i := range seeds.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&seeds.Items[i])})
	}
	return requests
}

// Reconcile creates the namespace of a Seed and keeps the copies in it like the originals.
func (r *reconciler) Reconcile(ctx context.Context, seed *corev1beta1.Seed) (reconcile.Result, error) {
	if seed.DeletionTimestamp != nil { // the namespace is deleted with the Seed, whose gardenlet may need it until then
		return reconcile.Result{}, nil
	}
	ready, err := r.ensureNamespace(ctx, seed)
	if err != nil || !ready {
		return reconcile.Result{}, err
	}
	namespace := namespaceFor(seed.Name)
	originals, copies := &corev1.SecretList{}, &corev1.SecretList{}
	selected := client.MatchingLabelsSelector{Selector: r.selector}
	if err := r.gardenAPI.List(ctx, originals, client.InNamespace(constants.GardenNamespace), selected); err != nil {
		return reconcile.Result{}, fmt.Errorf("list Secrets of the garden: %w", err)
	}
	if err := r.gardenAPI.List(ctx, copies, client.InNamespace(namespace), selected); err != nil {
		return reconcile.Result{}, fmt.Errorf("list Secrets of the seed: %w", err)
	}
	log := logf.FromContext(ctx)
	current := map[string]*corev1.Secret{}
	for i := range copies.Items {
		current[copies.Items[i].Name] = &copies.Items[i]
	}
	var errs []error // the Secrets do not depend on each other
	for i := range originals.Items {
		if originals.Items[i].DeletionTimestamp != nil {
			continue
		}
		desired := copyFor(&originals.Items[i], namespace)
		existing := current[desired.Name]
		delete(current, desired.Name)
		errs = append(errs, r.copy(ctx, existing, desired))
	}
	for _, name := range slices.Sorted(maps.Keys(current)) {
		log.Info("Deleting copy of a Secret that does not exist any more", "secret", name)
		errs = append(errs, client.IgnoreNotFound(r.gardenCache.Delete(ctx, current[name])))
	}
	return reconcile.Result{}, errors.Join(errs...)
}

// ensureNamespace creates or updates the namespace of a Seed, and returns whether it can be used yet.
func (r *reconciler) ensureNamespace(ctx context.Context, seed *corev1beta1.Seed) (bool, error) {
	log := logf.FromContext(ctx)
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	owner := metav1.NewControllerRef(seed, corev1beta1.SchemeGroupVersion.WithKind("Seed"))
	name := namespaceFor(seed.Name)
	if err := r.gardenCache.Get(ctx, client.ObjectKey{Name: name}, namespace); apierrors.IsNotFound(err) {
		log.Info("Creating namespace", "namespace", name)
		err := r.gardenCache.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{constants.GardenRole: constants.GardenRoleSeed}, OwnerReferences: []metav1.OwnerReference{*owner},
		}})
		if err != nil {
			return false, fmt.Errorf("create Namespace %q: %w", name, err)
		}
		return true, nil
	} else if err != nil {
		return false, fmt.Errorf("read Namespace %q: %w", name, err)
	}
	if namespace.DeletionTimestamp != nil { // its deletion is an event
		log.Info("Waiting for the old namespace to be deleted", "namespace", name)
		return false, nil
	}
	if other := metav1.GetControllerOf(namespace); other != nil && other.UID != seed.UID {
		// The owner may be a deleted Seed of the same name. Then the namespace is deleted soon, and a retry succeeds.
		return false, fmt.Errorf("Namespace %q belongs to %s %q with UID %s", name, other.Kind, other.Name, other.UID)
	}
	before := namespace.DeepCopy()
	if !metav1.IsControlledBy(namespace, seed) {
		namespace.OwnerReferences = append(namespace.OwnerReferences, *owner)
	}
	if namespace.Labels[constants.GardenRole] != constants.GardenRoleSeed {
		metav1.SetMetaDataLabel(&namespace.ObjectMeta, constants.GardenRole, constants.GardenRoleSeed)
	}
	if apiequality.Semantic.DeepEqual(before, namespace) {
		return true, nil
	}
	log.Info("Updating namespace", "namespace", name)
	return true, r.gardenCache.Patch(ctx, namespace, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// copy writes a copy, unless it is up to date.
func (r *reconciler) copy(ctx context.Context, existing, desired *corev1.Secret) error {
	log := logf.FromContext(ctx)
	if existing == nil {
		log.Info("Creating copy of Secret", "secret", desired.Name)
		if err := r.gardenCache.Create(ctx, desired); err != nil {
			return fmt.Errorf("create Secret %q: %w", desired.Name, err)
		}
		return nil
	}
	if existing.DeletionTimestamp != nil {
		return nil
	}
	after := existing.DeepCopy()
	after.Labels, after.Annotations, after.Data, after.Immutable, after.Type = desired.Labels, desired.Annotations, desired.Data, desired.Immutable, desired.Type
	if apiequality.Semantic.DeepEqual(existing, after) {
		return nil
	}
	// Type and immutable content cannot be changed. The deletion of the copy is an event, after which it is created again.
	if existing.Type != desired.Type || ptr.Deref(existing.Immutable, false) {
		log.Info("Deleting copy of Secret to create it again", "secret", desired.Name)
		return client.IgnoreNotFound(r.gardenCache.Delete(ctx, existing))
	}
	log.Info("Updating copy of Secret", "secret", desired.Name)
	if err := r.gardenCache.Update(ctx, after); err != nil {
		return fmt.Errorf("update Secret %q: %w", desired.Name, err)
	}
	return nil
}

// copyFor returns the copy of a Secret for a namespace.
func copyFor(original *corev1.Secret, namespace string) *corev1.Secret {
	annotations := maps.Clone(original.Annotations)
	delete(annotations, corev1.LastAppliedConfigAnnotation) // it is about the original
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: original.Name, Labels: original.Labels, Annotations: annotations},
		Type:       original.Type, Data: original.Data, Immutable: original.Immutable,
	}
}

func hasRole(obj client.Object) bool { return obj.GetLabels()[constants.GardenRole] != "" }

func namespaceFor(seed string) string { return constants.SeedNamespaceNamePrefix + seed }

// seedOf returns the seed that a namespace is for.
func seedOf(namespace string) (string, bool) {
	n := len(constants.SeedNamespaceNamePrefix)
	if len(namespace) <= n || namespace[:n] != constants.SeedNamespaceNamePrefix {
		return "", false
	}
	return namespace[n:], true
}
