package dependencywatchdog

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	component "gardener.cloud/gardener/internal/component/dependencywatchdog"
)

// weederValues are what the weeder works with.
type weederValues struct {
	// Config is its configuration, which is valid.
	Config component.WeederConfig
	// SeedCache reads from the cache of the seed, and writes to its API.
	SeedCache client.Client
	Clock     clock.PassiveClock
	// ConcurrentReconciles is how many Services are reconciled at once.
	ConcurrentReconciles int
}

// addWeeder adds the controller. Its requests are Services: they come from changes of their EndpointSlices, and from pods that depend on them.
func addWeeder(mgr manager.Manager, v weederValues) error {
	w := &weederReconciler{weederValues: v, readySince: map[types.NamespacedName]time.Time{}, selectors: map[string][]labels.Selector{}}
	for service, dependants := range v.Config.ServicesAndDependantSelectors {
		for _, s := range dependants.PodSelectors {
			selector, err := metav1.LabelSelectorAsSelector(s)
			if err != nil {
				return err
			}
			w.selectors[service] = append(w.selectors[service], selector)
		}
	}
	return builder.ControllerManagedBy(mgr).Named("weeder").
		WithOptions(controller.Options{MaxConcurrentReconciles: v.ConcurrentReconciles}).
		Watches(&discoveryv1.EndpointSlice{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, slice client.Object) []reconcile.Request {
			key := types.NamespacedName{Namespace: slice.GetNamespace(), Name: slice.GetLabels()[discoveryv1.LabelServiceName]}
			if w.selectors[key.Name] == nil {
				return nil
			}
			return []reconcile.Request{{NamespacedName: key}}
		})).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(w.servicesOf), builder.WithPredicates(predicate.NewPredicateFuncs(func(o client.Object) bool {
			return crashes(o.(*corev1.Pod)) //nolint:forcetypeassert // the kind that is watched
		}))).
		Complete(w)
}

type weederReconciler struct {
	weederValues
	// selectors select the pods that depend on a Service, by its name.
	selectors map[string][]labels.Selector
	// readySince is when a Service was seen ready, for those that are. After a restart all of them have just become ready: that restarts a few pods early.
	mutex      sync.Mutex
	readySince map[types.NamespacedName]time.Time
}

// servicesOf returns the Services that a pod depends on.
func (w *weederReconciler) servicesOf(_ context.Context, pod client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for service, selectors := range w.selectors {
		if matches(selectors, pod) {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: pod.GetNamespace(), Name: service}})
		}
	}
	return requests
}

// Reconcile deletes pods that depend on a Service and wait in CrashLoopBackOff, if the Service became ready not long ago.
func (w *weederReconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	slicesOf := &discoveryv1.EndpointSliceList{}
	if err := w.SeedCache.List(ctx, slicesOf, client.InNamespace(req.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: req.Name}); err != nil {
		return reconcile.Result{}, fmt.Errorf("list EndpointSlices of Service %q: %w", req, err)
	}
	if !w.becameReady(req.NamespacedName, ready(slicesOf.Items)) {
		return reconcile.Result{}, nil
	}
	pods := &corev1.PodList{}
	if err := w.SeedCache.List(ctx, pods, client.InNamespace(req.Namespace)); err != nil {
		return reconcile.Result{}, fmt.Errorf("list Pods that depend on Service %q: %w", req, err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.DeletionTimestamp != nil || !crashes(pod) || !matches(w.selectors[req.Name], pod) {
			continue
		}
		logf.FromContext(ctx).Info("Deleting pod in CrashLoopBackOff, as the Service is ready", "pod", klog.KObj(pod), "service", req.Name)
		if err := w.SeedCache.Delete(ctx, pod, client.Preconditions{UID: &pod.UID}); client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, fmt.Errorf("delete Pod %q: %w", klog.KObj(pod), err)
		}
	}
	return reconcile.Result{}, nil
}

// becameReady records whether a Service is ready, and returns whether it became so within the watch duration.
func (w *weederReconciler) becameReady(service types.NamespacedName, ready bool) bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if !ready {
		delete(w.readySince, service)
		return false
	}
	since, ok := w.readySince[service]
	if !ok {
		since = w.Clock.Now()
		w.readySince[service] = since
	}
	return w.Clock.Since(since) <= w.Config.WatchDuration.Duration
}

// ready reports whether a Service has endpoints, all of which are ready.
func ready(of []discoveryv1.EndpointSlice) bool {
	endpoints := 0
	for _, slice := range of {
		endpoints += len(slice.Endpoints)
		if slices.ContainsFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool { return !ptr.Deref(e.Conditions.Ready, true) }) {
			return false
		}
	}
	return endpoints > 0
}

// crashes reports whether a container of a pod waits in CrashLoopBackOff.
func crashes(pod *corev1.Pod) bool {
	return slices.ContainsFunc(slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses), func(s corev1.ContainerStatus) bool {
		return s.State.Waiting != nil && s.State.Waiting.Reason == "CrashLoopBackOff"
	})
}

func matches(selectors []labels.Selector, pod client.Object) bool {
	return slices.ContainsFunc(selectors, func(s labels.Selector) bool { return s.Matches(labels.Set(pod.GetLabels())) })
}
