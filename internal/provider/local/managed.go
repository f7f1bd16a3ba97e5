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

	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/managedresource"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/extension"
)

// goneAfter is when to look again whether a ManagedResource is gone, should nobody tell.
const goneAfter = 30 * time.Second

// watchManaged brings an object back when a ManagedResource is gone.
func watchManaged(b *builder.Builder, toObjects handler.MapFunc, name string) {
	resource := kube.Metadata(resourcesv1alpha1.SchemeGroupVersion.WithKind("ManagedResource"))
	b.Watches(resource, handler.EnqueueRequestsFromMapFunc(toObjects), builder.WithPredicates(predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(event.UpdateEvent) bool { return false },
		DeleteFunc: func(e event.DeleteEvent) bool { return e.Object.GetName() == name },
	}))
}

// applyManaged orders objects in the shoot of a control plane namespace.
func applyManaged(ctx context.Context, c client.Client, namespace, name string, objects ...client.Object) error {
	order, err := managedresource.Objects(c.Scheme(), managedresource.Values{
		Namespace: namespace, Name: name,
		// Whoever empties a shoot before its deletion leaves them alone: they go with the extension resource.
		InjectLabels: map[string]string{"shoot.gardener.cloud/no-cleanup": "true"},
	}, objects...)
	if err != nil {
		return err
	}
	return kube.Apply(ctx, c, Name, order...)
}

// deleteManaged removes objects that were ordered, and waits until they are gone.
func deleteManaged(ctx context.Context, c client.Client, namespace, name string) error {
	err := c.Delete(ctx, &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("delete ManagedResource %q: %w", name, err)
	}
	return &extension.Wait{Reason: fmt.Sprintf("ManagedResource %q is being deleted", name), After: goneAfter}
}

// dropManaged removes the order, and leaves the objects in the shoot.
func dropManaged(ctx context.Context, c client.Client, namespace, name string) error {
	resource := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	err := c.Patch(ctx, resource, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"keepObjects":true}}`)))
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	return deleteManaged(ctx, c, namespace, name)
}
