package local

import (
	"context"
	"fmt"
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
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/extension"
	"gardener.cloud/gardener/pkg/managedresource"
)

// deletionRecheck is how often the deletion of a ManagedResource is checked, besides its event.
const deletionRecheck = 30 * time.Second

// watchManaged requeues an object when its ManagedResource is deleted.
func watchManaged(b *builder.Builder, toObjects handler.MapFunc, name string) {
	resource := kube.Metadata(resourcesv1alpha1.SchemeGroupVersion.WithKind("ManagedResource"))
	b.Watches(resource, handler.EnqueueRequestsFromMapFunc(toObjects), builder.WithPredicates(predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(event.UpdateEvent) bool { return false },
		DeleteFunc: func(e event.DeleteEvent) bool { return e.Object.GetName() == name },
	}))
}

// applyManaged applies objects in the shoot of a control plane namespace, by a ManagedResource.
func applyManaged(ctx context.Context, c client.Client, namespace, name string, objects ...client.Object) error {
	objs, err := managedresource.Objects(c.Scheme(), managedresource.Values{
		Namespace: namespace, Name: name,
		// They are deleted with the extension resource, not by the cleanup of the shoot.
		InjectLabels: map[string]string{constants.ShootNoCleanup: "true"},
	}, objects...)
	if err != nil {
		return err
	}
	return kube.Apply(ctx, c, Name, objs...)
}

// deleteManaged deletes a ManagedResource with its objects in the shoot, and waits until it is deleted.
func deleteManaged(ctx context.Context, c client.Client, namespace, name string) error {
	err := c.Delete(ctx, &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("delete ManagedResource %q: %w", name, err)
	}
	return &extension.Wait{Reason: fmt.Sprintf("ManagedResource %q is being deleted", name), After: deletionRecheck}
}

// releaseManaged deletes a ManagedResource, and keeps its objects in the shoot.
func releaseManaged(ctx context.Context, c client.Client, namespace, name string) error {
	resource := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	err := c.Patch(ctx, resource, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"keepObjects":true}}`)))
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	return deleteManaged(ctx, c, namespace, name)
}
