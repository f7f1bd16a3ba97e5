// Package extensionobject orders work from extensions: it writes a resource of theirs, says that there is something to do, and waits
// until it is done. Source: gep-1-extensibility.txt.
package extensionobject

import (
	"context"
	"errors"
	"fmt"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
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

// patience is for how long an extension may report the error of its last try until the wait for it ends. It tries again by itself; what
// passes within this time nobody has to hear of.
const patience = 30 * time.Second

// Values are what a resource is ordered with.
type Values struct {
	// Client reaches the seed.
	Client client.WithWatch
	// Clock tells the time of the order.
	Clock clock.PassiveClock
	// Always orders again even if nothing has changed since the extension was done. Otherwise only what is new, changed or not done is.
	Always bool
}

// Order makes a resource be as mutate makes it, and has its extension work on it. The object needs its name; it is what is there
// afterwards.
func Order[T extensionsv1alpha1.Object](ctx context.Context, v Values, obj T, mutate func(T)) error {
	_, err := controllerutil.CreateOrPatch(ctx, v.Client, obj, func() error {
		before := obj.DeepCopyObject().(T) //nolint:forcetypeassert // a copy has its original's type
		mutate(obj)
		if !v.Always && obj.GetUID() != "" && apiequality.Semantic.DeepEqual(before, obj) && verdict(obj) == nil {
			return nil
		}
		annotations := obj.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[constants.GardenerOperation] = constants.GardenerOperationReconcile
		annotations[constants.GardenerTimestamp] = v.Clock.Now().UTC().Format(time.RFC3339Nano)
		obj.SetAnnotations(annotations)
		return nil
	})
	if err != nil {
		return fmt.Errorf("order %s: %w", describe(v.Client, obj), err)
	}
	return nil
}

// Await waits until an extension is done with a resource, and reads it. The error names what is missing, with the codes of the extension.
func Await(ctx context.Context, v Values, obj extensionsv1alpha1.Object) error {
	ctx, heard, stop := Impatient(ctx)
	defer stop()
	found, err := await(ctx, v.Client, obj, func(current extensionsv1alpha1.Object, there bool) error {
		if !there {
			return fmt.Errorf("%s is not there", describe(v.Client, obj)) // somebody deleted it, and the next run orders it again
		}
		if err := verdict(current); err != nil {
			heard(current.GetExtensionStatus().GetLastError())
			return errorcode.With(fmt.Errorf("%s: %w", describe(v.Client, obj), err), codes(current)...)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return v.Client.Get(ctx, client.ObjectKeyFromObject(found), obj)
}

// Delete has an extension undo what a resource stands for. The resource is gone when AwaitGone returns.
func Delete(ctx context.Context, v Values, obj extensionsv1alpha1.Object) error {
	err := v.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)
	if apierrors.IsNotFound(err) || err == nil && obj.GetDeletionTimestamp() != nil {
		return nil
	}
	if err == nil {
		// Extensions, and the webhook of the seed, want to be sure that somebody means it.
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

// AwaitGone waits until a resource is gone. The error names what its extension said last, with its codes.
func AwaitGone(ctx context.Context, v Values, obj extensionsv1alpha1.Object) error {
	ctx, heard, stop := Impatient(ctx)
	defer stop()
	_, err := await(ctx, v.Client, obj, func(current extensionsv1alpha1.Object, there bool) error {
		if !there {
			return nil
		}
		err := fmt.Errorf("%s is still there", describe(v.Client, obj))
		if last := current.GetExtensionStatus().GetLastError(); last != nil {
			heard(last)
			err = fmt.Errorf("%w: %s", err, last.Description)
		}
		return errorcode.With(err, codes(current)...)
	})
	return err
}

// await watches one resource.
func await(
	ctx context.Context, c client.WithWatch, obj extensionsv1alpha1.Object, check func(current extensionsv1alpha1.Object, there bool) error,
) (found extensionsv1alpha1.Object, err error) {
	list, err := listFor(c, obj)
	if err != nil {
		return nil, err
	}
	err = kube.AwaitKind(ctx, c, obj, list, func(objects []client.Object) error {
		if len(objects) == 0 {
			return check(nil, false)
		}
		found = objects[0].(extensionsv1alpha1.Object) //nolint:forcetypeassert // the kind that is watched
		return check(found, true)
	}, nil, client.InNamespace(obj.GetNamespace()), client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", obj.GetName())})
	return found, err
}

// listFor returns an empty list of the kind of an object.
func listFor(c client.Client, obj runtime.Object) (client.ObjectList, error) {
	gvk, err := apiutil.GVKForObject(obj, c.Scheme())
	if err != nil {
		return nil, err
	}
	list, err := c.Scheme().New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err != nil {
		return nil, err
	}
	return list.(client.ObjectList), nil //nolint:forcetypeassert // it is in the scheme under the name of a list
}

// verdict returns why an extension is not done with a resource, or nil if it is.
func verdict(obj extensionsv1alpha1.Object) error {
	status := obj.GetExtensionStatus()
	last := status.GetLastOperation()
	switch {
	case obj.GetAnnotations()[constants.GardenerOperation] != "":
		return errors.New("the extension has not begun yet")
	case last == nil || status.GetObservedGeneration() != obj.GetGeneration():
		return errors.New("the extension has not seen the last change yet")
	case status.GetLastError() != nil:
		return errors.New(status.GetLastError().Description)
	case last.State != corev1beta1.LastOperationStateSucceeded:
		return fmt.Errorf("%s is %s (%d%%): %s", last.Type, last.State, last.Progress, last.Description)
	}
	return nil
}

func codes(obj extensionsv1alpha1.Object) []corev1beta1.ErrorCode {
	if last := obj.GetExtensionStatus().GetLastError(); last != nil {
		return last.Codes
	}
	return nil
}

func describe(c client.Client, obj client.Object) string {
	gvk, err := apiutil.GVKForObject(obj, c.Scheme())
	if err != nil {
		return fmt.Sprintf("%T %q", obj, obj.GetName())
	}
	return fmt.Sprintf("%s %q", gvk.Kind, obj.GetName())
}

// Impatient returns a context for a wait that ends when an error is reported for too long. The function hears what the last error is, none
// included; the last one ends the wait.
func Impatient(ctx context.Context) (waiting context.Context, heard func(*corev1beta1.LastError), stop func()) {
	waiting, cancel := context.WithCancelCause(ctx)
	i := &impatience{limit: patience, cancel: cancel}
	return waiting, i.heard, func() { i.stop(); cancel(nil) }
}

// impatience ends a wait when an extension has been in error for too long.
type impatience struct {
	limit  time.Duration
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

func (i *impatience) heard(last *corev1beta1.LastError) {
	switch {
	case last == nil:
		i.stop()
		i.timer = nil
	case i.timer == nil:
		i.timer = time.AfterFunc(i.limit, func() { i.cancel(fmt.Errorf("in error for %s", i.limit)) })
	}
}

func (i *impatience) stop() {
	if i.timer != nil {
		i.timer.Stop()
	}
}
