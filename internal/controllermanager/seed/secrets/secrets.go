// Package secrets gives each Seed a namespace of its own in the garden, with copies of the Secrets that all gardenlets need: with a
// namespace for each, a gardenlet needs no access to what other seeds have.
//
// It reads Seeds and the Secrets in the namespace "garden" that have the label gardener.cloud/role. It writes Namespaces
// "seed-<seed>" and Secrets in them. Source: concepts.txt, Seed controller, "Main" reconciler.
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
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// concurrentSyncs is not configurable.
const concurrentSyncs = 5

// ofShoots are the roles of Secrets that belong to a single shoot in the namespace "garden", such as one that becomes a seed. They
// are credentials that no other seed may have.
var ofShoots = []string{
	constants.GardenRoleKubeconfig, constants.GardenRoleSSHKeyPair, constants.GardenRoleMonitoring,
	constants.GardenRoleCACluster, constants.GardenRoleCAClient, constants.GardenRoleCAKubelet,
}

// Add adds the controller to a manager.
func Add(mgr manager.Manager) error {
	selector, err := shared()
	if err != nil {
		return err
	}
	r := &reconciler{gardenClient: mgr.GetClient(), live: mgr.GetAPIReader(), selector: selector}
	return builder.ControllerManagedBy(mgr).Named("seed-secrets").WithOptions(controller.Options{MaxConcurrentReconciles: concurrentSyncs}).
		// What is written depends on the name of a Seed only.
		For(&corev1beta1.Seed{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }})).
		// Somebody may change or delete what is ours. A namespace is not needed in full: there is one for each project too.
		WatchesMetadata(&corev1.Namespace{}, handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &corev1beta1.Seed{}, handler.OnlyControllerOwner())).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.seedsOf), builder.WithPredicates(
			predicate.ResourceVersionChangedPredicate{}, predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
				return hasRole(e.ObjectOld) || hasRole(e.ObjectNew)
			}, CreateFunc: func(e event.CreateEvent) bool {
				return hasRole(e.Object)
			}, DeleteFunc: func(e event.DeleteEvent) bool {
				return hasRole(e.Object)
			}})).
		Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}

// shared selects the Secrets that all seeds get.
func shared() (labels.Selector, error) {
	exists, err := labels.NewRequirement(constants.GardenRole, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	notOfShoots, err := labels.NewRequirement(constants.GardenRole, selection.NotIn, ofShoots)
	if err != nil {
		return nil, err
	}
	return labels.NewSelector().Add(*exists, *notOfShoots), nil
}

type reconciler struct {
	gardenClient client.Client
	// live reads Secrets: their content is needed now and then, and not worth a cache of all Secrets of the garden.
	live     client.Reader
	selector labels.Selector
}

// seedsOf returns requests for the seeds that a Secret concerns: all for an original, one for a copy.
func (r *reconciler) seedsOf(ctx context.Context, obj client.Object) []reconcile.Request {
	if seed, ok := seedOf(obj.GetNamespace()); ok {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: seed}}}
	}
	if obj.GetNamespace() != constants.GardenNamespace {
		return nil
	}
	seeds := &corev1beta1.SeedList{}
	if err := r.gardenClient.List(ctx, seeds, client.UnsafeDisableDeepCopy); err != nil {
		logf.FromContext(ctx).Error(err, "Listing seeds")
		return nil
	}
	var requests []reconcile.Request
	for i := range seeds.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&seeds.Items[i])})
	}
	return requests
}

// Reconcile makes the namespace of a Seed, and makes the copies in it those of today's Secrets.
func (r *reconciler) Reconcile(ctx context.Context, seed *corev1beta1.Seed) (reconcile.Result, error) {
	if seed.DeletionTimestamp != nil { // the namespace goes with the Seed, whose gardenlet may need it until then
		return reconcile.Result{}, nil
	}
	ready, err := r.ensureNamespace(ctx, seed)
	if err != nil || !ready {
		return reconcile.Result{}, err
	}
	namespace := namespaceFor(seed.Name)
	originals, copies := &corev1.SecretList{}, &corev1.SecretList{}
	selected := client.MatchingLabelsSelector{Selector: r.selector}
	if err := r.live.List(ctx, originals, client.InNamespace(constants.GardenNamespace), selected); err != nil {
		return reconcile.Result{}, fmt.Errorf("list Secrets of the garden: %w", err)
	}
	if err := r.live.List(ctx, copies, client.InNamespace(namespace), selected); err != nil {
		return reconcile.Result{}, fmt.Errorf("list Secrets of the seed: %w", err)
	}
	log := logf.FromContext(ctx)
	present := map[string]*corev1.Secret{}
	for i := range copies.Items {
		present[copies.Items[i].Name] = &copies.Items[i]
	}
	var errs []error
	for i := range originals.Items {
		if originals.Items[i].DeletionTimestamp != nil {
			continue
		}
		want := copyFor(&originals.Items[i], namespace)
		have := present[want.Name]
		delete(present, want.Name)
		errs = append(errs, r.copy(ctx, have, want))
	}
	for _, name := range slices.Sorted(maps.Keys(present)) {
		log.Info("Deleting copy of a Secret that is gone", "secret", name)
		errs = append(errs, client.IgnoreNotFound(r.gardenClient.Delete(ctx, present[name])))
	}
	return reconcile.Result{}, errors.Join(errs...)
}

// ensureNamespace makes the namespace of a Seed, and returns whether it can be used yet.
func (r *reconciler) ensureNamespace(ctx context.Context, seed *corev1beta1.Seed) (bool, error) {
	log := logf.FromContext(ctx)
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	owner := metav1.NewControllerRef(seed, corev1beta1.SchemeGroupVersion.WithKind("Seed"))
	name := namespaceFor(seed.Name)
	if err := r.gardenClient.Get(ctx, client.ObjectKey{Name: name}, namespace); apierrors.IsNotFound(err) {
		log.Info("Creating namespace", "namespace", name)
		err := r.gardenClient.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{constants.GardenRole: constants.GardenRoleSeed}, OwnerReferences: []metav1.OwnerReference{*owner},
		}})
		if err != nil {
			return false, fmt.Errorf("create Namespace %q: %w", name, err)
		}
		return true, nil
	} else if err != nil {
		return false, fmt.Errorf("read Namespace %q: %w", name, err)
	}
	if namespace.DeletionTimestamp != nil { // when it is gone, its event brings us back
		log.Info("Waiting for old namespace to go", "namespace", name)
		return false, nil
	}
	if other := metav1.GetControllerOf(namespace); other != nil && other.UID != seed.UID {
		// It can be that of a Seed with the same name that is gone; then it goes soon, and we are tried again.
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
	return true, r.gardenClient.Patch(ctx, namespace, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// copy writes a copy, unless it is as wanted.
func (r *reconciler) copy(ctx context.Context, have, want *corev1.Secret) error {
	log := logf.FromContext(ctx)
	if have == nil {
		log.Info("Creating copy of Secret", "secret", want.Name)
		if err := r.gardenClient.Create(ctx, want); err != nil {
			return fmt.Errorf("create Secret %q: %w", want.Name, err)
		}
		return nil
	}
	if have.DeletionTimestamp != nil {
		return nil
	}
	after := have.DeepCopy()
	after.Labels, after.Annotations, after.Data, after.Immutable, after.Type = want.Labels, want.Annotations, want.Data, want.Immutable, want.Type
	if apiequality.Semantic.DeepEqual(have, after) {
		return nil
	}
	// Type and immutable content cannot be changed. Deleting the copy brings us back, to create it.
	if have.Type != want.Type || have.Immutable != nil && *have.Immutable {
		log.Info("Deleting copy of Secret to make it again", "secret", want.Name)
		return client.IgnoreNotFound(r.gardenClient.Delete(ctx, have))
	}
	log.Info("Updating copy of Secret", "secret", want.Name)
	if err := r.gardenClient.Update(ctx, after); err != nil {
		return fmt.Errorf("update Secret %q: %w", want.Name, err)
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
