package extension

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/pkg/kube"
	"gardener.cloud/gardener/pkg/managedresource"
)

// deletionRecheck is how often the deletion of a ManagedResource is checked, besides its event.
const deletionRecheck = 30 * time.Second

// seedClass is the class of ManagedResources with objects for the seed.
const seedClass = "seed"

// WatchManaged is Options.Watch for actuators with ManagedResources: it requeues an object when one of a name is deleted. No name means any.
func WatchManaged(names ...string) func(*builder.Builder, handler.MapFunc) {
	return func(b *builder.Builder, toObjects handler.MapFunc) {
		b.Watches(&resourcesv1alpha1.ManagedResource{}, handler.EnqueueRequestsFromMapFunc(toObjects), builder.WithPredicates(predicate.Funcs{
			CreateFunc: func(event.CreateEvent) bool { return false },
			UpdateFunc: func(event.UpdateEvent) bool { return false },
			DeleteFunc: func(e event.DeleteEvent) bool { return len(names) == 0 || slices.Contains(names, e.Object.GetName()) },
		}))
	}
}

// ApplyShoot applies objects in the shoot of a control plane namespace, by a ManagedResource. They are deleted with it, not by the cleanup of the shoot.
// While a former ManagedResource of the name is being deleted, the error is a *Wait.
func ApplyShoot(ctx context.Context, c client.Client, owner, namespace, name string, objects ...client.Object) error {
	return applyManaged(ctx, c, owner, managedresource.Values{
		Namespace: namespace, Name: name, InjectLabels: map[string]string{constants.ShootNoCleanup: "true"},
	}, objects)
}

// ApplySeed applies objects in the seed, by a ManagedResource, which also has their health. While a former ManagedResource of the name is being deleted, the
// error is a *Wait.
func ApplySeed(ctx context.Context, c client.Client, owner, namespace, name string, objects ...client.Object) error {
	return applyManaged(ctx, c, owner, managedresource.Values{
		Namespace: namespace, Name: name, Class: seedClass,
	}, objects)
}

func applyManaged(ctx context.Context, c client.Client, owner string, v managedresource.Values, objects []client.Object) error {
	rendered, err := managedresource.Objects(c.Scheme(), v, objects...)
	if err != nil {
		return err
	}
	for _, object := range rendered {
		applied, err := kube.ApplyOne(ctx, c, owner, object)
		if err != nil {
			return err
		}
		if applied.GetDeletionTimestamp() != nil { // what is applied now is deleted with it
			return &Wait{Reason: fmt.Sprintf("%s %q is being deleted, and created again after that", applied.GetKind(), applied.GetName()), After: deletionRecheck}
		}
	}
	return nil
}

// DeleteManaged deletes a ManagedResource with its objects. Until it is deleted, the error is a *Wait.
func DeleteManaged(ctx context.Context, c client.Client, namespace, name string) error {
	err := c.Delete(ctx, &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("delete ManagedResource %q: %w", name, err)
	}
	return &Wait{Reason: fmt.Sprintf("ManagedResource %q is being deleted", name), After: deletionRecheck}
}

// ReleaseManaged deletes a ManagedResource, and keeps its objects: the shoot lives on when its control plane moves.
func ReleaseManaged(ctx context.Context, c client.Client, namespace, name string) error {
	resource := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	err := c.Patch(ctx, resource, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"keepObjects":true}}`)))
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	return DeleteManaged(ctx, c, namespace, name)
}
