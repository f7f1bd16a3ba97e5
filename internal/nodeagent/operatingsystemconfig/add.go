// Package operatingsystemconfig applies the operating system config of a worker pool to the machine that the agent runs on.
//
// It reads the Secret of the pool and the agent's Node in the shoot, and writes files, systemd units and the configuration of containerd
// on the machine, and labels and annotations of the Node. What it applied last is in a file on the machine, so that it can remove what is
// wanted no more. Source: concepts.txt, Gardener Node Agent, "Operating System Config Controller".
package operatingsystemconfig

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	nodeagentconfigv1alpha1 "gardener.cloud/gardener/api/config/nodeagent/v1alpha1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

const (
	// firstRetry and lastRetry are how soon a pass that failed is tried again: a new machine should not wait for long, and registries and
	// API servers that are away come back.
	firstRetry, lastRetry = 500 * time.Millisecond, time.Minute
)

// Add adds the controller to a manager whose cache has the Secret and the Node of the agent, and no others.
func (r *Reconciler) Add(mgr manager.Manager) error {
	c, err := controller.New("operatingsystemconfig", mgr, controller.Options{
		Reconciler: r, MaxConcurrentReconciles: 1,
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
	})
	if err != nil {
		return err
	}
	secret := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: metav1.NamespaceSystem, Name: r.SecretName}}
	enqueue := handler.EnqueueRequestsFromMapFunc(mapTo(secret))
	err = c.Watch(source.Kind[client.Object](mgr.GetCache(), &corev1.Secret{}, enqueue, predicate.Funcs{
		// There is nothing to be done when it goes: without it, machines stay as they are.
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}))
	if err != nil {
		return err
	}
	return c.Watch(source.Kind[client.Object](mgr.GetCache(), &corev1.Node{}, enqueue, predicate.Funcs{
		// A new Node wants its annotations. After that, they matter if somebody else changed them.
		UpdateFunc: func(e event.UpdateEvent) bool {
			for _, key := range []string{
				nodeagentconfigv1alpha1.AnnotationKeyChecksumAppliedOperatingSystemConfig, constants.NodeAgentReconciliationDelay,
			} {
				if e.ObjectOld.GetAnnotations()[key] != e.ObjectNew.GetAnnotations()[key] {
					return true
				}
			}
			return false
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}))
}
