package extension

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/pkg/kube"
)

// healthTimeout limits one run of all checks of an object. They only read.
const healthTimeout = time.Minute

// Subject is what a health check is about.
type Subject struct {
	// Reader reads from the seed, and from the cache of the manager for kinds that are in it.
	Reader client.Reader
	// Object is the extension resource.
	Object extensionsv1alpha1.Object
	// Cluster is that of its shoot, or nil.
	Cluster *Cluster
}

// HealthCheck is one check of an extension resource. CheckManagedResource, CheckObject and CheckNodes return common ones.
type HealthCheck struct {
	// Condition is the type of the condition in the status that the check counts for. The gardenlet adds the problem to the condition of this type of
	// the Shoot: ControlPlaneHealthy, SystemComponentsHealthy, EveryNodeReady or ObservabilityComponentsHealthy.
	Condition corev1beta1.ConditionType
	// Applies says whether there is something to check. Nil means always.
	Applies func(Subject) bool
	// Run returns nil if all is well, an *Unhealthy with a problem, or an *Unfinished if what is checked still changes. With another error, the
	// condition is Unknown, and the check is run again. Errors may have codes (package errorcode), which are those of the condition.
	Run func(context.Context, Subject) error
	// Reads are objects of the kinds that Run reads in the namespace of the extension resource. A change of one of them runs the check.
	Reads []client.Object
}

// Unhealthy is the error of a health check that found a problem.
type Unhealthy struct {
	// Message names the object and its problem. It should be the same as long as the problem is.
	Message string
}

// Error implements error.
func (u *Unhealthy) Error() string { return u.Message }

// Unfinished is the error of a health check for something that still changes, such as a rollout. It becomes a problem after
// HealthOptions.ProgressingThreshold.
type Unfinished struct {
	// Message names the object and what is not finished.
	Message string
}

// Error implements error.
func (u *Unfinished) Error() string { return u.Message }

// HealthOptions configure the health checks of a kind.
type HealthOptions[T extensionsv1alpha1.Object] struct {
	// Name, Types and Classes select the objects, as for Add.
	Name    string
	Types   []string
	Classes []extensionsv1alpha1.ExtensionClass
	// Checks are the health checks.
	Checks []HealthCheck
	// ProgressingThreshold is for how long something may change until it is a problem. Zero means forever.
	ProgressingThreshold time.Duration
	// Interval is how often checks are run without an event, for what cannot be watched. Zero means never.
	Interval time.Duration
	// Concurrency is how many objects are checked at once. Zero means 5.
	Concurrency int
	// Clock is the source of times in the status. Nil means the real clock.
	Clock clock.PassiveClock
}

// AddHealthChecks adds a controller that runs health checks for the objects of a kind, and writes the results to the conditions in their status. It
// skips objects that are not created yet, that are being deleted or migrated, and those of hibernated shoots.
func AddHealthChecks[T extensionsv1alpha1.Object](mgr manager.Manager, o HealthOptions[T]) error {
	if o.Name == "" || len(o.Types) == 0 || len(o.Checks) == 0 {
		return errors.New("health checks need the name of an extension, a type and a check")
	}
	gvk, err := apiutil.GVKForObject(newObject[T](), mgr.GetScheme())
	if err != nil {
		return err
	}
	selected := Options[T]{Name: o.Name, Types: o.Types, Classes: o.Classes}
	if len(o.Classes) == 0 {
		selected.Classes = []extensionsv1alpha1.ExtensionClass{extensionsv1alpha1.ExtensionClassShoot}
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	r := &healthReconciler[T]{HealthOptions: o, of: &reconciler[T]{Options: selected, client: mgr.GetClient(), kind: gvk.Kind}}
	toObjects := handler.EnqueueRequestsFromMapFunc(r.of.inNamespace(mgr.GetScheme(), gvk.GroupVersion().WithKind(gvk.Kind+"List")))
	b := builder.ControllerManagedBy(mgr).Named("healthcheck-"+strings.ToLower(gvk.Kind)+"-"+strings.Join(o.Types, "-")).
		WithOptions(controller.Options{MaxConcurrentReconciles: max(o.Concurrency, 1)}).
		For(newObject[T](), builder.WithPredicates(predicate.NewPredicateFuncs(r.of.responsible)))
	watched, err := kindsOf(mgr, o.Checks)
	if err != nil {
		return err
	}
	if r.of.ofShoots() {
		watched = append(watched, &extensionsv1alpha1.Cluster{}) // a shoot that wakes up
	}
	for _, object := range watched {
		b.Watches(object, toObjects)
	}
	return b.Complete(r)
}

// healthReconciler runs the checks of one kind.
type healthReconciler[T extensionsv1alpha1.Object] struct {
	HealthOptions[T]
	of *reconciler[T]
}

// Reconcile runs the checks of an object, and writes its conditions if they differ.
func (r *healthReconciler[T]) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	obj := newObject[T]()
	if err := r.of.client.Get(ctx, req.NamespacedName, obj); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	subject := Subject{Reader: r.of.client, Object: obj}
	if req.Namespace != "" && r.of.ofShoots() {
		var err error
		if subject.Cluster, err = ReadCluster(ctx, r.of.client, req.Namespace); err != nil {
			return reconcile.Result{}, err
		}
	}
	if !r.of.responsible(obj) || !checkable(subject) {
		return reconcile.Result{}, nil // An event of the object or of the Cluster requeues it.
	}
	problems, err := runChecks(ctx, r.Checks, subject)
	conditions, after := healthConditions(obj.GetExtensionStatus().GetConditions(), problems, r.Checks, r.ProgressingThreshold, r.Clock.Now())
	if after == 0 || r.Interval > 0 && r.Interval < after {
		after = r.Interval
	}
	before := obj.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has its original's type
	obj.GetExtensionStatus().SetConditions(conditions)
	// Conditions are a list, which is written as a whole: those of other writers must not be lost.
	writeErr := r.of.patchStatus(ctx, obj, before, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if err == nil && apierrors.IsConflict(writeErr) {
		return reconcile.Result{RequeueAfter: retryConflictAfter}, nil
	}
	return reconcile.Result{RequeueAfter: after}, errors.Join(err, writeErr)
}

// checkable says whether there is something that can be expected to be healthy.
func checkable(s Subject) bool {
	last := s.Object.GetExtensionStatus().GetLastOperation()
	switch {
	case s.Object.GetDeletionTimestamp() != nil, last == nil, last.Type == corev1beta1.LastOperationTypeMigrate, s.Cluster.Hibernated():
		return false
	}
	return last.State == corev1beta1.LastOperationStateSucceeded || last.Type == corev1beta1.LastOperationTypeReconcile
}

// Hibernated says whether the shoot is hibernated, or about to be. Nothing runs then.
func (c *Cluster) Hibernated() bool {
	if c == nil || c.Shoot == nil {
		return false
	}
	h := c.Shoot.Spec.Hibernation
	return h != nil && ptr.Deref(h.Enabled, false)
}

// runChecks returns what the checks found, by condition. There is an entry for each condition with a check that applies. The error has those of checks
// that could not be run.
func runChecks(ctx context.Context, checks []HealthCheck, s Subject) (map[corev1beta1.ConditionType][]error, error) {
	found, failed := map[corev1beta1.ConditionType][]error{}, []error{}
	for _, check := range checks {
		if check.Applies != nil && !check.Applies(s) {
			continue
		}
		err := check.Run(ctx, s)
		found[check.Condition] = append(found[check.Condition], err)
		if statusOf(err) == corev1beta1.ConditionUnknown {
			failed = append(failed, err)
		}
	}
	return found, errors.Join(failed...)
}

// statusOf is the status of a condition for the result of a check.
func statusOf(err error) corev1beta1.ConditionStatus {
	var unhealthy *Unhealthy
	var unfinished *Unfinished
	switch {
	case err == nil:
		return corev1beta1.ConditionTrue
	case errors.As(err, &unhealthy):
		return corev1beta1.ConditionFalse
	case errors.As(err, &unfinished):
		return corev1beta1.ConditionProgressing
	}
	return corev1beta1.ConditionUnknown
}

// healthConditions returns the conditions of an object after its checks were run, and when to run them again because something may have changed for too
// long by then. Conditions of other writers stay as they are; those whose checks do not apply any more are removed.
func healthConditions(
	before []corev1beta1.Condition, found map[corev1beta1.ConditionType][]error, checks []HealthCheck, threshold time.Duration, now time.Time,
) (after []corev1beta1.Condition, again time.Duration) {
	after = slices.DeleteFunc(slices.Clone(before), func(c corev1beta1.Condition) bool {
		return found[c.Type] == nil && slices.ContainsFunc(checks, func(check HealthCheck) bool { return check.Condition == c.Type })
	})
	for _, check := range checks {
		if found[check.Condition] == nil {
			continue
		}
		condition := newHealthCondition(check.Condition, found[check.Condition])
		left := limitProgress(kube.Condition(before, check.Condition), &condition, threshold, now)
		if left > 0 && (again == 0 || left < again) {
			again = left
		}
		after, _ = kube.SetCondition(after, condition, now)
	}
	return after, again
}

// limitProgress turns a condition that has been Progressing for longer than the threshold to False, and keeps it there until something is finished. It
// returns how long it may be Progressing still.
func limitProgress(before, condition *corev1beta1.Condition, threshold time.Duration, now time.Time) time.Duration {
	if condition.Status != corev1beta1.ConditionProgressing || threshold == 0 {
		return 0
	}
	if before == nil || before.Reason != condition.Reason {
		return threshold
	}
	left := before.LastTransitionTime.Add(threshold).Sub(now)
	if before.Status == corev1beta1.ConditionFalse || left <= 0 {
		condition.Status = corev1beta1.ConditionFalse
		return 0
	}
	return left
}

// healthReasons are the reasons of conditions by their status.
var healthReasons = map[corev1beta1.ConditionStatus]string{
	corev1beta1.ConditionTrue: extensionsv1alpha1.ReasonSuccessful, corev1beta1.ConditionProgressing: extensionsv1alpha1.ReasonProgressing,
	corev1beta1.ConditionFalse: extensionsv1alpha1.ReasonUnsuccessful, corev1beta1.ConditionUnknown: "ConditionCheckError",
}

// severity orders the status of conditions: the last one wins.
var severity = []corev1beta1.ConditionStatus{
	corev1beta1.ConditionTrue, corev1beta1.ConditionProgressing, corev1beta1.ConditionUnknown, corev1beta1.ConditionFalse,
}

// newHealthCondition returns a condition with what its checks found.
func newHealthCondition(typ corev1beta1.ConditionType, found []error) corev1beta1.Condition {
	condition := corev1beta1.Condition{Type: typ, Status: corev1beta1.ConditionTrue, Message: "All health checks were successful."}
	var messages []string
	for _, err := range found {
		if status := statusOf(err); slices.Index(severity, status) > slices.Index(severity, condition.Status) {
			condition.Status = status
		}
		if err != nil {
			messages = append(messages, err.Error())
		}
	}
	if len(messages) > 0 {
		slices.Sort(messages)
		condition.Message = strings.Join(slices.Compact(messages), "; ")
		condition.Codes = errorcode.Of(errors.Join(found...))
	}
	condition.Reason = healthReasons[condition.Status]
	return condition
}

// kindsOf returns one object of each kind that checks read.
func kindsOf(mgr manager.Manager, checks []HealthCheck) ([]client.Object, error) {
	var objects []client.Object
	seen := map[string]bool{}
	for _, check := range checks {
		for _, object := range check.Reads {
			gvk, err := apiutil.GVKForObject(object, mgr.GetScheme())
			if err != nil {
				return nil, fmt.Errorf("health check for %s: %w", check.Condition, err)
			}
			if !seen[gvk.String()] {
				seen[gvk.String()] = true
				objects = append(objects, object)
			}
		}
	}
	return objects, nil
}
