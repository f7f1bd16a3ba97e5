// Package requiredruntime reports which Extensions the garden itself requires in the runtime cluster.
//
// It reads BackupBuckets, BackupEntries, DNSRecords and Extensions of class garden, and the Garden, and writes the condition RequiredRuntime of
// Extensions: True as long as there is an object that the extension is responsible for, or the Garden asks for one.
package requiredruntime

import (
	"context"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/operator/extension"
)

// Kinds that the garden itself uses.
const (
	kindBackupBucket = "BackupBucket"
	kindBackupEntry  = "BackupEntry"
	kindDNSRecord    = "DNSRecord"
)

// kind is a kind of object that the garden itself uses.
type kind struct {
	name string
	// definition is the name of its CustomResourceDefinition, which the Garden brings.
	definition string
	object     extensionsv1alpha1.Object
	list       client.ObjectList
}

var kinds = []kind{
	{kindBackupBucket, "backupbuckets.extensions.gardener.cloud", &extensionsv1alpha1.BackupBucket{}, &extensionsv1alpha1.BackupBucketList{}},
	{kindBackupEntry, "backupentries.extensions.gardener.cloud", &extensionsv1alpha1.BackupEntry{}, &extensionsv1alpha1.BackupEntryList{}},
	{kindDNSRecord, "dnsrecords.extensions.gardener.cloud", &extensionsv1alpha1.DNSRecord{}, &extensionsv1alpha1.DNSRecordList{}},
	{extension.KindExtension, "extensions.extensions.gardener.cloud", &extensionsv1alpha1.Extension{}, &extensionsv1alpha1.ExtensionList{}},
}

// Values are what the controller works with.
type Values struct {
	// ConcurrentSyncs is how many Extensions are reconciled at the same time.
	ConcurrentSyncs int
	// Clock is for the condition.
	Clock clock.PassiveClock
}

// Add adds the controller to a manager, whose cluster is the runtime cluster.
func Add(mgr manager.Manager, v Values) error {
	r := &reconciler{runtimeCache: mgr.GetClient(), runtimeAPI: mgr.GetAPIReader(), clock: v.Clock}
	b := builder.ControllerManagedBy(mgr).Named("extension-required-runtime").
		WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs}).
		// What an Extension is responsible for is in its spec.
		For(&operatorv1alpha1.Extension{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		// A deletion changes the generation too.
		Watches(&operatorv1alpha1.Garden{}, handler.EnqueueRequestsFromMapFunc(r.all), builder.WithPredicates(predicate.GenerationChangedPredicate{}))
	for _, k := range kinds {
		// Class and type are immutable, so that only creation and deletion count.
		served, err := kube.WhenServed(mgr, k.definition, source.Kind[client.Object](mgr.GetCache(), k.object,
			handler.EnqueueRequestsFromMapFunc(r.responsible(k.name)), predicate.Funcs{
				CreateFunc: func(e event.CreateEvent) bool { return ofGarden(e.Object) },
				UpdateFunc: func(event.UpdateEvent) bool { return false },
				DeleteFunc: func(e event.DeleteEvent) bool { return ofGarden(e.Object) },
			}))
		if err != nil {
			return err
		}
		b = b.WatchesRawSource(served)
	}
	return b.Complete(reconcile.AsReconciler(mgr.GetClient(), r))
}

// ofGarden is whether an object is for the garden itself.
func ofGarden(obj client.Object) bool {
	resource, ok := obj.(extensionsv1alpha1.Object)
	return ok && resource.GetExtensionSpec().GetExtensionClass() == extensionsv1alpha1.ExtensionClassGarden
}

// all returns requests for all Extensions, of which there are few.
func (r *reconciler) all(ctx context.Context, _ client.Object) []reconcile.Request {
	return extension.Select(ctx, r.runtimeCache, func(*operatorv1alpha1.Extension) bool { return true })
}

// responsible returns a function that maps an object to the Extensions that are responsible for it.
func (r *reconciler) responsible(kind string) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		typ := obj.(extensionsv1alpha1.Object).GetExtensionSpec().GetExtensionType() //nolint:forcetypeassert // a kind that is watched
		return extension.Select(ctx, r.runtimeCache, func(e *operatorv1alpha1.Extension) bool { return responsible(e, need{kind, typ}) })
	}
}
