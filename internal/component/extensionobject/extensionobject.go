// Package extensionobject writes the resources of extensions.gardener.cloud, requests operations on them, waits for extension controllers,
// and judges their status. Source: gep-1-extensibility.txt.
package extensionobject

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/errorcode"
)

// errorTimeout is how long a wait goes on while an extension reports errors. It retries by itself, so that errors that pass within this time do
// not fail the operation.
const errorTimeout = 30 * time.Second

// errNeedsUser ends a wait for an operation that has failed with an error that only the user can fix.
var errNeedsUser = errors.New("it is not retried, as the user has to fix it first")

// Values are what the functions of this package need.
type Values struct {
	// Client is a client for the seed.
	Client client.WithWatch
	// Clock is the source of the annotation gardener.cloud/timestamp.
	Clock clock.PassiveClock
	// Always requests reconciliation even if nothing has changed and the resource is ready. Otherwise only what is new, changed or not ready
	// is reconciled.
	Always bool
	// Period is after how long reconciliation is requested again even if nothing has changed. Zero means never.
	Period time.Duration
	// Restore returns the state of a resource that is restored: one that was not reconciled on this seed yet. Nil means that none is.
	Restore func(ctx context.Context, kind, name string) (State, error)
	// Controller returns the ControllerInstallation that is responsible for resources of a kind and type, or nil if there is none, see ReadResponsible.
	// Waits end early if its controller does not run. Nil means that they do not.
	Controller func(ctx context.Context, kind, typ string) (*corev1beta1.ControllerInstallation, error)
}

// Apply creates or updates a resource, and requests its reconciliation, or its restoration. The given object needs a name and a namespace; mutate gets
// it as it is in the seed and sets what is desired. Afterwards it is the object in the seed.
func Apply[T extensionsv1alpha1.Object](ctx context.Context, v Values, obj T, mutate func(T)) error {
	restores := false
	_, err := controllerutil.CreateOrPatch(ctx, v.Client, obj, func() error {
		before := obj.DeepCopyObject().(T) //nolint:forcetypeassert // a copy has its original's type
		mutate(obj)
		operation := constants.GardenerOperationReconcile
		if restores = v.Restore != nil && !Restored(obj); restores {
			operation = constants.GardenerOperationWaitForState
		}
		if !v.Always && !restores && obj.GetUID() != "" && apiequality.Semantic.DeepEqual(before, obj) && Judge(obj).Ready &&
			(v.Period == 0 || !Overdue(obj, v.Period, v.Clock.Now())) {
			return nil
		}
		annotations := obj.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[constants.GardenerOperation] = operation
		annotations[constants.GardenerTimestamp] = v.Clock.Now().UTC().Format(time.RFC3339Nano)
		obj.SetAnnotations(annotations)
		return nil
	})
	if err != nil {
		return fmt.Errorf("write %s: %w", describe(v.Client, obj), err)
	}
	if restores {
		return restore(ctx, v, obj)
	}
	return nil
}

// Await waits until a resource is ready, and reads it. The error says what is missing, with the codes of the extension. An error that only the
// user can fix ends the wait at once.
func Await(ctx context.Context, v Values, obj extensionsv1alpha1.Object) error {
	return AwaitReport(ctx, v, obj, func(extensionsv1alpha1.Object) bool { return false })
}

// AwaitReport is Await for what an extension reports before the resource is ready: it also returns when enough is true for the resource.
func AwaitReport(ctx context.Context, v Values, obj extensionsv1alpha1.Object, enough func(current extensionsv1alpha1.Object) bool) error {
	ctx, observe, stop := WithErrorTimeout(ctx)
	defer stop()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	found, err := await(ctx, v, obj, func(current extensionsv1alpha1.Object) error {
		if current == nil {
			return fmt.Errorf("%s does not exist", describe(v.Client, obj)) // it was deleted meanwhile; the next run creates it again
		}
		if enough(current) {
			return nil
		}
		verdict := Judge(current)
		observe(verdict.Error)
		if verdict.Error != nil && needsUser(current, false) {
			end(errNeedsUser)
		}
		if err := verdict.Err(); err != nil {
			return withCodes(fmt.Errorf("%s: %w%s", describe(v.Client, obj), err, unobserved(current)), verdict.Error)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return v.Client.Get(ctx, client.ObjectKeyFromObject(found), obj)
}

// unobserved says what to do about a resource whose extension controller has not begun to work on it.
func unobserved(obj extensionsv1alpha1.Object) string {
	if begun(obj) {
		return ""
	}
	return fmt.Sprintf(" See the ControllerInstallation of the extension for type %q on the seed, and its pods.", obj.GetExtensionSpec().GetExtensionType())
}

// needsUser reports whether the deletion of a resource, or another operation, has failed with an error that only the user can fix since it was
// requested last. An older error may be fixed by now.
func needsUser(obj extensionsv1alpha1.Object, deletion bool) bool {
	last, lastError := obj.GetExtensionStatus().GetLastOperation(), obj.GetExtensionStatus().GetLastError()
	if last == nil || lastError == nil || !errorcode.NeedsUser(lastError.Codes) || obj.GetAnnotations()[constants.GardenerOperation] != "" {
		return false
	}
	if ended := last.State == corev1beta1.LastOperationStateError || last.State == corev1beta1.LastOperationStateFailed; !ended ||
		deletion != (last.Type == corev1beta1.LastOperationTypeDelete) {
		return false
	}
	requested := requestedAt(obj)
	return !requested.IsZero() && reportedSince(obj, requested)
}

// Delete confirms the deletion of a resource, and deletes it. Its extension controller has deleted what it is for when AwaitGone returns. If it
// has failed before, Delete requests that it tries again.
func Delete(ctx context.Context, v Values, obj extensionsv1alpha1.Object) error {
	err := v.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil && obj.GetDeletionTimestamp() != nil {
		if !needsUser(obj, true) {
			return nil
		}
		if err := RequestDeletion(ctx, v, obj); err != nil {
			return fmt.Errorf("request the deletion of %s again: %w", describe(v.Client, obj), err)
		}
		return nil
	}
	if err == nil {
		// The webhook of the seed, and extensions, refuse a deletion that is not confirmed.
		err = kube.PatchMetadata(ctx, v.Client, obj, func(o *metav1.PartialObjectMetadata) {
			metav1.SetMetaDataAnnotation(&o.ObjectMeta, constants.ConfirmationDeletion, "true")
			metav1.SetMetaDataAnnotation(&o.ObjectMeta, constants.GardenerTimestamp, v.Clock.Now().UTC().Format(time.RFC3339Nano))
		})
	}
	if err == nil {
		err = v.Client.Delete(ctx, obj)
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete %s: %w", describe(v.Client, obj), err)
	}
	return nil
}

// RequestDeletion requests from its extension to try the deletion of a resource again, which has been deleted before.
func RequestDeletion(ctx context.Context, v Values, obj extensionsv1alpha1.Object) error {
	return client.IgnoreNotFound(request(ctx, v, obj, constants.GardenerOperationReconcile))
}

// AwaitGone waits until a resource is gone. The error has the last error of its extension, with its codes. An error that only the user can fix
// ends the wait at once.
func AwaitGone(ctx context.Context, v Values, obj extensionsv1alpha1.Object) error {
	ctx, observe, stop := WithErrorTimeout(ctx)
	defer stop()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	_, err := await(ctx, v, obj, func(current extensionsv1alpha1.Object) error {
		if current == nil {
			return nil
		}
		err := fmt.Errorf("%s still exists", describe(v.Client, obj))
		last := current.GetExtensionStatus().GetLastError()
		if last != nil {
			observe(last)
			if needsUser(current, true) {
				end(errNeedsUser)
			}
			err = fmt.Errorf("%w: %s", err, last.Description)
		}
		return withCodes(err, last)
	})
	return err
}

// await watches one resource until check returns nil, and returns it. The check gets nil while the resource does not exist.
func await(
	ctx context.Context, v Values, obj extensionsv1alpha1.Object, check func(current extensionsv1alpha1.Object) error,
) (found extensionsv1alpha1.Object, err error) {
	gvk, list, err := listFor(v.Client, obj)
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	var seen atomic.Value
	defer endIfNotRunning(ctx, v, gvk.Kind, &seen, end)()
	err = kube.AwaitKind(ctx, v.Client, obj, list, func(objects []client.Object) error {
		if len(objects) == 0 {
			return check(nil)
		}
		found = objects[0].(extensionsv1alpha1.Object) //nolint:forcetypeassert // the kind that is watched
		seen.Store(found)
		return check(found)
	}, nil, client.InNamespace(obj.GetNamespace()), client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", obj.GetName())})
	return found, err
}

// listFor returns the kind of an object, and an empty list of it.
func listFor(c client.Client, obj runtime.Object) (schema.GroupVersionKind, client.ObjectList, error) {
	gvk, err := apiutil.GVKForObject(obj, c.Scheme())
	if err != nil {
		return gvk, nil, err
	}
	list, err := c.Scheme().New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err != nil {
		return gvk, nil, err
	}
	return gvk, list.(client.ObjectList), nil //nolint:forcetypeassert // it is in the scheme under the name of a list
}

// withCodes adds the codes of a last error, if there is one, to an error.
func withCodes(err error, last *corev1beta1.LastError) error {
	if last == nil {
		return err
	}
	return errorcode.With(err, last.Codes...)
}

func describe(c client.Client, obj client.Object) string {
	gvk, err := apiutil.GVKForObject(obj, c.Scheme())
	if err != nil {
		return fmt.Sprintf("%T %q", obj, obj.GetName())
	}
	return fmt.Sprintf("%s %q", gvk.Kind, obj.GetName())
}

// WithErrorTimeout returns a context for a wait that ends when errors are reported for too long. Observe is to be called with each last error that is
// seen, or with nil when there is none; stop releases what the context holds.
func WithErrorTimeout(ctx context.Context) (waiting context.Context, observe func(*corev1beta1.LastError), stop func()) {
	waiting, cancel := context.WithCancelCause(ctx)
	t := &errorTimer{cancel: cancel}
	return waiting, t.observe, func() { t.stop(); cancel(nil) }
}

// errorTimer cancels a wait when errors are reported for longer than errorTimeout.
type errorTimer struct {
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

func (t *errorTimer) observe(last *corev1beta1.LastError) {
	switch {
	case last == nil:
		t.stop()
		t.timer = nil
	case t.timer == nil:
		t.timer = time.AfterFunc(errorTimeout, func() { t.cancel(fmt.Errorf("in error for %s", errorTimeout)) })
	}
}

func (t *errorTimer) stop() {
	if t.timer != nil {
		t.timer.Stop()
	}
}
