package extension

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

const (
	// defaultConcurrency is how many objects of a kind are reconciled at once.
	defaultConcurrency = 5
	// defaultTimeout limits one reconciliation. Infrastructures are slow, and what takes longer can return a *Wait.
	defaultTimeout = 10 * time.Minute
)

// Options configure the controller of a kind.
type Options[T extensionsv1alpha1.Object] struct {
	// Name is the name of the extension, such as provider-local. It is in events, and in the finalizer of the kind Extension.
	Name string
	// Types are the values of spec.type that the extension is responsible for, at least one.
	Types []string
	// Classes are the values of spec.class that it is responsible for. Empty means shoot, and so does a class that an object leaves out. In the
	// runtime cluster of a garden, two processes of an extension run if it is a seed, too: one has the class garden, the other does not.
	Classes []extensionsv1alpha1.ExtensionClass
	// Actuator does the work.
	Actuator Actuator[T]
	// ByGeneration reconciles after each change of the spec. Otherwise reconciliation waits for the annotation gardener.cloud/operation, which
	// gardenlet sets when it reconciles the shoot.
	ByGeneration bool
	// Repair says whether an object is reconciled although that was not requested, and its last operation has succeeded: what it is for is lost, such as
	// a machine. It is called when the controller starts, and after changes that Watch watches. Nil means never.
	Repair func(context.Context, T) (bool, error)
	// Concurrency is how many objects are reconciled at once. Zero means 5.
	Concurrency int
	// Timeout limits one reconciliation. Zero means ten minutes.
	Timeout time.Duration
	// Clock is the source of times in the status. Nil means the real clock.
	Clock clock.PassiveClock
	// Watch adds watches of other objects, such as those that an actuator waits for. The map function maps any object to the objects of the
	// extension in its namespace. Watch may be nil.
	Watch func(*builder.Builder, handler.MapFunc)
}

// Add adds the controller of a kind to a manager, whose cluster is the seed, or the runtime cluster of a garden. Its cache has to hold the kind,
// and Clusters if the extension is responsible for objects of shoots.
func Add[T extensionsv1alpha1.Object](mgr manager.Manager, options Options[T]) error {
	if options.Name == "" || len(options.Types) == 0 || options.Actuator == nil {
		return errors.New("an extension needs a name, a type and an actuator")
	}
	r := &reconciler[T]{Options: options, client: mgr.GetClient(), reader: mgr.GetAPIReader(), recorder: mgr.GetEventRecorder(options.Name)}
	gvk, err := apiutil.GVKForObject(newObject[T](), mgr.GetScheme())
	if err != nil {
		return err
	}
	r.kind, r.finalizer = gvk.Kind, finalizer(gvk.Kind, options.Name)
	if r.Clock == nil {
		r.Clock = clock.RealClock{}
	}
	if r.Timeout == 0 {
		r.Timeout = defaultTimeout
	}
	if len(r.Classes) == 0 {
		r.Classes = []extensionsv1alpha1.ExtensionClass{extensionsv1alpha1.ExtensionClassShoot}
	}
	concurrency := options.Concurrency
	if concurrency == 0 {
		concurrency = defaultConcurrency
	}
	toObjects := r.inNamespace(mgr.GetScheme(), gvk.GroupVersion().WithKind(gvk.Kind+"List"))
	b := builder.ControllerManagedBy(mgr).Named(strings.ToLower(gvk.Kind)+"-"+strings.Join(options.Types, "-")).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency}).
		For(newObject[T](), builder.WithPredicates(predicate.NewPredicateFuncs(r.responsible), requested()))
	if r.ofShoots() {
		// Operations that were requested while the objects of the shoot were skipped.
		b.Watches(&extensionsv1alpha1.Cluster{}, handler.EnqueueRequestsFromMapFunc(toObjects), builder.WithPredicates(noLongerSkipped()))
	}
	if options.Watch != nil {
		options.Watch(b, toObjects)
	}
	return b.Complete(r)
}

// newObject returns an empty object of a kind.
func newObject[T extensionsv1alpha1.Object]() T {
	return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T) //nolint:forcetypeassert // T is a pointer to a kind
}

// finalizer returns the finalizer of a kind. Several extensions may be responsible for Extensions of a shoot, so theirs has their name.
func finalizer(kind, extension string) string {
	switch kind {
	case extensionsv1alpha1.ExtensionResource:
		return extensionsv1alpha1.FinalizerPrefix + extension
	case extensionsv1alpha1.OperatingSystemConfigResource:
		return extensionsv1alpha1.OperatingSystemConfigFinalizer
	}
	return extensionsv1alpha1.FinalizerPrefix + strings.ToLower(kind)
}

// responsible says whether an object has a type and a class that the extension is responsible for.
func (r *reconciler[T]) responsible(obj client.Object) bool {
	o, ok := obj.(T)
	return ok && slices.Contains(r.Types, o.GetExtensionSpec().GetExtensionType()) &&
		slices.Contains(r.Classes, o.GetExtensionSpec().GetExtensionClass())
}

// ofShoots says whether the extension is responsible for objects of shoots. Only they have a Cluster, so that other extensions need no access to
// Clusters.
func (r *reconciler[T]) ofShoots() bool {
	return slices.Contains(r.Classes, extensionsv1alpha1.ExtensionClassShoot)
}

// requested passes only changes that may request an operation. Everything else, such as status writes of the controller itself, would only
// retry what has failed without backoff.
func requested() predicate.Predicate {
	return predicate.Funcs{
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations()
			return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
				e.ObjectOld.GetDeletionTimestamp() == nil && e.ObjectNew.GetDeletionTimestamp() != nil ||
				after[constants.GardenerOperation] != "" && (before[constants.GardenerOperation] != after[constants.GardenerOperation] ||
					before[constants.GardenerTimestamp] != after[constants.GardenerTimestamp])
		},
	}
}

// noLongerSkipped passes Clusters whose shoot was skipped before and is not any more.
func noLongerSkipped() predicate.Predicate {
	skipped := func(obj client.Object) bool {
		object, ok := obj.(*extensionsv1alpha1.Cluster)
		if !ok {
			return false
		}
		cluster, err := decodeCluster(object)
		return err == nil && cluster.SkipReason() != ""
	}
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion() && skipped(e.ObjectOld) && !skipped(e.ObjectNew)
		},
	}
}

// inNamespace returns the objects in the namespace of another object, or in the one that a Cluster is named after.
func (r *reconciler[T]) inNamespace(scheme *runtime.Scheme, list schema.GroupVersionKind) handler.MapFunc {
	return func(ctx context.Context, other client.Object) []reconcile.Request {
		namespace := other.GetNamespace()
		if namespace == "" {
			namespace = other.GetName()
		}
		objects, err := scheme.New(list)
		if err == nil {
			err = r.client.List(ctx, objects.(client.ObjectList), client.InNamespace(namespace)) //nolint:forcetypeassert // lists of kinds are such
		}
		var requests []reconcile.Request
		if err == nil {
			err = meta.EachListItem(objects, func(item runtime.Object) error {
				if obj, ok := item.(client.Object); ok && r.responsible(obj) && obj.GetNamespace() == namespace {
					requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(obj)})
				}
				return nil
			})
		}
		if err != nil {
			logf.FromContext(ctx).Error(err, "Listing the objects of a namespace", "kind", r.kind, "namespace", namespace)
		}
		return requests
	}
}
