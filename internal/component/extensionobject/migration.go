package extensionobject

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
)

// State is what the extension of a resource had reported on another seed. Either field may be nil.
type State struct {
	State     *runtime.RawExtension
	Resources []corev1beta1.NamedResourceReference
}

// Migrate requests from its extension to release a resource: what exists outside of the seed stays. AwaitMigrated waits until it has. A resource that
// is released or deleted already stays as it is.
func Migrate(ctx context.Context, v Values, obj extensionsv1alpha1.Object) error {
	if err := v.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("read %s: %w", describe(v.Client, obj), err)
	}
	if Migrated(obj) || obj.GetAnnotations()[constants.GardenerOperation] == constants.GardenerOperationMigrate {
		return nil
	}
	err := request(ctx, v, obj, constants.GardenerOperationMigrate)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("request the migration of %s: %w", describe(v.Client, obj), err)
	}
	return nil
}

// Migrated is whether an extension has released a resource. It removes the annotation last.
func Migrated(obj extensionsv1alpha1.Object) bool {
	last := obj.GetExtensionStatus().GetLastOperation()
	return last != nil && last.Type == corev1beta1.LastOperationTypeMigrate && last.State == corev1beta1.LastOperationStateSucceeded &&
		obj.GetAnnotations()[constants.GardenerOperation] == ""
}

// AwaitMigrated waits until an extension has released a resource, or the resource is gone.
func AwaitMigrated(ctx context.Context, v Values, obj extensionsv1alpha1.Object) error {
	ctx, observe, stop := WithErrorTimeout(ctx)
	defer stop()
	_, err := await(ctx, v, obj, func(current extensionsv1alpha1.Object) error {
		if current == nil || Migrated(current) {
			return nil
		}
		last := current.GetExtensionStatus().GetLastError()
		observe(last)
		err := fmt.Errorf("%s is not migrated yet", describe(v.Client, obj))
		if last != nil {
			err = fmt.Errorf("%w: %s", err, last.Description)
		}
		return withCodes(err, last)
	})
	return err
}

// Restored is whether a resource has been restored, or reconciled, on this seed.
func Restored(obj extensionsv1alpha1.Object) bool {
	last := obj.GetExtensionStatus().GetLastOperation()
	switch {
	case last == nil, obj.GetAnnotations()[constants.GardenerOperation] == constants.GardenerOperationWaitForState,
		obj.GetAnnotations()[constants.GardenerOperation] == constants.GardenerOperationRestore:
		return false
	case last.Type == corev1beta1.LastOperationTypeRestore:
		return last.State == corev1beta1.LastOperationStateSucceeded
	}
	return last.Type != corev1beta1.LastOperationTypeMigrate
}

// restore writes the state of a resource, for which its extension waits, and requests its restoration. A state that the resource has stays. Once the extension
// has begun, the state is its own: it may have taken over what was saved, and changed it since.
func restore(ctx context.Context, v Values, obj extensionsv1alpha1.Object) error {
	gvk, err := apiutil.GVKForObject(obj, v.Client.Scheme())
	if err != nil {
		return err
	}
	state, err := v.Restore(ctx, gvk.Kind, obj.GetName())
	if err != nil {
		return fmt.Errorf("state of %s: %w", describe(v.Client, obj), err)
	}
	status, before := obj.GetExtensionStatus(), obj.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has its original's type
	begun := status.GetLastOperation() != nil && status.GetLastOperation().Type == corev1beta1.LastOperationTypeRestore
	if !begun && status.GetState() == nil && (state.State != nil || len(state.Resources) > 0) {
		status.SetState(state.State)
		status.SetResources(state.Resources)
		if err := v.Client.Status().Patch(ctx, obj, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return fmt.Errorf("write state of %s: %w", describe(v.Client, obj), err)
		}
	}
	if err := request(ctx, v, obj, constants.GardenerOperationRestore); err != nil {
		return fmt.Errorf("request the restoration of %s: %w", describe(v.Client, obj), err)
	}
	return v.Client.Get(ctx, client.ObjectKeyFromObject(obj), obj)
}

// request requests an operation from the extension of a resource.
func request(ctx context.Context, v Values, obj extensionsv1alpha1.Object, operation string) error {
	return kube.PatchMetadata(ctx, v.Client, obj, func(o *metav1.PartialObjectMetadata) {
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, constants.GardenerOperation, operation)
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, constants.GardenerTimestamp, v.Clock.Now().UTC().Format(time.RFC3339Nano))
	})
}
