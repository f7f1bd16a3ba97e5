// Package backup reconciles BackupBuckets and BackupEntries of the garden by resources of extensions in the seed.
//
// A Reconciler has what both kinds share: finalizer, copy of the credentials, resource in the seed, and the status in the garden. A Kind
// has the rest.
package backup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/component/extensionobject"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/stage/usercredential"
)

// statusTimeout is the end of a write of the status, which may happen after the end of a pass.
const statusTimeout = 5 * time.Second

// tokenTimeout is how long a pass waits for a token of a WorkloadIdentity, which takes a request or two.
const tokenTimeout = 30 * time.Second

// syncJitter is the part of the sync period by which it varies, so that the objects of a seed are not reconciled all at once.
const syncJitter = 0.2

// Kind is what is particular to BackupBuckets or BackupEntries. T is the type in the garden, E that of the extension resource, which has the
// same name.
type Kind[T client.Object, E extensionsv1alpha1.Object] interface {
	// SeedName is the name of the seed whose gardenlet is responsible for an object.
	SeedName(obj T) *string
	// Operation is what is to be done with an object that is not deleted: Reconcile, Migrate or Restore. Empty means nothing.
	Operation(obj T) corev1beta1.LastOperationType
	// State returns what the extension had reported on another seed, for an object that is restored.
	State(ctx context.Context, obj T) (extensionobject.State, error)
	// Migrated records in the status that the seed has nothing of an object any more.
	Migrated(obj T)
	// Status are the fields of the status that both kinds have.
	Status(obj T) Status
	// CopyName is the name of the Secret in the namespace garden of the seed with the copy of the credentials.
	CopyName(obj T) string
	// Credentials reads the credentials. It changes nothing, and does not wait until an object in the garden is ready.
	Credentials(ctx context.Context, obj T) (usercredential.Credential, error)
	// Prepare returns the credentials, and a function that writes the desired spec of the extension resource, of which the
	// copy is at ref. The error is a *Pending if an object in the garden is not ready yet.
	Prepare(ctx context.Context, obj T) (credentials usercredential.Credential, setSpec func(resource E, ref corev1.SecretReference), err error)
	// Applied is called when the extension resource is written, and with ready when its last operation has succeeded. It may change the
	// status of the object, which is written later.
	Applied(ctx context.Context, obj T, resource E, ready bool) error
	// BeforeDeletion is called before the extension resource is deleted. The error is a *Pending if it may not be deleted yet.
	BeforeDeletion(ctx context.Context, obj T) error
	// AfterDeletion is called when the extension resource and the copy of the credentials are deleted, before the finalizer is removed.
	AfterDeletion(ctx context.Context, obj T) error
}

// Status are the fields of a status that a Reconciler writes.
type Status struct {
	ObservedGeneration *int64
	LastOperation      **corev1beta1.LastOperation
	LastError          **corev1beta1.LastError
}

// Pending is the error of a Kind that has to wait.
type Pending struct {
	// Message is a sentence for the description of the last operation.
	Message string
	// After is when to reconcile again. Zero if a watch triggers that.
	After time.Duration
}

func (p *Pending) Error() string { return p.Message }

// Reconciler reconciles the objects of one kind that are for a seed.
type Reconciler[T client.Object, E extensionsv1alpha1.Object] struct {
	// Kind is what is particular to the kind.
	Kind Kind[T, E]
	// KindName is BackupBucket or BackupEntry, for messages.
	KindName string
	// SeedName is the name of the seed.
	SeedName string
	// GardenCache and SeedCache read from the caches of the garden and of the seed.
	GardenCache, SeedCache client.Client
	// GardenAPI reads objects of the kind: the cache may not have the status yet that the last pass has written.
	GardenAPI client.Reader
	// SeedAPI is the API server of the seed.
	SeedAPI client.WithWatch
	// SyncPeriod is after how long an object is reconciled again although nothing has requested it: a gardenlet may not watch the credentials in
	// the garden. Without new ones, nothing is written, unless the extension has given up for so long: then it is requested again.
	SyncPeriod time.Duration
	// RequestPeriod is after how long the extension is requested again although nothing has changed. Zero means never.
	RequestPeriod time.Duration
	// Clock is for the status.
	Clock clock.PassiveClock
}

// Reconcile applies the extension resource of one object, or deletes it, and reports the result in the status of the object.
func (r *Reconciler[T, E]) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	obj := empty[T]()
	if err := r.GardenAPI.Get(ctx, req.NamespacedName, obj); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if ptr.Deref(r.Kind.SeedName(obj), "") != r.SeedName {
		return reconcile.Result{}, nil
	}
	before := obj.DeepCopyObject().(T) //nolint:forcetypeassert // a copy has its original's type
	act, operation := r.apply, r.Kind.Operation(obj)
	switch {
	case obj.GetDeletionTimestamp() != nil:
		act, operation = r.delete, corev1beta1.LastOperationTypeDelete
	case operation == corev1beta1.LastOperationTypeMigrate:
		act = r.migrate
	case operation == "":
		return reconcile.Result{}, nil
	}
	verdict, err := act(ctx, obj)
	if kube.Contested(err) {
		return kube.Result(err)
	}
	var pending *Pending
	after, cause := wait.Jitter(r.SyncPeriod, syncJitter), err
	switch {
	case errors.As(err, &pending):
		verdict, after = extensionobject.Verdict{Message: pending.Message}, cmp.Or(pending.After, after)
		cause, err = nil, nil
	case errors.Is(err, reconcile.TerminalError(nil)):
		cause = errors.Unwrap(err)
	}
	if cause != nil {
		verdict = extensionobject.Verdict{Error: &corev1beta1.LastError{Description: cause.Error()}, Message: cause.Error()}
	}
	status := r.Kind.Status(obj)
	extensionobject.Record(status.LastOperation, status.LastError, operation, verdict, r.succeeded(operation), metav1.NewTime(r.Clock.Now()))
	if err := r.patchStatus(ctx, before, obj); err != nil {
		return reconcile.Result{}, errors.Join(cause, err) // retried even if the cause is final
	}
	if operation == corev1beta1.LastOperationTypeDelete && verdict.Ready {
		// It is the last write, as a gardenlet may not write to what does not exist any more.
		return kube.Result(kube.RemoveFinalizer(ctx, r.GardenCache, obj, constants.FinalizerGardenerName))
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: after}, nil
}

// succeeded is the description of an operation that has succeeded.
func (r *Reconciler[T, E]) succeeded(operation corev1beta1.LastOperationType) string {
	done := map[corev1beta1.LastOperationType]string{
		corev1beta1.LastOperationTypeDelete: "deleted", corev1beta1.LastOperationTypeMigrate: "prepared for migration",
		corev1beta1.LastOperationTypeRestore: "restored", corev1beta1.LastOperationTypeReconcile: "reconciled",
	}
	return r.KindName + " has been " + done[operation] + "."
}

// apply applies the extension resource, and returns how far its controller is. The status that it changes is not written yet.
func (r *Reconciler[T, E]) apply(ctx context.Context, obj T) (extensionobject.Verdict, error) {
	if err := kube.AddFinalizer(ctx, r.GardenCache, obj, constants.FinalizerGardenerName); err != nil {
		return extensionobject.Verdict{}, err
	}
	credentials, setSpec, err := r.Kind.Prepare(ctx, obj)
	if err != nil {
		return extensionobject.Verdict{}, err
	}
	checksum, err := workload.ChecksumOfData(credentials) // without the token of a WorkloadIdentity, which is renewed often
	if err != nil {
		return extensionobject.Verdict{}, err
	}
	secret := r.copyOf(obj)
	copied, err := r.copy(ctx, secret, credentials)
	if err != nil {
		return extensionobject.Verdict{}, err
	}
	if err := r.awaitToken(ctx, credentials, secret); err != nil {
		return extensionobject.Verdict{}, err
	}
	write := func(resource E) {
		setSpec(resource, corev1.SecretReference{Namespace: secret.Namespace, Name: secret.Name})
		// The extension is requested also if a pass has failed after it had written the copy.
		annotate(resource, extensionobject.AnnotationCredentials, checksum)
	}
	status := r.Kind.Status(obj)
	requested := obj.GetAnnotations()[constants.GardenerOperation] == constants.GardenerOperationReconcile
	changed := requested || copied || *status.ObservedGeneration != obj.GetGeneration()
	var resource E
	restores := r.Kind.Operation(obj) == corev1beta1.LastOperationTypeRestore
	if restores {
		resource, err = r.restoreResource(ctx, obj, write)
	} else {
		resource, err = r.applyResource(ctx, obj.GetName(), changed, write)
	}
	if err != nil {
		return extensionobject.Verdict{}, err
	}
	verdict := extensionobject.Judge(resource)
	if requested || restores && verdict.Ready {
		if err := kube.PatchMetadata(ctx, r.GardenCache, obj, func(o *metav1.PartialObjectMetadata) {
			delete(o.Annotations, constants.GardenerOperation)
		}); err != nil {
			return extensionobject.Verdict{}, err
		}
	}
	*status.ObservedGeneration = obj.GetGeneration()
	return verdict, r.Kind.Applied(ctx, obj, resource, verdict.Ready)
}

// applyResource applies the extension resource, and requests its reconciliation if it or what it depends on has changed, if the last one was long ago, or if
// the extension has given it up.
func (r *Reconciler[T, E]) applyResource(ctx context.Context, name string, changed bool, write func(E)) (E, error) {
	resource := empty[E]()
	resource.SetName(name)
	_, err := controllerutil.CreateOrPatch(ctx, r.SeedCache, resource, func() error {
		now := r.Clock.Now()
		again := extensionobject.Overdue(resource, r.RequestPeriod, now) || extensionobject.GaveUp(resource, r.SyncPeriod, now)
		before := resource.DeepCopyObject()
		write(resource)
		if !changed && !again && resource.GetUID() != "" && apiequality.Semantic.DeepEqual(before, resource) {
			return nil
		}
		logf.FromContext(ctx).Info("Requesting reconciliation by the extension", "kind", r.KindName, "name", name)
		annotate(resource, constants.GardenerOperation, constants.GardenerOperationReconcile)
		annotate(resource, constants.GardenerTimestamp, now.UTC().Format(time.RFC3339Nano))
		return nil
	})
	if err != nil {
		return resource, fmt.Errorf("apply %s %q in the seed: %w", r.KindName, name, err)
	}
	return resource, nil
}

// restoreResource applies the extension resource with the state from another seed, and requests its restoration, once.
func (r *Reconciler[T, E]) restoreResource(ctx context.Context, obj T, write func(E)) (E, error) {
	resource := empty[E]()
	resource.SetName(obj.GetName())
	if err := r.SeedAPI.Get(ctx, client.ObjectKeyFromObject(resource), resource); client.IgnoreNotFound(err) != nil {
		return resource, fmt.Errorf("read %s %q in the seed: %w", r.KindName, obj.GetName(), err)
	}
	last := resource.GetExtensionStatus().GetLastOperation()
	if resource.GetAnnotations()[constants.GardenerOperation] == constants.GardenerOperationRestore ||
		last != nil && last.Type == corev1beta1.LastOperationTypeRestore {
		return resource, nil // its extension retries by itself
	}
	logf.FromContext(ctx).Info("Requesting restoration by the extension", "kind", r.KindName, "name", obj.GetName())
	return resource, extensionobject.Apply(ctx, extensionobject.Values{
		Client: r.SeedAPI, Clock: r.Clock,
		Restore: func(ctx context.Context, _, _ string) (extensionobject.State, error) { return r.Kind.State(ctx, obj) },
	}, resource, write)
}

// migrate has the extension release the resource, deletes it and the copy of the credentials. It is ready when both are gone; the backups stay.
func (r *Reconciler[T, E]) migrate(ctx context.Context, obj T) (extensionobject.Verdict, error) {
	*r.Kind.Status(obj).ObservedGeneration = obj.GetGeneration()
	values, resource := extensionobject.Values{Client: r.SeedAPI, Clock: r.Clock}, empty[E]()
	err := r.SeedAPI.Get(ctx, client.ObjectKey{Name: obj.GetName()}, resource)
	switch {
	case apierrors.IsNotFound(err):
		if err := r.SeedCache.Delete(ctx, r.copyOf(obj)); client.IgnoreNotFound(err) != nil {
			return extensionobject.Verdict{}, fmt.Errorf("delete credentials in the seed: %w", err)
		}
		r.Kind.Migrated(obj)
		return extensionobject.Verdict{Ready: true}, nil
	case err != nil:
		return extensionobject.Verdict{}, fmt.Errorf("read %s %q in the seed: %w", r.KindName, obj.GetName(), err)
	case resource.GetDeletionTimestamp() != nil || extensionobject.Migrated(resource):
		return r.deleteResource(ctx, resource, false)
	}
	if err := extensionobject.Migrate(ctx, values, resource); err != nil {
		return extensionobject.Verdict{}, err
	}
	verdict := extensionobject.Verdict{Message: "Waiting until the extension has released the " + r.KindName + "."}
	if last := resource.GetExtensionStatus().GetLastError(); last != nil {
		verdict.Error, verdict.Message = last, last.Description
	}
	return verdict, nil
}

// delete deletes the extension resource and the copy of the credentials. It is ready when both are gone.
func (r *Reconciler[T, E]) delete(ctx context.Context, obj T) (extensionobject.Verdict, error) {
	if !controllerutil.ContainsFinalizer(obj, constants.FinalizerGardenerName) {
		return extensionobject.Verdict{Ready: true}, nil
	}
	if err := r.Kind.BeforeDeletion(ctx, obj); err != nil {
		return extensionobject.Verdict{}, err
	}
	resource := empty[E]()
	switch err := r.SeedCache.Get(ctx, client.ObjectKey{Name: obj.GetName()}, resource); {
	case err == nil:
		refreshed, err := r.refresh(ctx, obj)
		if err != nil {
			return extensionobject.Verdict{}, err
		}
		return r.deleteResource(ctx, resource, refreshed)
	case !apierrors.IsNotFound(err):
		return extensionobject.Verdict{}, fmt.Errorf("read %s %q in the seed: %w", r.KindName, obj.GetName(), err)
	}
	if err := r.SeedCache.Delete(ctx, r.copyOf(obj)); client.IgnoreNotFound(err) != nil {
		return extensionobject.Verdict{}, fmt.Errorf("delete credentials in the seed: %w", err)
	}
	return extensionobject.Verdict{Ready: true}, r.Kind.AfterDeletion(ctx, obj)
}

// deleteResource deletes the extension resource. The extension is requested to retry a deletion when the credentials are refreshed.
func (r *Reconciler[T, E]) deleteResource(ctx context.Context, resource E, refreshed bool) (extensionobject.Verdict, error) {
	values := extensionobject.Values{Client: r.SeedAPI, Clock: r.Clock}
	if resource.GetDeletionTimestamp() == nil {
		if err := extensionobject.Delete(ctx, values, resource); err != nil {
			return extensionobject.Verdict{}, err
		}
	} else if refreshed {
		if err := extensionobject.RequestDeletion(ctx, values, resource); err != nil {
			return extensionobject.Verdict{}, fmt.Errorf("request the deletion of %s %q again: %w", r.KindName, resource.GetName(), err)
		}
	}
	verdict := extensionobject.Judge(resource)
	verdict.Ready, verdict.Message = false, "Waiting until the extension has deleted the "+r.KindName+"."
	if verdict.Error != nil {
		verdict.Message = verdict.Error.Description
	}
	return verdict, nil
}

// copyOf is the Secret with the copy of the credentials, without its data.
func (r *Reconciler[T, E]) copyOf(obj T) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: r.Kind.CopyName(obj)}}
}

// copy writes the copy of the credentials, and reports whether it has changed.
func (r *Reconciler[T, E]) copy(ctx context.Context, secret *corev1.Secret, credentials usercredential.Credential) (bool, error) {
	result, err := controllerutil.CreateOrPatch(ctx, r.SeedCache, secret, func() error {
		fill(secret, credentials)
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("copy credentials to Secret %q: %w", client.ObjectKeyFromObject(secret), err)
	}
	return result != controllerutil.OperationResultNone, nil
}

// refresh updates the copy of the credentials for a deletion, as they may have changed while the backups were kept, and reports whether it has. What cannot be
// read must not block the deletion: then the copy stays as it is.
func (r *Reconciler[T, E]) refresh(ctx context.Context, obj T) (bool, error) {
	credentials, err := r.Kind.Credentials(ctx, obj)
	if err != nil {
		logf.FromContext(ctx).Error(err, "Deleting with the existing copy of the credentials", "kind", r.KindName, "name", obj.GetName())
		return false, nil
	}
	return r.copy(ctx, r.copyOf(obj), credentials)
}

// fill writes credentials into their copy. The token of a WorkloadIdentity, which another controller writes and renews, stays as long as it
// is the token of the same one for the same user.
func fill(secret *corev1.Secret, credentials usercredential.Credential) {
	of := func(key string) bool { return secret.Annotations[key] == credentials.Annotations[key] }
	data, annotations := maps.Clone(credentials.Data), maps.Clone(credentials.Annotations)
	if credentials.Kind == usercredential.WorkloadIdentity && of(securityv1alpha1.AnnotationWorkloadIdentityNamespace) &&
		of(securityv1alpha1.AnnotationWorkloadIdentityName) && of(securityv1alpha1.AnnotationWorkloadIdentityContextObject) {
		if token := secret.Data[securityv1alpha1.DataKeyToken]; len(token) > 0 {
			if data == nil {
				data = map[string][]byte{}
			}
			data[securityv1alpha1.DataKeyToken] = token
		}
		const renewal = securityv1alpha1.AnnotationWorkloadIdentityTokenRenewTimestamp
		if at, ok := secret.Annotations[renewal]; ok {
			annotations[renewal] = at
		}
	}
	secret.Data, secret.Labels, secret.Annotations = data, credentials.Labels, annotations
	if secret.UID == "" { // the type cannot change
		secret.Type = corev1.SecretTypeOpaque
	}
}

func annotate(obj client.Object, key, value string) {
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	obj.SetAnnotations(annotations)
}

// awaitToken waits until the copy of credentials has the token of a WorkloadIdentity.
func (r *Reconciler[T, E]) awaitToken(ctx context.Context, credentials usercredential.Credential, secret *corev1.Secret) error {
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	return credentials.AwaitToken(ctx, r.SeedAPI, secret.Namespace, secret.Name)
}

// patchStatus writes what differs in the status. It works after the end of the pass too.
func (r *Reconciler[T, E]) patchStatus(ctx context.Context, before, after T) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), statusTimeout)
	defer cancel()
	if apiequality.Semantic.DeepEqual(before, after) {
		return nil
	}
	if err := r.GardenCache.Status().Patch(ctx, after, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patch status: %w", err)
	}
	return nil
}

// empty returns a pointer to an empty object.
func empty[T any]() T {
	return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T) //nolint:forcetypeassert // T is a pointer to a struct
}
