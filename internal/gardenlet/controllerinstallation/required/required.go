// Package required reports which extensions are required in a seed.
//
// It reads the resources of extensions in the seed, and ControllerRegistrations in the garden, and writes the condition Required of
// ControllerInstallations: True as long as there is a resource that the extension is responsible for. Source: concepts.txt, gardenlet,
// ControllerInstallation Controller, "Required" reconciler.
package required

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
)

// kind is a kind of resource that extensions are responsible for.
type kind struct {
	name   string
	object extensionsv1alpha1.Object
	list   client.ObjectList
}

var kinds = []kind{
	{"BackupBucket", &extensionsv1alpha1.BackupBucket{}, &extensionsv1alpha1.BackupBucketList{}},
	{"BackupEntry", &extensionsv1alpha1.BackupEntry{}, &extensionsv1alpha1.BackupEntryList{}},
	{"Bastion", &extensionsv1alpha1.Bastion{}, &extensionsv1alpha1.BastionList{}},
	{"ContainerRuntime", &extensionsv1alpha1.ContainerRuntime{}, &extensionsv1alpha1.ContainerRuntimeList{}},
	{"ControlPlane", &extensionsv1alpha1.ControlPlane{}, &extensionsv1alpha1.ControlPlaneList{}},
	{"DNSRecord", &extensionsv1alpha1.DNSRecord{}, &extensionsv1alpha1.DNSRecordList{}},
	{"Extension", &extensionsv1alpha1.Extension{}, &extensionsv1alpha1.ExtensionList{}},
	{"Infrastructure", &extensionsv1alpha1.Infrastructure{}, &extensionsv1alpha1.InfrastructureList{}},
	{"Network", &extensionsv1alpha1.Network{}, &extensionsv1alpha1.NetworkList{}},
	{"OperatingSystemConfig", &extensionsv1alpha1.OperatingSystemConfig{}, &extensionsv1alpha1.OperatingSystemConfigList{}},
	{"SelfHostedShootExposure", &extensionsv1alpha1.SelfHostedShootExposure{}, &extensionsv1alpha1.SelfHostedShootExposureList{}},
	{"Worker", &extensionsv1alpha1.Worker{}, &extensionsv1alpha1.WorkerList{}},
}

// Values are what the controller works with.
type Values struct {
	// Garden is the cluster with the ControllerInstallations and ControllerRegistrations.
	Garden cluster.Cluster
	// ConcurrentSyncs is how many are reconciled at once.
	ConcurrentSyncs int
	// Clock is for the condition.
	Clock clock.PassiveClock
}

// Add adds the controller to a manager, whose cluster is the seed.
func Add(mgr manager.Manager, v Values) error {
	r := &reconciler{Values: v, gardenCache: v.Garden.GetClient(), seedCache: mgr.GetClient()}
	b := builder.ControllerManagedBy(mgr).Named("controllerinstallation-required").
		WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs}).
		WatchesRawSource(source.Kind(v.Garden.GetCache(), &corev1beta1.ControllerInstallation{},
			&handler.TypedEnqueueRequestForObject[*corev1beta1.ControllerInstallation]{},
			predicate.TypedFuncs[*corev1beta1.ControllerInstallation]{
				UpdateFunc: func(e event.TypedUpdateEvent[*corev1beta1.ControllerInstallation]) bool {
					return changed(e.ObjectOld, e.ObjectNew)
				},
			}))
	for _, k := range kinds {
		// Kind and type are immutable, so that only creation and deletion count.
		b = b.Watches(k.object, handler.EnqueueRequestsFromMapFunc(r.installations(k.name)),
			builder.WithPredicates(predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}))
	}
	return b.Complete(r)
}

// changed reports whether an update counts. The generation changes when the ControllerRegistration gets another kind. A condition that was decided by an
// old cache is corrected.
func changed(before, after *corev1beta1.ControllerInstallation) bool {
	const typ = corev1beta1.ControllerInstallationRequired
	return before.Generation != after.Generation ||
		!apiequality.Semantic.DeepEqual(kube.Condition(before.Status.Conditions, typ), kube.Condition(after.Status.Conditions, typ))
}

type reconciler struct {
	Values
	gardenCache, seedCache client.Client
}

// installations returns a function that maps an extension resource to the ControllerInstallations that are responsible for it.
func (r *reconciler) installations(kind string) handler.MapFunc {
	return func(ctx context.Context, obj client.Object) []reconcile.Request {
		resource := obj.(extensionsv1alpha1.Object) //nolint:forcetypeassert // a kind that is watched
		all := &corev1beta1.ControllerInstallationList{}
		if err := r.gardenCache.List(ctx, all); err != nil {
			logf.FromContext(ctx).Error(err, "Failed listing ControllerInstallations")
			return nil
		}
		var requests []reconcile.Request
		for _, ci := range all.Items {
			registration := &corev1beta1.ControllerRegistration{}
			if err := r.gardenCache.Get(ctx, client.ObjectKey{Name: ci.Spec.RegistrationRef.Name}, registration); err != nil {
				continue // the ControllerInstallation is being deleted
			}
			if responsible(registration, kind, resource.GetExtensionSpec()) {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Name: ci.Name}})
			}
		}
		return requests
	}
}

// responsible is whether an extension in a seed is responsible for a resource. If the seed is the runtime cluster of the garden, gardener-operator
// has installed the extension a second time, for the resources of class garden.
func responsible(registration *corev1beta1.ControllerRegistration, kind string, spec extensionsv1alpha1.Spec) bool {
	return spec.GetExtensionClass() != extensionsv1alpha1.ExtensionClassGarden &&
		slices.ContainsFunc(registration.Spec.Resources, func(r corev1beta1.ControllerResource) bool {
			return r.Kind == kind && r.Type == spec.GetExtensionType()
		})
}

// Reconcile writes the condition.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	ci := &corev1beta1.ControllerInstallation{}
	if err := r.gardenCache.Get(ctx, req.NamespacedName, ci); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	registration := &corev1beta1.ControllerRegistration{}
	if err := r.gardenCache.Get(ctx, client.ObjectKey{Name: ci.Spec.RegistrationRef.Name}, registration); err != nil {
		return kube.Result(fmt.Errorf("read ControllerRegistration %q: %w", ci.Spec.RegistrationRef.Name, err))
	}
	required, err := r.required(ctx, registration)
	if err != nil {
		return reconcile.Result{}, err
	}
	conditions, changed := kube.SetCondition(ci.Status.Conditions, condition(required), r.Clock.Now())
	if !changed {
		return reconcile.Result{}, nil
	}
	after := ci.DeepCopy()
	after.Status.Conditions = conditions
	if err := r.gardenCache.Status().Patch(ctx, after, client.StrategicMergeFrom(ci)); err != nil {
		return kube.Result(fmt.Errorf("patch status: %w", err))
	}
	return reconcile.Result{}, nil
}

// required returns the kinds and types of the extension for which resources exist.
func (r *reconciler) required(ctx context.Context, registration *corev1beta1.ControllerRegistration) ([]string, error) {
	var found []string
	for _, k := range kinds {
		if !slices.ContainsFunc(registration.Spec.Resources, func(r corev1beta1.ControllerResource) bool { return r.Kind == k.name }) {
			continue
		}
		list := k.list.DeepCopyObject().(client.ObjectList) //nolint:forcetypeassert // a copy has its original's type
		if err := r.seedCache.List(ctx, list); err != nil {
			return nil, fmt.Errorf("list %s: %w", k.name, err)
		}
		err := meta.EachListItem(list, func(obj runtime.Object) error {
			spec := obj.(extensionsv1alpha1.Object).GetExtensionSpec() //nolint:forcetypeassert // an extension kind
			if responsible(registration, k.name, spec) {
				found = append(found, k.name+"/"+spec.GetExtensionType())
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// condition is the condition Required, given the kinds and types for which resources exist.
func condition(required []string) corev1beta1.Condition {
	c := corev1beta1.Condition{
		Type: corev1beta1.ControllerInstallationRequired, Status: corev1beta1.ConditionFalse, Reason: "NoExtensionObjects",
		Message: "There are no resources in the seed that the extension is responsible for.",
	}
	if len(required) > 0 {
		c.Status, c.Reason = corev1beta1.ConditionTrue, "ExtensionObjectsExist"
		c.Message = "There are resources in the seed that the extension is responsible for: " + strings.Join(required, ", ")
	}
	return c
}
