// Package managedresource applies the objects of ManagedResources to a cluster, reverts changes of other clients, and
// deletes the objects with the ManagedResource.
//
// It reads ManagedResources and their Secrets in the source cluster, writes the status of ManagedResources, except for the conditions of the
// health controller, and writes objects in the target cluster.
// Source: concepts.txt, Gardener Resource Manager, "ManagedResource Controller".
package managedresource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
)

const (
	// passTimeout limits a reconciliation. What is not done by then is done in the next one.
	passTimeout = 2 * time.Minute
	// reportTimeout limits writing a status.
	reportTimeout = 5 * time.Second
	// firstRetry and lastRetry are the shortest and the longest backoff. What is missing after a failure, such as a namespace or an admission
	// webhook, is not watched.
	firstRetry, lastRetry = 20 * time.Millisecond, time.Minute
)

// Values are the settings of the controller.
type Values struct {
	// Class is the class of ManagedResources that this process is responsible for: a name, or "*" for all.
	Class string
	// Concurrency is how many ManagedResources are reconciled at once.
	Concurrency int
	// SyncPeriod is how often each is reconciled without events.
	SyncPeriod time.Duration
	// AlwaysUpdate writes objects in each reconciliation, even if they do not differ.
	AlwaysUpdate bool
	// ManagedBy is the value of the label managed-by of all objects.
	ManagedBy string
	// ClusterID is the prefix of the origin of objects. It may be empty.
	ClusterID string
	// CollectsGarbage says that the garbage collector is enabled, so that objects with its label are not deleted here.
	CollectsGarbage bool
}

// reconciler applies the objects of a ManagedResource, or deletes them.
type reconciler struct {
	Values
	// source has the ManagedResources; secrets reads their Secrets, which are not cached, as they are large and change rarely.
	source  client.Client
	secrets client.Reader
	target  *target
	watches *watches
	clock   clock.PassiveClock
	// attempts has the last attempt for each ManagedResource, by its UID. A retry does not reset conditions.
	attempts sync.Map
}

// failed is an error of manifests, or of objects in the target cluster. If it is a conflict or the like, that is not because of an outdated
// cache, and the reconciliation is retried with backoff.
type failed struct{ error }

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	mr := &resourcesv1alpha1.ManagedResource{}
	if err := r.source.Get(ctx, request.NamespacedName, mr); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	var result reconcile.Result
	var err error
	switch {
	case mr.DeletionTimestamp != nil || !r.responsible(mr):
		result, err = r.delete(ctx, mr)
	case Truthy(mr.Annotations[resourcesv1alpha1.Ignore]):
		return reconcile.Result{}, r.report(ctx, mr, verdict{ignored: true})
	default:
		result, err = r.apply(ctx, mr)
	}
	if err == nil || errors.As(err, new(failed)) {
		return result, err
	}
	return kube.Result(err)
}

func (r *reconciler) responsible(mr *resourcesv1alpha1.ManagedResource) bool {
	return Responsible(r.Class, mr)
}

// Responsible says whether a process of a class, or of all classes, manages a ManagedResource.
func Responsible(class string, mr *resourcesv1alpha1.ManagedResource) bool {
	return class == resourcesv1alpha1.AllResourceClass || ClassOf(mr) == class
}

// ClassOf returns the class of a ManagedResource.
func ClassOf(mr *resourcesv1alpha1.ManagedResource) string {
	if mr.Spec.Class == nil || *mr.Spec.Class == "" {
		return resourcesv1alpha1.DefaultResourceClass
	}
	return *mr.Spec.Class
}

// finalizer is the finalizer of ManagedResources that this process is responsible for.
func (r *reconciler) finalizer() string {
	if r.Class == resourcesv1alpha1.DefaultResourceClass || r.Class == resourcesv1alpha1.AllResourceClass {
		return resourcesv1alpha1.FinalizerName
	}
	return resourcesv1alpha1.FinalizerName + "-" + r.Class
}

// busy says whether the process of an earlier class of a ManagedResource is still deleting its objects.
func (r *reconciler) busy(mr *resourcesv1alpha1.ManagedResource) bool {
	return !slices.Contains(mr.Finalizers, r.finalizer()) &&
		slices.ContainsFunc(mr.Finalizers, func(f string) bool { return strings.HasPrefix(f, resourcesv1alpha1.FinalizerName) })
}

// origin is the value of the origin annotation of objects.
func (r *reconciler) origin(mr *resourcesv1alpha1.ManagedResource) string {
	origin := mr.Namespace + "/" + mr.Name
	if r.ClusterID != "" {
		return r.ClusterID + ":" + origin
	}
	return origin
}

func (r *reconciler) apply(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (reconcile.Result, error) {
	if r.busy(mr) {
		return reconcile.Result{}, nil // the removal of its finalizer requeues the ManagedResource
	}
	if !slices.Contains(mr.Finalizers, r.finalizer()) {
		// The change requeues the ManagedResource.
		return reconcile.Result{}, kube.AddFinalizer(ctx, r.source, mr, r.finalizer())
	}
	manifests, err := r.manifests(ctx, mr)
	if err != nil {
		// Nothing is deleted if the manifests cannot be read.
		return reconcile.Result{}, errors.Join(failed{err}, r.report(ctx, mr, verdict{err: err, reason: resourcesv1alpha1.ConditionDecodingFailed}))
	}
	items, errs := r.items(mr, manifests.objects)
	desired := map[objectKey]bool{}
	for _, item := range items {
		desired[item.key()] = true
	}
	var stale []resourcesv1alpha1.ObjectReference
	for _, ref := range mr.Status.Resources {
		if key := refKey(ref); !desired[key] && !manifests.ignored[key] && !equivalent(mr.Spec.Equivalences, key, desired) {
			stale = append(stale, ref)
		}
	}
	refs := references(items)
	// If the process crashes now, the next one must know which objects may have to be deleted, and which labels to be removed.
	known := slices.Concat(withBefore(refs, mr.Status.Resources), stale)
	if err := r.begin(ctx, mr, known, manifests.checksum); err != nil {
		return reconcile.Result{}, err
	}
	if err := r.watches.ensure(kindsOf(items)); err != nil {
		errs = append(errs, err)
	}
	var left []resourcesv1alpha1.ObjectReference
	var again time.Duration
	if keep(mr) {
		for _, ref := range stale {
			errs = append(errs, r.target.release(ctx, ref, r.origin(mr)))
		}
	} else if len(stale) > 0 {
		logf.FromContext(ctx).Info("Deleting objects that are no longer in the manifests", "objects", len(stale))
		var removeErr error
		left, again, removeErr = r.target.remove(ctx, stale, r.remover(mr))
		errs = append(errs, removeErr)
	}
	errs = append(errs, r.target.apply(ctx, slices.DeleteFunc(items, func(i item) bool { return i.unknown })))
	if err := sortedErrors(errs); err != nil {
		v := verdict{err: err, reason: resourcesv1alpha1.ConditionApplyFailed, resources: known}
		return reconcile.Result{}, errors.Join(failed{err}, r.report(ctx, mr, v))
	}
	if err := r.report(ctx, mr, verdict{resources: slices.Concat(refs, left), pending: left, checksum: manifests.checksum}); err != nil {
		return reconcile.Result{}, err
	}
	if again == 0 || again > r.SyncPeriod {
		again = r.SyncPeriod
	}
	return reconcile.Result{RequeueAfter: again}, nil
}

// manifests is the content of the Secrets of a ManagedResource.
type manifests struct {
	objects []*unstructured.Unstructured
	// ignored are objects with the mode Ignore: they are no longer managed, but not deleted.
	ignored  map[objectKey]bool
	checksum string
}

func (r *reconciler) manifests(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (*manifests, error) {
	var secrets []*corev1.Secret
	var errs []error
	for _, ref := range mr.Spec.SecretRefs {
		secret := &corev1.Secret{}
		if err := r.secrets.Get(ctx, types.NamespacedName{Namespace: mr.Namespace, Name: ref.Name}, secret); err != nil {
			if apierrors.IsNotFound(err) {
				err = fmt.Errorf("secret %q does not exist", ref.Name) // its creation is an event
			}
			errs = append(errs, err)
			continue
		}
		secrets = append(secrets, secret)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	decoded, err := decode(secrets)
	if err != nil {
		return nil, err
	}
	m := &manifests{checksum: checksum(secrets), ignored: map[objectKey]bool{}}
	for _, object := range decoded {
		if object.GetAnnotations()[resourcesv1alpha1.Mode] == resourcesv1alpha1.ModeIgnore {
			// It was applied in this namespace. In another one it would not be found, and be deleted. An error only matters for what is applied.
			_ = r.place(object, mr.Status.Resources)
			m.ignored[keyOf(object)] = true
			continue
		}
		m.objects = append(m.objects, object)
	}
	return m, nil
}

// items are the objects as they are to be applied. Those of a kind that the cluster does not have are an error each; the others
// are applied all the same.
func (r *reconciler) items(mr *resourcesv1alpha1.ManagedResource, objects []*unstructured.Unstructured) ([]item, []error) {
	last := map[objectKey]before{}
	for _, ref := range mr.Status.Resources {
		last[refKey(ref)] = before{labels: ref.Labels, annotations: ref.Annotations}
	}
	var items []item
	var errs []error
	twice := map[objectKey]bool{}
	for _, object := range objects {
		name := describe(keyOf(object))
		err := r.place(object, mr.Status.Resources)
		switch {
		case meta.IsNoMatchError(err):
			errs = append(errs, fmt.Errorf("%s: the cluster has no kind %s of %s", name, object.GetKind(), object.GetAPIVersion()))
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
		if key := keyOf(object); twice[key] {
			errs = append(errs, fmt.Errorf("%s is in the manifests more than once", describe(key)))
			continue
		}
		twice[keyOf(object)] = true
		decorate(object, mr.Spec.InjectLabels, r.ManagedBy, r.origin(mr))
		items = append(items, item{object: object, last: last[keyOf(object)], unknown: err != nil, mergeOptions: mergeOptions{
			overwriteLabels: ptr.Deref(mr.Spec.ForceOverwriteLabels, false), overwriteAnnotations: ptr.Deref(mr.Spec.ForceOverwriteAnnotations, false),
		}})
	}
	return items, errs
}

// place sets the namespace of an object to the one that it has in the cluster. If the cluster does not return whether its kind is namespaced, it cannot be
// applied, but it is desired, so it must not be deleted.
func (r *reconciler) place(object *unstructured.Unstructured, before []resourcesv1alpha1.ObjectReference) error {
	namespaced, err := r.target.live.IsObjectNamespaced(object)
	switch {
	case err != nil:
		object.SetNamespace(namespaceBefore(object, before))
	case !namespaced:
		object.SetNamespace("")
	case object.GetNamespace() == "":
		object.SetNamespace(metav1.NamespaceDefault)
	}
	return err
}

// references are status.resources, in a stable order.
func references(items []item) []resourcesv1alpha1.ObjectReference {
	refs := make([]resourcesv1alpha1.ObjectReference, 0, len(items))
	for _, item := range items {
		refs = append(refs, resourcesv1alpha1.ObjectReference{
			ObjectReference: corev1.ObjectReference{
				APIVersion: item.object.GetAPIVersion(), Kind: item.object.GetKind(), Namespace: item.object.GetNamespace(), Name: item.object.GetName(),
			},
			Labels: item.object.GetLabels(), Annotations: item.object.GetAnnotations(),
		})
	}
	slices.SortFunc(refs, func(a, b resourcesv1alpha1.ObjectReference) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.APIVersion, b.APIVersion))
	})
	return refs
}

// namespaceBefore returns the namespace with which an object was applied, if the cluster does not return whether its kind is namespaced.
func namespaceBefore(object *unstructured.Unstructured, before []resourcesv1alpha1.ObjectReference) string {
	namespace := object.GetNamespace()
	for _, ref := range before {
		if key := refKey(ref); key.GroupKind == object.GroupVersionKind().GroupKind() && key.Name == object.GetName() &&
			(key.Namespace == "" || namespace == "" && key.Namespace == metav1.NamespaceDefault) {
			return key.Namespace
		}
	}
	return namespace
}

// withBefore returns the references with all labels and annotations that the objects may have: those that were applied before, and those that
// are applied now, which they may have even if this reconciliation fails.
func withBefore(refs, before []resourcesv1alpha1.ObjectReference) []resourcesv1alpha1.ObjectReference {
	last := map[objectKey]resourcesv1alpha1.ObjectReference{}
	for _, ref := range before {
		last[refKey(ref)] = ref
	}
	out := slices.Clone(refs)
	for i, ref := range out {
		if before, ok := last[refKey(ref)]; ok {
			out[i].Labels, out[i].Annotations = with(before.Labels, ref.Labels), with(before.Annotations, ref.Annotations)
		}
	}
	return out
}

func kindsOf(items []item) []schema.GroupVersionKind {
	kinds := map[schema.GroupVersionKind]bool{}
	for _, item := range items {
		if !item.unknown {
			kinds[item.object.GroupVersionKind()] = true
		}
	}
	return slices.Collect(maps.Keys(kinds))
}

// equivalent says whether an object is desired as an equivalent kind.
func equivalent(equivalences [][]metav1.GroupKind, key objectKey, desired map[objectKey]bool) bool {
	for _, kinds := range equivalences {
		if !slices.Contains(kinds, metav1.GroupKind{Group: key.Group, Kind: key.Kind}) {
			continue
		}
		for _, kind := range kinds {
			if desired[objectKey{schema.GroupKind{Group: kind.Group, Kind: kind.Kind}, key.NamespacedName}] {
				return true
			}
		}
	}
	return false
}

func (r *reconciler) remover(mr *resourcesv1alpha1.ManagedResource) remover {
	return remover{origin: r.origin(mr), collects: r.CollectsGarbage, withClaims: ptr.Deref(mr.Spec.DeletePersistentVolumeClaims, false)}
}

func keep(mr *resourcesv1alpha1.ManagedResource) bool { return ptr.Deref(mr.Spec.KeepObjects, false) }

// delete deletes all objects and then removes the finalizer of the ManagedResource. If it has another class now, the responsible process
// applies the objects after that.
func (r *reconciler) delete(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) (reconcile.Result, error) {
	if !slices.Contains(mr.Finalizers, r.finalizer()) {
		return reconcile.Result{}, nil
	}
	r.attempts.Delete(mr.UID)
	if keep(mr) {
		var errs []error
		for _, ref := range mr.Status.Resources {
			errs = append(errs, r.target.release(ctx, ref, r.origin(mr)))
		}
		if err := sortedErrors(errs); err != nil {
			return reconcile.Result{}, errors.Join(failed{err}, r.report(ctx, mr, verdict{err: err, reason: resourcesv1alpha1.ReleaseOfOrphanedResourcesFailed}))
		}
		return reconcile.Result{}, r.release(ctx, mr)
	}
	if err := r.watches.ensureReferenced(mr.Status.Resources); err != nil {
		return reconcile.Result{}, err
	}
	left, again, err := r.target.remove(ctx, mr.Status.Resources, r.remover(mr))
	v := verdict{resources: mr.Status.Resources, pending: left}
	if err := sortedErrors([]error{err}); err != nil {
		v.err, v.reason = err, resourcesv1alpha1.ConditionDeletionFailed
		return reconcile.Result{}, errors.Join(failed{err}, r.report(ctx, mr, v))
	}
	if len(left) == 0 {
		return reconcile.Result{}, r.release(ctx, mr)
	}
	if err := r.report(ctx, mr, v); err != nil {
		return reconcile.Result{}, err
	}
	if again == 0 {
		again = r.SyncPeriod
	}
	return reconcile.Result{RequeueAfter: min(again, r.SyncPeriod)}, nil
}

// release removes the finalizer of a ManagedResource. A process that is responsible for it now may manage another cluster, so the objects are
// removed from the status before.
func (r *reconciler) release(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) error {
	if mr.DeletionTimestamp == nil {
		if err := r.write(ctx, mr, func(status *resourcesv1alpha1.ManagedResourceStatus) {
			status.Resources, status.SecretsDataChecksum = nil, nil
		}); err != nil {
			return err
		}
	}
	return kube.RemoveFinalizer(ctx, r.source, mr, r.finalizer())
}

// sortedErrors joins errors in a stable order, for conditions.
func sortedErrors(errs []error) error {
	byLine := map[string]error{}
	for _, err := range errs {
		for _, one := range flatten(err) {
			byLine[one.Error()] = one
		}
	}
	var sorted []error
	for _, line := range slices.Sorted(maps.Keys(byLine)) {
		sorted = append(sorted, byLine[line])
	}
	return errors.Join(sorted...)
}

func flatten(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, one := range joined.Unwrap() {
			all = append(all, flatten(one)...)
		}
		return all
	}
	return []error{err}
}
