package reference

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
)

// user is a kind of objects of the garden that need the credentials in a Secret to be deleted. The Garden may refer to the Secret no longer by then, as its
// DNS provider was removed from the Garden, for example.
type user struct {
	// definition is the name of its CustomResourceDefinition, which the Garden brings.
	definition string
	object     extensionsv1alpha1.Object
	list       client.ObjectList
}

var users = []user{
	{"backupbuckets.extensions.gardener.cloud", &extensionsv1alpha1.BackupBucket{}, &extensionsv1alpha1.BackupBucketList{}},
	{"backupentries.extensions.gardener.cloud", &extensionsv1alpha1.BackupEntry{}, &extensionsv1alpha1.BackupEntryList{}},
	{"dnsrecords.extensions.gardener.cloud", &extensionsv1alpha1.DNSRecord{}, &extensionsv1alpha1.DNSRecordList{}},
}

// secretOf returns the Secret of the namespace "garden" that an object of class garden names, if it is such an object.
func secretOf(object runtime.Object) (Ref, bool) {
	var of corev1.SecretReference
	switch o := object.(type) {
	case *extensionsv1alpha1.BackupBucket:
		of = o.Spec.SecretRef
	case *extensionsv1alpha1.BackupEntry:
		of = o.Spec.SecretRef
	case *extensionsv1alpha1.DNSRecord:
		of = o.Spec.SecretRef
	}
	resource, ok := object.(extensionsv1alpha1.Object)
	return Ref{secret, of.Name}, ok && resource.GetExtensionSpec().GetExtensionClass() == extensionsv1alpha1.ExtensionClassGarden && of.Namespace == namespace
}

// used reports whether an object of the garden names a Secret. It reads the API server: an object may have been written a moment ago.
func used(ctx context.Context, runtimeAPI client.Reader, ref Ref) (bool, error) {
	if ref.Kind != secret {
		return false, nil
	}
	found := false
	for _, u := range users {
		list := u.list.DeepCopyObject().(client.ObjectList) //nolint:forcetypeassert // a copy has its original's type
		if err := runtimeAPI.List(ctx, list); meta.IsNoMatchError(err) {
			continue // without the definition there are no objects
		} else if err != nil {
			return false, fmt.Errorf("list objects that need Secret %q: %w", ref.Name, err)
		}
		if err := meta.EachListItem(list, func(item runtime.Object) error {
			of, ok := secretOf(item)
			found = found || ok && of == ref
			return nil
		}); err != nil {
			return false, err
		}
	}
	return found, nil
}

// addUsers adds the controller that releases a Secret when the last object of the garden that needs it is deleted, or names another one.
func addUsers(mgr manager.Manager, r *reconciler) error {
	b := builder.ControllerManagedBy(mgr).Named("garden-reference-used")
	for _, u := range users {
		served, err := kube.WhenServed(mgr, u.definition, source.Kind[client.Object](mgr.GetCache(), u.object, enqueueReleased()))
		if err != nil {
			return err
		}
		b = b.WatchesRawSource(served)
	}
	return b.Complete(reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		return r.Reconcile(ctx, Ref{secret, req.Name})
	}))
}

// enqueueReleased enqueues the Secret that an object does not name any more.
func enqueueReleased() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	add := func(q queue, ref Ref) {
		q.Add(reconcile.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: ref.Name}})
	}
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			before, ok := secretOf(e.ObjectOld)
			if after, _ := secretOf(e.ObjectNew); ok && before != after {
				add(q, before)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			if ref, ok := secretOf(e.Object); ok {
				add(q, ref)
			}
		},
	}
}
