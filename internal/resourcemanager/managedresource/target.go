package managedresource

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/flow"
)

const (
	// parallel is how many objects of one ManagedResource are written at once.
	parallel = 10
	// lookTimeout is how long a new watch may take to sync; after that, the object is read from the API server.
	lookTimeout = 5 * time.Second
	// tries is how often an object is read and written if there are conflicts.
	tries = 5
)

// target applies objects to a cluster and deletes them.
//
// It has a record of each object as it was after it was applied. As long as neither the manifest nor the metadata in the cache have
// changed, no request is sent. Without a record, the object is read, compared and, if it differs, written.
type target struct {
	// live reads and writes objects in the cluster, without a cache.
	live client.Client
	// seen reads metadata from a cache.
	seen  client.Reader
	clock clock.PassiveClock
	// always writes objects even if they do not differ.
	always bool

	mu      sync.Mutex
	applied map[objectKey]record
}

// objectKey identifies an object in the cluster.
type objectKey struct {
	schema.GroupKind
	types.NamespacedName
}

// record is the state of an object after it was applied.
type record struct {
	manifest        string // checksum of the manifest and the merge options
	uid             types.UID
	generation      int64  // zero for kinds that have none
	resourceVersion string // of kinds that have no generation
	labels          map[string]string
	annotations     map[string]string
}

func newRecord(manifest string, i item, object metav1.Object) record {
	r := record{
		manifest: manifest, uid: object.GetUID(), generation: object.GetGeneration(),
		labels: object.GetLabels(), annotations: object.GetAnnotations(),
	}
	if r.generation == 0 {
		r.resourceVersion = object.GetResourceVersion()
	}
	// Labels and annotations of other clients do not matter, unless they are to be removed.
	if !i.overwriteLabels {
		r.labels = only(r.labels, i.object.GetLabels())
	}
	if !i.overwriteAnnotations {
		r.annotations = only(r.annotations, i.object.GetAnnotations())
	}
	return r
}

// only returns the entries with the given keys.
func only(have, keys map[string]string) map[string]string {
	out := map[string]string{}
	for key := range keys {
		if value, ok := have[key]; ok {
			out[key] = value
		}
	}
	return out
}

// unchanged says whether an object has not changed since it was applied, by its metadata.
func (r record) unchanged(i item, object metav1.Object) bool {
	now := newRecord(r.manifest, i, object)
	return object.GetDeletionTimestamp() == nil && r.uid == now.uid && r.generation == now.generation && r.resourceVersion == now.resourceVersion &&
		maps.Equal(r.labels, now.labels) && maps.Equal(r.annotations, now.annotations)
}

// item is an object to be applied.
type item struct {
	object *unstructured.Unstructured
	last   before
	// unknown says that the cluster does not have the kind.
	unknown bool
	mergeOptions
}

func (i item) key() objectKey { return keyOf(i.object) }

func keyOf(object *unstructured.Unstructured) objectKey {
	return objectKey{object.GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(object)}
}

// apply applies the objects, group by group, and returns all errors.
func (t *target) apply(ctx context.Context, items []item) error {
	var errs []error
	unseen := &sync.Map{}
	for _, group := range inGroups(items, func(i item) string { return i.object.GetKind() }) {
		errs = append(errs, each(ctx, group, func(ctx context.Context, i item) error {
			if err := t.applyOne(ctx, i, unseen); err != nil {
				return fmt.Errorf("%s: %w", describe(i.key()), err)
			}
			return nil
		}))
	}
	return errors.Join(errs...)
}

// each calls a function for all items, with limited concurrency.
func each[T any](ctx context.Context, items []T, do func(context.Context, T) error) error {
	errs := make([]error, len(items))
	next := make(chan int)
	work := func(ctx context.Context) error {
		for i := range next {
			errs[i] = do(ctx, items[i])
		}
		return nil
	}
	feed := func(context.Context) error {
		defer close(next)
		for i := range items {
			next <- i
		}
		return nil
	}
	return errors.Join(flow.Parallel(ctx, append(slices.Repeat([]func(context.Context) error{work}, min(parallel, len(items))), feed)...), errors.Join(errs...))
}

func (t *target) applyOne(ctx context.Context, i item, unseen *sync.Map) error {
	sum, err := i.checksum()
	if err != nil {
		return err
	}
	if metadata := t.look(ctx, i, unseen); metadata != nil && t.upToDate(i, sum, metadata) {
		return nil
	}
	for try := 1; ; try++ {
		err := t.write(ctx, i, sum)
		if try < tries && (apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)) {
			continue // another client was faster: read again
		}
		return err
	}
}

// look returns the metadata of the object in the cache, or nil. A kind whose watch does not sync in time is recorded as unseen, so that its
// other objects do not wait for it.
func (t *target) look(ctx context.Context, i item, unseen *sync.Map) *metav1.PartialObjectMetadata {
	kind := i.object.GroupVersionKind()
	if _, ok := unseen.Load(kind); ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	metadata := kube.Metadata(kind)
	if t.seen.Get(ctx, client.ObjectKeyFromObject(i.object), metadata) == nil {
		return metadata
	}
	if ctx.Err() != nil {
		unseen.Store(kind, true)
	}
	return nil
}

// checksum returns a checksum of the manifest and the merge options.
func (i item) checksum() (string, error) {
	raw, err := i.object.MarshalJSON()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(fmt.Appendf(raw, "%v%v", i.overwriteLabels, i.overwriteAnnotations))
	return string(sum[:]), nil
}

// upToDate says whether an object is as it was applied.
func (t *target) upToDate(i item, sum string, object metav1.Object) bool {
	t.mu.Lock()
	have, ok := t.applied[i.key()]
	t.mu.Unlock()
	return ok && !t.always && have.manifest == sum && have.unchanged(i, object)
}

// write reads the object, and creates or updates it.
func (t *target) write(ctx context.Context, i item, sum string) error {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(i.object.GroupVersionKind())
	err := t.live.Get(ctx, client.ObjectKeyFromObject(i.object), live)
	if apierrors.IsNotFound(err) {
		created := i.object.DeepCopy()
		if err := t.live.Create(ctx, created); err != nil {
			return err
		}
		t.record(i, sum, created)
		return nil
	}
	if err != nil {
		return err
	}
	if t.upToDate(i, sum, live) {
		return nil // only the cache was behind
	}
	if live.GetDeletionTimestamp() != nil {
		return fmt.Errorf("it is being deleted, and will be recreated when the finalizers %q are removed", live.GetFinalizers())
	}
	if Truthy(i.object.GetAnnotations()[resourcesv1alpha1.Ignore]) {
		t.record(i, sum, live)
		return nil // it is only created, not updated
	}
	if i.keepReplicas, err = t.scaled(ctx, i, live); err != nil {
		return err
	}
	merged := merge(i.object, live, i.last, i.mergeOptions)
	if !t.always && apiequality.Semantic.DeepEqual(merged.Object, live.Object) {
		t.record(i, sum, live)
		return nil
	}
	err = t.live.Update(ctx, merged)
	if apierrors.IsInvalid(err) && Truthy(i.object.GetAnnotations()[resourcesv1alpha1.DeleteOnInvalidUpdate]) {
		return t.replace(ctx, live, i)
	}
	if err != nil {
		return err
	}
	t.record(i, sum, merged)
	return nil
}

// replace deletes an object that cannot be updated, and recreates it.
func (t *target) replace(ctx context.Context, live *unstructured.Unstructured, i item) error {
	policy := metav1.DeletionPropagation(i.object.GetAnnotations()[resourcesv1alpha1.DeletionPropagationOnInvalidUpdate])
	if policy == "" {
		policy = metav1.DeletePropagationBackground
	}
	uid := live.GetUID()
	if err := t.live.Delete(ctx, live, client.PropagationPolicy(policy), client.Preconditions{UID: &uid}); err != nil {
		return client.IgnoreNotFound(err)
	}
	created := i.object.DeepCopy()
	if err := t.live.Create(ctx, created); err != nil {
		return fmt.Errorf("it was deleted, because it could not be updated: %w", err)
	}
	return nil
}

// scaled says whether an autoscaler sets the number of replicas. Autoscalers ignore workloads with zero replicas, so the manifest decides
// about these.
func (t *target) scaled(ctx context.Context, i item, live *unstructured.Unstructured) (bool, error) {
	gvk := i.object.GroupVersionKind()
	if !isWorkload(gvk.GroupKind()) || stopped(i.object) || stopped(live) {
		return false, nil
	}
	list := &autoscalingv2.HorizontalPodAutoscalerList{}
	if err := t.live.List(ctx, list, client.InNamespace(i.object.GetNamespace())); err != nil {
		return false, fmt.Errorf("list HorizontalPodAutoscalers: %w", err)
	}
	return slices.ContainsFunc(list.Items, func(a autoscalingv2.HorizontalPodAutoscaler) bool {
		return a.Spec.ScaleTargetRef.Kind == gvk.Kind && a.Spec.ScaleTargetRef.Name == i.object.GetName()
	}), nil
}

func stopped(workload *unstructured.Unstructured) bool {
	replicas, ok, err := unstructured.NestedInt64(workload.Object, "spec", "replicas")
	return ok && err == nil && replicas == 0
}

func (t *target) record(i item, sum string, object metav1.Object) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.applied[i.key()] = newRecord(sum, i, object)
}

func (t *target) forget(key objectKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.applied, key)
}

// remover says how objects are deleted.
type remover struct {
	// origin is the value of the origin annotation; an object with another one belongs to another ManagedResource, and is not deleted.
	origin string
	// collects says that the garbage collector deletes objects with its label.
	collects bool
	// withClaims deletes the PersistentVolumeClaims of StatefulSets too.
	withClaims bool
}

// remove deletes objects, the last group first, and returns those that still exist. A group is only deleted when the one after
// it is gone. The duration is when finalizers of one of them have to be removed, unless an event requeues the ManagedResource earlier.
func (t *target) remove(ctx context.Context, refs []resourcesv1alpha1.ObjectReference, r remover) (left []resourcesv1alpha1.ObjectReference, again time.Duration, err error) {
	groups := inGroups(refs, func(ref resourcesv1alpha1.ObjectReference) string { return ref.Kind })
	var mu sync.Mutex
	for i, group := range slices.Backward(groups) {
		err := each(ctx, group, func(ctx context.Context, ref resourcesv1alpha1.ObjectReference) error {
			gone, after, err := t.removeOne(ctx, ref, r)
			mu.Lock()
			defer mu.Unlock()
			if !gone {
				left = append(left, ref)
			}
			if after > 0 && (again == 0 || after < again) {
				again = after
			}
			if err != nil {
				return fmt.Errorf("%s: %w", describe(refKey(ref)), err)
			}
			return nil
		})
		if err != nil || len(left) > 0 {
			for _, earlier := range groups[:i] {
				left = append(left, earlier...)
			}
			return left, again, err
		}
	}
	return nil, 0, nil
}

func (t *target) removeOne(ctx context.Context, ref resourcesv1alpha1.ObjectReference, r remover) (gone bool, again time.Duration, err error) {
	key := refKey(ref)
	if Truthy(ref.Annotations[resourcesv1alpha1.KeepObject]) {
		return true, 0, t.release(ctx, ref, r.origin)
	}
	if r.collects && ref.Labels[resourcesv1alpha1.GarbageCollectable] == "true" {
		t.forget(key)
		return true, 0, nil
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(ref.GroupVersionKind())
	err = t.live.Get(ctx, key.NamespacedName, object)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		t.forget(key)
		return true, 0, nil
	}
	if err != nil {
		return false, 0, err
	}
	if origin := object.GetAnnotations()[resourcesv1alpha1.OriginAnnotation]; origin != "" && origin != r.origin {
		t.forget(key)
		return true, 0, nil
	}
	if Truthy(object.GetAnnotations()[resourcesv1alpha1.KeepObject]) { // the annotation may only be on the object in the cluster
		return true, 0, t.release(ctx, ref, r.origin)
	}
	if object.GetDeletionTimestamp() == nil {
		if r.withClaims && key.Kind == "StatefulSet" {
			// They are protected while pods use them. They have to be deleted first, as the selector is only in the StatefulSet.
			if err := t.removeClaims(ctx, object); err != nil {
				return false, 0, err
			}
		}
		uid := object.GetUID()
		err := t.live.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: &uid})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return false, 0, err
		}
		// Most objects are gone at once. If not, the watch requeues the ManagedResource when this one is.
		err = t.live.Get(ctx, key.NamespacedName, object)
		if apierrors.IsNotFound(err) {
			t.forget(key)
			return true, 0, nil
		}
		if err != nil {
			return false, 0, err
		}
	}
	again, err = t.finalize(ctx, object, ref)
	return false, again, err
}

// finalize removes the finalizers of an object that has been in deletion for as long as its annotation says. It may have got that later, because it was stuck.
func (t *target) finalize(ctx context.Context, object *unstructured.Unstructured, ref resourcesv1alpha1.ObjectReference) (time.Duration, error) {
	value := cmp.Or(object.GetAnnotations()[resourcesv1alpha1.FinalizeDeletionAfter], ref.Annotations[resourcesv1alpha1.FinalizeDeletionAfter])
	if value == "" || object.GetDeletionTimestamp() == nil || len(object.GetFinalizers()) == 0 {
		return 0, nil
	}
	grace, err := time.ParseDuration(value)
	if err != nil {
		return 0, fmt.Errorf("annotation %s: %q is not a duration such as 5m", resourcesv1alpha1.FinalizeDeletionAfter, value)
	}
	if left := grace - t.clock.Since(object.GetDeletionTimestamp().Time); left > 0 {
		return left, nil
	}
	patch := client.MergeFromWithOptions(object.DeepCopy(), client.MergeFromWithOptimisticLock{})
	object.SetFinalizers(nil)
	return time.Second, client.IgnoreNotFound(t.live.Patch(ctx, object, patch))
}

// removeClaims deletes the PersistentVolumeClaims of a StatefulSet.
func (t *target) removeClaims(ctx context.Context, set *unstructured.Unstructured) error {
	match, _, _ := unstructured.NestedStringMap(set.Object, "spec", "selector", "matchLabels")
	if len(match) == 0 {
		return nil
	}
	return t.live.DeleteAllOf(ctx, &corev1.PersistentVolumeClaim{}, client.InNamespace(set.GetNamespace()),
		client.MatchingLabelsSelector{Selector: labels.SelectorFromSet(match)})
}

// release removes the labels and annotations of managed objects from one that is kept.
func (t *target) release(ctx context.Context, ref resourcesv1alpha1.ObjectReference, origin string) error {
	t.forget(refKey(ref))
	object := kube.Metadata(ref.GroupVersionKind())
	if err := t.live.Get(ctx, refKey(ref).NamespacedName, object); err != nil {
		if meta.IsNoMatchError(err) {
			return nil
		}
		return client.IgnoreNotFound(err)
	}
	if object.Annotations[resourcesv1alpha1.OriginAnnotation] != origin {
		return nil
	}
	patch := client.MergeFrom(object.DeepCopy())
	delete(object.Annotations, resourcesv1alpha1.OriginAnnotation)
	delete(object.Annotations, resourcesv1alpha1.DescriptionAnnotation)
	delete(object.Labels, resourcesv1alpha1.ManagedBy)
	return client.IgnoreNotFound(t.live.Patch(ctx, object, patch))
}

func refKey(ref resourcesv1alpha1.ObjectReference) objectKey {
	return objectKey{ref.GroupVersionKind().GroupKind(), types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}}
}

// describe returns kind and name of an object, for messages.
func describe(key objectKey) string {
	name := key.Name
	if key.Namespace != "" {
		name = key.Namespace + "/" + name
	}
	return fmt.Sprintf("%s %q", key.Kind, name)
}
