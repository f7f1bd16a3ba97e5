// Package criticalcomponents removes a taint of Nodes that are new or were updated in place, when the critical components, which all pods need,
// are ready on them.
//
// It reads Nodes, DaemonSets, Pods and CSINodes of the target cluster, and writes taints of Nodes.
// Source: concepts.txt, Gardener Resource Manager, "Critical Components Controller".
package criticalcomponents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
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

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/kube"
)

// passTimeout limits a reconciliation, which makes a few requests.
const passTimeout = time.Minute

// critical selects DaemonSets and Pods that every other pod needs.
var critical = client.MatchingLabels{constants.NodeCriticalComponent: "true"}

// Add adds the controller to a manager.
func Add(mgr manager.Manager, targetCluster cluster.Cluster, concurrency int, backoff time.Duration) error {
	r := &reconciler{client: targetCluster.GetClient(), reader: targetCluster.GetAPIReader(), backoff: backoff}
	c, err := controller.New("node-critical-components", mgr, controller.Options{Reconciler: r, MaxConcurrentReconciles: cmp.Or(concurrency, 1)})
	if err != nil {
		return err
	}
	return errors.Join(
		// The kubelet sets the taint when it registers the Node, and the machine-controller-manager after an update in place.
		c.Watch(source.Kind(targetCluster.GetCache(), &corev1.Node{}, &handler.TypedEnqueueRequestForObject[*corev1.Node]{}, predicate.TypedFuncs[*corev1.Node]{
			CreateFunc: func(e event.TypedCreateEvent[*corev1.Node]) bool { return tainted(e.Object) },
			UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Node]) bool {
				return !tainted(e.ObjectOld) && tainted(e.ObjectNew)
			},
			DeleteFunc: func(event.TypedDeleteEvent[*corev1.Node]) bool { return false },
		})),
		// The status of DaemonSets shows when another of their pods is ready. They are few, while pods are many.
		c.Watch(source.Kind(targetCluster.GetCache(), &appsv1.DaemonSet{}, handler.TypedEnqueueRequestsFromMapFunc(r.waiting), predicate.TypedFuncs[*appsv1.DaemonSet]{
			CreateFunc: func(event.TypedCreateEvent[*appsv1.DaemonSet]) bool { return false },
			UpdateFunc: func(e event.TypedUpdateEvent[*appsv1.DaemonSet]) bool {
				return e.ObjectNew.Labels[constants.NodeCriticalComponent] == "true" && e.ObjectNew.Status.NumberReady > e.ObjectOld.Status.NumberReady
			},
			DeleteFunc: func(event.TypedDeleteEvent[*appsv1.DaemonSet]) bool { return false },
		})),
	)
}

func tainted(node *corev1.Node) bool { return slices.ContainsFunc(node.Spec.Taints, isCriticalTaint) }

func isCriticalTaint(taint corev1.Taint) bool {
	return taint.Key == constants.TaintNodeCriticalComponentsNotReady
}

// reconciler removes the taint of a Node.
type reconciler struct {
	client client.Client
	// reader reads from the API server: pods of a Node are only read a few times.
	reader client.Reader
	// backoff is when to check again without an event of a DaemonSet.
	backoff time.Duration
}

// waiting returns the Nodes that still have the taint.
func (r *reconciler) waiting(ctx context.Context, _ *appsv1.DaemonSet) []reconcile.Request {
	nodes := &corev1.NodeList{}
	if err := r.client.List(ctx, nodes); err != nil {
		return nil // They are requeued anyway.
	}
	var requests []reconcile.Request
	for i := range nodes.Items {
		if tainted(&nodes.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&nodes.Items[i])})
		}
	}
	return requests
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	node := &corev1.Node{}
	if err := r.client.Get(ctx, request.NamespacedName, node); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !tainted(node) {
		return reconcile.Result{}, nil
	}
	sets, pods, drivers := &appsv1.DaemonSetList{}, &corev1.PodList{}, &storagev1.CSINode{}
	if err := errors.Join(
		r.reader.List(ctx, sets, critical),
		r.reader.List(ctx, pods, critical, client.MatchingFields{"spec.nodeName": node.Name}),
		client.IgnoreNotFound(r.reader.Get(ctx, client.ObjectKeyFromObject(node), drivers)),
	); err != nil {
		return reconcile.Result{}, fmt.Errorf("read critical components: %w", err)
	}
	if reason := ready(node, sets.Items, pods.Items, drivers); reason != nil {
		logf.FromContext(ctx).Info("Waiting for critical components", "reason", reason.Error())
		return reconcile.Result{RequeueAfter: r.backoff}, nil
	}
	logf.FromContext(ctx).Info("Removing the taint of critical components")
	after := node.DeepCopy()
	after.Spec.Taints = slices.DeleteFunc(after.Spec.Taints, isCriticalTaint)
	return kube.Result(r.client.Patch(ctx, after, client.MergeFromWithOptions(node, client.MergeFromWithOptimisticLock{})))
}

// ready returns an error with the critical components that are not ready on a Node, or nil.
func ready(node *corev1.Node, sets []appsv1.DaemonSet, pods []corev1.Pod, drivers *storagev1.CSINode) error {
	var errs []error
	present := map[string]bool{}
	wanted := map[string]bool{}
	for i := range pods {
		pod := &pods[i]
		if owner := metav1.GetControllerOf(pod); owner != nil {
			present[string(owner.UID)] = true
		}
		if err := kube.PodReady(pod); err != nil {
			errs = append(errs, fmt.Errorf("namespace %q: %w", pod.Namespace, err))
		}
		for key, driver := range pod.Annotations {
			if strings.HasPrefix(key, constants.PrefixWaitForCSINode) {
				wanted[driver] = true
			}
		}
	}
	for i := range sets {
		if set := &sets[i]; runsOn(set, node) && !present[string(set.UID)] {
			errs = append(errs, fmt.Errorf("DaemonSet %q of namespace %q has no pod on the node yet", set.Name, set.Namespace))
		}
	}
	for _, driver := range slices.Sorted(maps.Keys(wanted)) {
		if !slices.ContainsFunc(drivers.Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == driver }) {
			errs = append(errs, fmt.Errorf("driver %q is not registered", driver))
		}
	}
	return errors.Join(errs...)
}

// ofDaemons are the taints that all pods of DaemonSets tolerate.
var ofDaemons = []string{
	corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeDiskPressure, corev1.TaintNodeMemoryPressure,
	corev1.TaintNodePIDPressure, corev1.TaintNodeUnschedulable, corev1.TaintNodeNetworkUnavailable,
}

// runsOn says whether a DaemonSet has a critical pod on a Node. Without the label in their template, its pods are not critical, and never found.
func runsOn(set *appsv1.DaemonSet, node *corev1.Node) bool {
	if set.Spec.Template.Labels[constants.NodeCriticalComponent] != "true" {
		return false
	}
	pod := &corev1.Pod{Spec: set.Spec.Template.Spec}
	if fits, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); err != nil || !fits {
		return false
	}
	for i := range node.Spec.Taints {
		taint := &node.Spec.Taints[i]
		if taint.Effect == corev1.TaintEffectPreferNoSchedule || slices.Contains(ofDaemons, taint.Key) {
			continue
		}
		if !slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool { return t.ToleratesTaint(logr.Discard(), taint, false) }) {
			return false
		}
	}
	return true
}
