// Package machineclass protects MachineClasses, and the Secrets that they refer to, by finalizers while there are Machines of the class: without
// them, the machines could not be deleted.
//
// It reads Machines, and writes the finalizers of MachineClasses and Secrets, all in the control cluster.
package machineclass

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
)

// passTimeout limits a pass, which takes a few requests.
const passTimeout = time.Minute

// reconciler adds and removes the finalizers.
type reconciler struct {
	controlCache client.Client
	controlAPI   client.Reader
}

// Values configure the controller.
type Values struct {
	// ConcurrentSyncs is how many classes are reconciled at a time.
	ConcurrentSyncs int
}

// Add adds the controller.
func Add(mgr manager.Manager, v Values) error {
	r := &reconciler{controlCache: mgr.GetClient(), controlAPI: mgr.GetAPIReader()}
	toClass := func(_ context.Context, object client.Object) []reconcile.Request {
		machine, ok := object.(*machinev1alpha1.Machine)
		if !ok || machine.Spec.Class.Name == "" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: machine.Namespace, Name: machine.Spec.Class.Name}}}
	}
	return builder.ControllerManagedBy(mgr).Named("machineclass").
		For(&machinev1alpha1.MachineClass{}).
		// A machine that was updated in place gets another class: both are reconciled.
		Watches(&machinev1alpha1.Machine{}, handler.EnqueueRequestsFromMapFunc(toClass), builder.WithPredicates(predicate.Funcs{UpdateFunc: classChanged})).
		WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentSyncs, ReconciliationTimeout: passTimeout}).
		Complete(r)
}

// classChanged selects updates of Machines that change their class.
func classChanged(e event.UpdateEvent) bool {
	before, isMachine := e.ObjectOld.(*machinev1alpha1.Machine)
	after, same := e.ObjectNew.(*machinev1alpha1.Machine)
	return isMachine && same && before.Spec.Class.Name != after.Spec.Class.Name
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	class := &machinev1alpha1.MachineClass{}
	if err := r.controlCache.Get(ctx, request.NamespacedName, class); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	machines, classes := &machinev1alpha1.MachineList{}, &machinev1alpha1.MachineClassList{}
	if err := errors.Join(r.controlAPI.List(ctx, machines, client.InNamespace(class.Namespace)), r.controlCache.List(ctx, classes, client.InNamespace(class.Namespace))); err != nil {
		return reconcile.Result{}, fmt.Errorf("list Machines and MachineClasses: %w", err)
	}
	used := map[string]bool{}
	for _, machine := range machines.Items {
		used[machine.Spec.Class.Name] = true
	}
	if used[class.Name] && class.DeletionTimestamp == nil { // a finalizer cannot be added later
		if err := kube.AddFinalizer(ctx, r.controlCache, class, machinev1alpha1.MCMFinalizerName); err != nil {
			return kube.Result(err)
		}
	}
	for key, needed := range secretsOf(class, classes.Items, used) {
		secret := kube.Metadata(corev1.SchemeGroupVersion.WithKind("Secret"))
		if err := r.controlAPI.Get(ctx, key, secret); err != nil {
			if client.IgnoreNotFound(err) != nil {
				return reconcile.Result{}, fmt.Errorf("read Secret %s: %w", key, err)
			}
			continue
		}
		if err := r.protect(ctx, secret, needed); err != nil {
			return kube.Result(err)
		}
	}
	if !used[class.Name] {
		return kube.Result(kube.RemoveFinalizer(ctx, r.controlCache, class, machinev1alpha1.MCMFinalizerName))
	}
	return reconcile.Result{}, nil
}

// protect adds the finalizer of a Secret, or removes it.
func (r *reconciler) protect(ctx context.Context, secret *metav1.PartialObjectMetadata, needed bool) error {
	return client.IgnoreNotFound(kube.PatchMetadata(ctx, r.controlCache, secret, func(o *metav1.PartialObjectMetadata) {
		switch {
		case !needed:
			controllerutil.RemoveFinalizer(o, machinev1alpha1.MCFinalizerName)
		case secret.DeletionTimestamp != nil:
			return // a finalizer cannot be added any more
		default:
			controllerutil.AddFinalizer(o, machinev1alpha1.MCFinalizerName)
		}
		controllerutil.RemoveFinalizer(o, machinev1alpha1.MCMFinalizerName) // of earlier versions
	}))
}

// secretsOf are the Secrets of a class, and whether any class with Machines refers to them.
func secretsOf(class *machinev1alpha1.MachineClass, classes []machinev1alpha1.MachineClass, used map[string]bool) map[client.ObjectKey]bool {
	out := map[client.ObjectKey]bool{}
	for _, key := range keysOf(class) {
		out[key] = used[class.Name]
		for i := range classes {
			for _, other := range keysOf(&classes[i]) {
				out[key] = out[key] || other == key && used[classes[i].Name]
			}
		}
	}
	return out
}

func keysOf(class *machinev1alpha1.MachineClass) []client.ObjectKey {
	var keys []client.ObjectKey
	for _, ref := range []*corev1.SecretReference{class.SecretRef, class.CredentialsSecretRef} {
		if ref != nil {
			keys = append(keys, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name})
		}
	}
	return keys
}
