package hosts

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlbuilder "sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	hostsv1alpha1 "gardener.cloud/gardener/api/provider/hosts/v1alpha1"
	"gardener.cloud/gardener/pkg/kube"
)

const (
	// conflictRetry is the delay after a conflict: the watch may have brought the object already.
	conflictRetry = time.Second
	// hostTimeout limits what is done on a host at a time: cleaning stops containers.
	hostTimeout = 5 * time.Minute
	// longestBackoff is the longest delay before a host that cannot be reached is tried again. It may be rebooting; when it is back, it is a machine of the
	// shoot that it belonged to until it is cleaned.
	longestBackoff = 2 * time.Minute
	// hostsPerNamespace is how many hosts of a control plane are worked on at a time: hosts of a hostile tenant may take their time.
	hostsPerNamespace = 2
	// busyRetry is the delay before a host is tried that waits for others of its control plane.
	busyRetry = 10 * time.Second
	// longestMessage is how many characters of an error are kept.
	longestMessage = 1000
	// userDataKey is the key of user data in a Secret.
	userDataKey = "userData"
)

// servers does by SSH what a Host needs: one action at a time per host, as the work queue sees to it.
type servers struct {
	client client.Client
	// reader reads from the API server: acting on an old status, such as Cleaning, would destroy a machine.
	reader client.Reader
	run    runner
	clock  clock.PassiveClock
	busy   slots
}

// slots are how many hosts of each namespace are worked on.
type slots struct {
	mutex sync.Mutex
	taken map[string]int
}

// take takes one of a namespace, and returns how it is given back, or nil if all are taken.
func (s *slots) take(namespace string) (release func()) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.taken[namespace] >= hostsPerNamespace {
		return nil
	}
	if s.taken == nil {
		s.taken = map[string]int{}
	}
	s.taken[namespace]++
	return func() {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		if s.taken[namespace]--; s.taken[namespace] == 0 {
			delete(s.taken, namespace)
		}
	}
}

// slotsOf returns the namespace whose slots a host needs. Those that were given up have no claim any more and share the slots of no namespace: a tenant may be
// root on them, too, and they are tried again and again.
func slotsOf(host *hostsv1alpha1.Host) (namespace string, limited bool) {
	if host.Status.Claim != nil {
		return host.Status.Claim.Namespace, true
	}
	return "", gaveUp(host)
}

// add adds the controller. A host is reconciled when it changes, and when the claim of its machine does.
func (r *servers) add(mgr manager.Manager, concurrency int) error {
	ofClaim := func(_ context.Context, object client.Object) []reconcile.Request {
		if claim, ok := object.(*hostsv1alpha1.HostClaim); ok && claim.Status.HostName != "" {
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: claim.Status.HostName}}}
		}
		return nil
	}
	return ctrl.NewControllerManagedBy(mgr).Named("hosts").For(&hostsv1alpha1.Host{}, ctrlbuilder.WithPredicates(predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			return !apiequality.Semantic.DeepEqual(decisive(e.ObjectOld), decisive(e.ObjectNew))
		},
	})).
		Watches(&hostsv1alpha1.HostClaim{}, handler.EnqueueRequestsFromMapFunc(ofClaim)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: concurrency, RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Second, longestBackoff),
		}).Complete(r)
}

// decisive returns a host without what it has said, which may be something else each time: that must not make it tried again without a delay.
func decisive(object client.Object) client.Object {
	object = object.DeepCopyObject().(client.Object)
	object.SetResourceVersion("")
	object.SetManagedFields(nil)
	if host, ok := object.(*hostsv1alpha1.Host); ok {
		host.Status.Message, host.Status.Conditions = "", nil
	}
	return object
}

// Reconcile takes one step. What it has written brings the host back for the next one; a host that cannot be reached is tried again with backoff.
func (r *servers) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	host := &hostsv1alpha1.Host{}
	if err := r.reader.Get(ctx, req.NamespacedName, host); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	claim, err := r.claimOf(ctx, host)
	if err != nil {
		return reconcile.Result{}, err
	}
	action := decideHost(host, claim)
	if group, limited := slotsOf(host); limited && (action == hostProvision || action == hostClean) {
		release := r.busy.take(group)
		if release == nil {
			return reconcile.Result{RequeueAfter: busyRetry}, nil
		}
		defer release()
	}
	before := host.DeepCopy()
	failed := r.act(ctx, action, host, claim)
	if !apiequality.Semantic.DeepEqual(before.Status, host.Status) {
		// Written also when the time for the action is over. It fails if the host has changed meanwhile.
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err := r.client.Status().Update(closing, host); err != nil {
			failed = errors.Join(failed, err)
		}
	}
	if apierrors.IsConflict(failed) {
		return reconcile.Result{RequeueAfter: conflictRetry}, nil
	}
	return reconcile.Result{}, failed
}

// claimOf reads the claim whose machine a host is, or nil if there is none.
func (r *servers) claimOf(ctx context.Context, host *hostsv1alpha1.Host) (*hostsv1alpha1.HostClaim, error) {
	if host.Status.Claim == nil {
		return nil, nil
	}
	claim := &hostsv1alpha1.HostClaim{}
	err := r.reader.Get(ctx, client.ObjectKey{Namespace: host.Status.Claim.Namespace, Name: host.Status.Claim.Name}, claim)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return claim, err
}

func (r *servers) act(ctx context.Context, action hostAction, host *hostsv1alpha1.Host, claim *hostsv1alpha1.HostClaim) error {
	ctx, cancel := context.WithTimeout(ctx, hostTimeout)
	defer cancel()
	logf.FromContext(ctx).V(1).Info("Decided", "action", action)
	switch action {
	case hostKeep:
		controllerutil.AddFinalizer(host, hostsv1alpha1.HostFinalizer)
		return r.client.Update(ctx, host)
	case hostForget:
		controllerutil.RemoveFinalizer(host, hostsv1alpha1.HostFinalizer)
		return r.client.Update(ctx, host)
	case hostRelease:
		return r.release(ctx, host)
	case hostCheck:
		return r.check(ctx, host)
	case hostProvision:
		return r.provision(ctx, host, claim)
	case hostClean:
		return r.clean(ctx, host)
	case hostNothing:
	}
	return nil
}

// release begins to clean a host.
func (r *servers) release(ctx context.Context, host *hostsv1alpha1.Host) error {
	logf.FromContext(ctx).Info("Releasing host", "claim", host.Status.Claim)
	if host.Annotations[constants.GardenerOperation] == hostsv1alpha1.OperationClean {
		status := host.Status.DeepCopy()
		delete(host.Annotations, constants.GardenerOperation)
		if err := r.client.Update(ctx, host); err != nil {
			return err
		}
		host.Status = *status
	}
	setPhase(&host.Status, hostsv1alpha1.HostCleaning, "", r.clock.Now())
	return nil
}

// check finds out whether a host can be a machine, and makes it available or failed. One that was available and cannot be reached waits like a new one.
func (r *servers) check(ctx context.Context, host *hostsv1alpha1.Host) error {
	out, err := r.connect(ctx, host, checkScript, nil)
	var problems []string
	switch exit := (*exitError)(nil); {
	case errors.As(err, &exit):
		problems = []string{exit.Error()}
	case err != nil:
		if host.Status.Phase == hostsv1alpha1.HostAvailable {
			setPhase(&host.Status, hostsv1alpha1.HostPending, "", r.clock.Now())
		}
		return err
	default:
		problems = parse(host, out)
	}
	if len(problems) > 0 {
		setPhase(&host.Status, hostsv1alpha1.HostFailed, kube.Shorten(strings.Join(problems, "; "), longestMessage), r.clock.Now())
		return nil
	}
	if host.Status.Phase != hostsv1alpha1.HostAvailable {
		setPhase(&host.Status, hostsv1alpha1.HostAvailable, "", r.clock.Now())
	}
	return nil
}

// number is how the check prints CPUs and memory.
var number = regexp.MustCompile(`^[0-9]{1,12}(Ki)?$`)

// parse reads the output of the check: it sets the capacity, and returns what is wrong with the host.
func parse(host *hostsv1alpha1.Host, out string) []string {
	var problems []string
	capacity := corev1.ResourceList{}
	for line := range strings.Lines(out) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch key {
		case "hostname":
			if value != host.Name {
				problems = append(problems, fmt.Sprintf("the hostname is %q: set it to the name of the Host, by hostnamectl set-hostname %s", value, host.Name))
			}
		case "problem":
			problems = append(problems, value)
		case "cpu", "memory":
			// A tenant may have been root on the host: large exponents would be computed for hours.
			if number.MatchString(value) {
				capacity[corev1.ResourceName(key)] = resource.MustParse(value)
			}
		}
	}
	if len(capacity) == 0 {
		problems = append(problems, "it has not reported its CPUs and its memory")
	}
	host.Status.Capacity = capacity
	return problems
}

// provision gives a host its user data.
func (r *servers) provision(ctx context.Context, host *hostsv1alpha1.Host, claim *hostsv1alpha1.HostClaim) error {
	secret := &corev1.Secret{}
	if err := r.reader.Get(ctx, client.ObjectKey{Namespace: claim.Namespace, Name: claim.Spec.UserDataSecretName}, secret); err != nil {
		return fmt.Errorf("read user data of HostClaim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	logf.FromContext(ctx).Info("Giving host its user data", "claim", client.ObjectKeyFromObject(claim))
	if _, err := r.connect(ctx, host, provisionScript, secret.Data[userDataKey], string(claim.UID)); err != nil {
		if exit := (*exitError)(nil); errors.As(err, &exit) {
			host.Status.Message = kube.Shorten("could not be provisioned: "+exit.Error(), longestMessage)
		}
		return err
	}
	host.Status.Claim.Provisioned, host.Status.Message = true, ""
	return nil
}

// clean removes what is left of a machine. A host on which something stays is failed, so that it is never handed out; its claim ends anyway. One that cannot
// be reached is failed after a time, and still tried again.
func (r *servers) clean(ctx context.Context, host *hostsv1alpha1.Host) error {
	claim := ""
	if host.Status.Claim != nil {
		claim = string(host.Status.Claim.UID)
	}
	logf.FromContext(ctx).Info("Cleaning host", "claim", host.Status.Claim)
	// Decided before: how long the host has this one busy does not count. It is tried at least once, as it may have waited for others.
	last := givesUp(host, r.clock.Now())
	_, err := r.connect(ctx, host, cleanScript, nil, claim)
	if err == nil {
		err = r.check(ctx, host)
	}
	var exit *exitError
	dirty := errors.As(err, &exit)
	if dirty || err != nil && last && host.Status.Phase == hostsv1alpha1.HostCleaning {
		setPhase(&host.Status, hostsv1alpha1.HostFailed, kube.Shorten("could not be cleaned: "+err.Error(), longestMessage), r.clock.Now())
	}
	if dirty {
		return nil
	}
	return err
}

// connect runs a script on a host, and reports whether the host was reached.
func (r *servers) connect(ctx context.Context, host *hostsv1alpha1.Host, script string, stdin []byte, args ...string) (string, error) {
	secret, ref := &corev1.Secret{}, host.Spec.KeySecretRef
	err := r.reader.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, secret)
	if err != nil {
		err = fmt.Errorf("spec.keySecretRef: read Secret %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	out := ""
	if err == nil {
		out, err = r.run(ctx, host, secret.Data[corev1.SSHAuthPrivateKey], script, stdin, args...)
	}
	condition := metav1.Condition{Type: hostsv1alpha1.ConditionReachable, Status: metav1.ConditionTrue, Reason: "Connected", ObservedGeneration: host.Generation}
	var exit *exitError
	if err != nil && !errors.As(err, &exit) {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, "NotConnected", kube.Shorten(err.Error(), longestMessage)
		if errors.Is(err, errUntrusted) {
			condition.Reason = "HostKeyMismatch"
		}
	}
	meta.SetStatusCondition(&host.Status.Conditions, condition)
	return out, err
}
