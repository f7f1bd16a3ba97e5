// Package machineclass keeps MachineClasses, and the Secrets that they refer to, for as long as there are machines made from them: without
// them, machines could not be deleted.
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
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
)

// passTimeout limits a pass, which makes a handful of requests.
const passTimeout = time.Minute

// Reconciler keeps the finalizers of a class.
type Reconciler struct {
	client client.Client
	reader client.Reader // past the cache
}

// Add adds the controller.
func Add(mgr manager.Manager, concurrency int) error {
	r := &Reconciler{client: mgr.GetClient(), reader: mgr.GetAPIReader()}
	toClass := func(_ context.Context, object client.Object) []reconcile.Request {
		machine, ok := object.(*machinev1alpha1.Machine)
		if !ok || machine.Spec.Class.Name == "" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: machine.Namespace, Name: machine.Spec.Class.Name}}}
	}
	return builder.ControllerManagedBy(mgr).Named("machineclass").
		For(&machinev1alpha1.MachineClass{}).
		// The class of a machine never changes.
		Watches(&machinev1alpha1.Machine{}, handler.EnqueueRequestsFromMapFunc(toClass), builder.WithPredicates(predicate.Funcs{
			UpdateFunc: func(event.UpdateEvent) bool { return false },
		})).
		WithOptions(controller.Options{MaxConcurrentReconciles: concurrency, ReconciliationTimeout: passTimeout}).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	class := &machinev1alpha1.MachineClass{}
	if err := r.client.Get(ctx, request.NamespacedName, class); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	machines, classes := &machinev1alpha1.MachineList{}, &machinev1alpha1.MachineClassList{}
	if err := errors.Join(r.reader.List(ctx, machines, client.InNamespace(class.Namespace)), r.client.List(ctx, classes, client.InNamespace(class.Namespace))); err != nil {
		return reconcile.Result{}, fmt.Errorf("list what uses MachineClass %s: %w", class.Name, err)
	}
	used := map[string]bool{}
	for _, machine := range machines.Items {
		used[machine.Spec.Class.Name] = true
	}
	if used[class.Name] && class.DeletionTimestamp == nil { // after that, no finalizer can be added any more
		if err := kube.AddFinalizer(ctx, r.client, class, machinev1alpha1.MCMFinalizerName); err != nil {
			return kube.Result(err)
		}
	}
	for key, needed := range secretsOf(class, classes.Items, used) {
		secret := kube.Metadata(corev1.SchemeGroupVersion.WithKind("Secret"))
		if err := r.reader.Get(ctx, key, secret); err != nil {
			if client.IgnoreNotFound(err) != nil {
				return reconcile.Result{}, fmt.Errorf("read Secret %s: %w", key, err)
			}
			continue
		}
		if err := r.keep(ctx, secret, needed); err != nil {
			return kube.Result(err)
		}
	}
	if !used[class.Name] {
		return kube.Result(kube.RemoveFinalizer(ctx, r.client, class, machinev1alpha1.MCMFinalizerName))
	}
	return reconcile.Result{}, nil
}

func (r *Reconciler) keep(ctx context.Context, secret *metav1.PartialObjectMetadata, needed bool) error {
	if !needed {
		return kube.RemoveFinalizer(ctx, r.client, secret, machinev1alpha1.MCMFinalizerName)
	}
	if secret.DeletionTimestamp != nil {
		return nil // as with the class
	}
	return kube.AddFinalizer(ctx, r.client, secret, machinev1alpha1.MCMFinalizerName)
}

// secretsOf are the Secrets of a class, and whether a class with machines needs them.
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
