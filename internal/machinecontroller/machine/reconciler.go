package machine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/machinecontroller/bootstraptoken"
	"gardener.cloud/gardener/internal/machinecontroller/drain"
	"gardener.cloud/gardener/internal/machinecontroller/driver"
	"gardener.cloud/gardener/internal/machinecontroller/preservation"
)

const (
	// userDataKey is the key of the user data in the Secret of a class.
	userDataKey = "userData"

	// retrySoon is the delay before an operation of the infrastructure that is still running is checked again.
	retrySoon = 5 * time.Second
	// retryCreation is the delay before a failed creation is retried.
	retryCreation = 30 * time.Second
	// retryRarely is the delay before a retry that only succeeds after a change of the class, or with free capacity.
	retryRarely = 3 * time.Minute
	// drainAgain is the delay before draining continues. The end of a pod and a budget that allows an eviction again are not watched, as
	// that would need a cache of all pods.
	drainAgain = 5 * time.Second
)

// reconciler reconciles Machines.
type reconciler struct {
	controlCache client.Client
	controlAPI   client.Reader
	targetCache  client.Client // has only Nodes in its cache; other kinds are read from the API server
	targetAPI    client.Reader
	driver       driver.Driver
	tokens       *bootstraptoken.Tokens
	drainer      *drain.Drainer
	events       events.EventRecorder
	clock        clock.PassiveClock
	limits       Limits
	pvDetach     time.Duration
	maxReplaced  int
	// reachable returns whether the target cluster can be reached, and since when, if there was an outage.
	reachable func() (since time.Time, now bool)

	// failing is held while a Machine becomes Failed, so that the next one counts it.
	failing sync.Mutex
	// detaching is since when a deletion has been waiting for volumes, by the UID of the Machine. After a restart of the process, the timeout
	// begins again.
	detaching sync.Map
	// writes limits those of health, takeovers those of what Nodes say about keeping their machines, so that neither has to wait for the other.
	writes, takeovers writes
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	machine := &machinev1alpha1.Machine{}
	if err := r.controlCache.Get(ctx, request.NamespacedName, machine); err != nil {
		if apierrors.IsNotFound(err) {
			r.writes.forget(request.NamespacedName)
			r.takeovers.forget(request.NamespacedName)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	machine = machine.DeepCopy()
	var result reconcile.Result
	var err error
	if machine.DeletionTimestamp != nil {
		result, err = r.delete(ctx, machine)
	} else {
		result, err = r.ensure(ctx, machine)
	}
	if err != nil {
		return kube.Result(err)
	}
	return result, nil
}

// classOf reads the class of a Machine, with its credentials.
func (r *reconciler) classOf(ctx context.Context, machine *machinev1alpha1.Machine) (driver.Request, error) {
	class := &machinev1alpha1.MachineClass{}
	if err := r.controlCache.Get(ctx, client.ObjectKey{Namespace: machine.Namespace, Name: machine.Spec.Class.Name}, class); err != nil {
		if apierrors.IsNotFound(err) {
			return driver.Request{}, driver.Errorf(driver.FailedPrecondition, "MachineClass %q does not exist", machine.Spec.Class.Name)
		}
		return driver.Request{}, fmt.Errorf("read MachineClass %q: %w", machine.Spec.Class.Name, err)
	}
	credentials, err := Credentials(ctx, r.controlAPI, class)
	return driver.Request{ClassRequest: driver.ClassRequest{Class: class, Credentials: credentials}, Machine: machine}, err
}

// Credentials reads the credentials of a class.
func Credentials(ctx context.Context, c client.Reader, class *machinev1alpha1.MachineClass) (map[string][]byte, error) {
	ref := class.CredentialsSecretRef
	if ref == nil {
		ref = class.SecretRef
	}
	return secretData(ctx, c, class, ref)
}

func secretData(ctx context.Context, c client.Reader, class *machinev1alpha1.MachineClass, ref *corev1.SecretReference) (map[string][]byte, error) {
	if ref == nil {
		return nil, nil
	}
	secret := &corev1.Secret{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, secret); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, driver.Errorf(driver.FailedPrecondition, "MachineClass %q: Secret %s/%s does not exist", class.Name, ref.Namespace, ref.Name)
		}
		return nil, fmt.Errorf("read Secret %s/%s: %w", ref.Namespace, ref.Name, err)
	}
	return secret.Data, nil
}

// ensure creates the machine, and checks its health.
func (r *reconciler) ensure(ctx context.Context, machine *machinev1alpha1.Machine) (reconcile.Result, error) {
	if err := r.ensureFinalizer(ctx, machine); err != nil {
		return reconcile.Result{}, err
	}
	if machine.Status.CurrentStatus.Phase == machinev1alpha1.MachineFailed && !preservation.Kept(machine, r.clock.Now()) {
		return reconcile.Result{}, nil // its set deletes it
	}
	// Here, a machine gets its phase in the pass in which it gets its label.
	restored := machine.Status.CurrentStatus.Phase == "" && machine.Spec.ProviderID != "" && machine.Labels[machinev1alpha1.NodeLabelKey] != ""
	if machine.Spec.ProviderID == "" {
		if done, result, err := r.create(ctx, machine); !done {
			return result, err
		}
	}
	o := observation{
		machine: machine, nodeName: machine.Labels[machinev1alpha1.NodeLabelKey], restored: restored, limits: limitsOf(machine, r.limits), now: r.clock.Now(),
	}
	var err error
	joining := o.nodeName == ""
	if joining {
		if err := r.observeMachine(ctx, &o); err != nil {
			return reconcile.Result{}, err
		}
	}
	if o.nodeName != "" {
		if o.node, err = nodeOf(ctx, r.targetCache, o.nodeName); err != nil {
			return reconcile.Result{}, err
		}
	}
	var failure error
	var later time.Duration
	if o.node != nil {
		if joining {
			if err := r.label(ctx, machine, o.nodeName); err != nil {
				return reconcile.Result{}, err
			}
		}
		if deleted, err := r.deleteIfRequested(ctx, machine, o.node); deleted || err != nil {
			return reconcile.Result{}, err
		}
		template := r.syncNode(ctx, machine, o.node)
		failure = errors.Join(template, r.syncVirtualCapacity(ctx, machine, o.node), r.endKeeping(ctx, machine, o.node))
		later, err = r.takeOverInTime(ctx, machine, o.node)
		failure = errors.Join(failure, err)
		o.unlabeled = template != nil
	}
	wait, err := r.updateInPlace(ctx, o)
	failure = errors.Join(failure, err) // it says nothing about the health
	result, err := r.check(ctx, o, joining)
	if err != nil {
		return result, errors.Join(failure, err)
	}
	keep, err := r.keep(ctx, o)
	for _, wait := range []time.Duration{wait, keep, later} {
		result.RequeueAfter = sooner(result.RequeueAfter, wait)
	}
	return result, errors.Join(failure, err)
}

// sooner returns the shorter one of two delays, of which 0 is none.
func sooner(a, b time.Duration) time.Duration {
	if a > 0 && b > 0 {
		return min(a, b)
	}
	return max(a, b)
}

// check decides on the phase of the machine, and reports it. observed is set if the driver was called before.
func (r *reconciler) check(ctx context.Context, o observation, observed bool) (reconcile.Result, error) {
	machine := o.machine
	var reachable bool
	if o.reachableSince, reachable = r.reachable(); !reachable {
		// The state of the Node is outdated. It is checked again when the cluster is reachable.
		return reconcile.Result{RequeueAfter: undecided}, nil
	}
	// A driver that notifies of changes is called each time, so that the loss of a machine is found long before its Node stops being Ready.
	// Others are called when the Node is unhealthy.
	_, notifies := r.driver.(driver.Notifier)
	if !observed && (notifies || problems(o.nodeName, o.node, o.limits.NodeConditions) != "") {
		if err := r.observeMachine(ctx, &o); err != nil {
			logf.FromContext(ctx).V(1).Info("Cannot read the state of the machine", "error", err.Error()) // the Node is decisive
		}
	}
	o.mayFail = true
	v := decide(o)
	if v.phase == machinev1alpha1.MachineFailed && machine.Status.CurrentStatus.Phase != machinev1alpha1.MachineFailed {
		return r.fail(ctx, o)
	}
	if v.joined {
		if err := r.tokens.Delete(ctx, machine); err != nil {
			return reconcile.Result{}, err
		}
	}
	v.addresses = o.addresses
	wait, err := r.reportHealth(ctx, machine, v, o.node)
	return reconcile.Result{RequeueAfter: sooner(v.recheck, wait)}, err
}

// fail decides once more with the current state from the API servers, while no other Machine may fail: a Machine that has failed is replaced.
func (r *reconciler) fail(ctx context.Context, o observation) (reconcile.Result, error) {
	r.failing.Lock()
	defer r.failing.Unlock()
	others := &machinev1alpha1.MachineList{}
	if err := r.controlAPI.List(ctx, others, client.InNamespace(o.machine.Namespace)); err != nil {
		return reconcile.Result{}, fmt.Errorf("list Machines: %w", err)
	}
	replaced := 0
	for i := range others.Items {
		other := &others.Items[i]
		if other.Name == o.machine.Name || poolOf(other) != poolOf(o.machine) {
			continue
		}
		var node *corev1.Node
		if name := other.Labels[machinev1alpha1.NodeLabelKey]; name != "" && preservation.Kept(other, o.now) {
			var err error
			if node, err = nodeOf(ctx, r.targetCache, name); err != nil {
				return reconcile.Result{}, err
			}
		}
		if isBeingReplaced(other, node, limitsOf(other, r.limits), o.now) {
			replaced++
		}
	}
	o.mayFail = replaced < r.maxReplaced
	if o.nodeName != "" {
		var err error
		if o.node, err = nodeOf(ctx, r.targetAPI, o.nodeName); err != nil {
			return reconcile.Result{}, err
		}
	}
	if o.node != nil && decide(o).phase == machinev1alpha1.MachineFailed {
		// Whether it is kept is decided together with its phase. That does not wait, as a machine fails only once.
		if err := r.takeOver(ctx, o.machine, o.node); err != nil {
			return reconcile.Result{}, err
		}
	}
	v := decide(o)
	if v.phase != machinev1alpha1.MachineFailed {
		wait, err := r.reportHealth(ctx, o.machine, v, o.node)
		return reconcile.Result{RequeueAfter: sooner(v.recheck, wait)}, err
	}
	return reconcile.Result{RequeueAfter: v.recheck}, r.report(ctx, o.machine, v, o.node)
}

// poolOf identifies the Machines that replace each other: those of a MachineDeployment, whose name is in a label, or of a MachineSet.
func poolOf(machine *machinev1alpha1.Machine) string {
	if name := machine.Labels["name"]; name != "" {
		return "MachineDeployment/" + name
	}
	if owner := metav1.GetControllerOf(machine); owner != nil {
		return owner.Kind + "/" + owner.Name
	}
	return "Machine/" + machine.Name
}

// observeMachine reads the state of the machine at the infrastructure. If there is none, it is lost.
func (r *reconciler) observeMachine(ctx context.Context, o *observation) error {
	request, err := r.classOf(ctx, o.machine)
	if err != nil {
		return err
	}
	status, err := r.driver.GetMachineStatus(ctx, request)
	switch driver.CodeOf(err) {
	case "", driver.Uninitialized:
		o.addresses = status.Addresses
	case driver.NotFound:
		o.lost = err.Error()
	default:
		return fmt.Errorf("read the state of machine %s: %w", o.machine.Name, err)
	}
	if o.nodeName == "" {
		o.nodeName = status.NodeName
	}
	return nil
}

func nodeOf(ctx context.Context, c client.Reader, name string) (*corev1.Node, error) {
	node := &corev1.Node{}
	err := c.Get(ctx, client.ObjectKey{Name: name}, node)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read Node %s: %w", name, err)
	}
	return node, nil
}

const (
	// finalizer keeps a Machine until its machine is gone. It is that of the process beside this one, as it is with other implementations.
	finalizer = machinev1alpha1.MCMFinalizerName
	// formerFinalizer was on Machines instead in earlier versions.
	formerFinalizer = machinev1alpha1.MCFinalizerName
)

func (r *reconciler) ensureFinalizer(ctx context.Context, machine *machinev1alpha1.Machine) error {
	before := machine.DeepCopy()
	added, removed := controllerutil.AddFinalizer(machine, finalizer), controllerutil.RemoveFinalizer(machine, formerFinalizer)
	if !added && !removed {
		return nil
	}
	return r.controlCache.Patch(ctx, machine, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// label sets the label with the Node of a Machine. Until then, a certificate is approved for a machine that has none yet.
func (r *reconciler) label(ctx context.Context, machine *machinev1alpha1.Machine, node string) error {
	before := machine.DeepCopy()
	metav1.SetMetaDataLabel(&machine.ObjectMeta, machinev1alpha1.NodeLabelKey, node)
	if err := r.controlCache.Patch(ctx, machine, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("label Machine %s with its Node: %w", machine.Name, err)
	}
	return nil
}

// create creates the machine, or finds the one of an earlier pass. It is done when the provider ID is in the spec of the Machine.
func (r *reconciler) create(ctx context.Context, machine *machinev1alpha1.Machine) (bool, reconcile.Result, error) {
	status, err := r.createAtProvider(ctx, machine)
	if err == nil {
		before := machine.DeepCopy()
		machine.Spec.ProviderID = status.ProviderID
		if err := r.controlCache.Patch(ctx, machine, client.MergeFrom(before)); err != nil {
			return false, reconcile.Result{}, fmt.Errorf("write the provider ID of Machine %s: %w", machine.Name, err)
		}
		return true, reconcile.Result{}, nil
	}
	var coded *driver.Error
	if !errors.As(err, &coded) {
		return false, reconcile.Result{}, err // of an API server, not of the infrastructure
	}
	v := decideAfterFailedCreation(machine, coded, limitsOf(machine, r.limits), r.clock.Now())
	logf.FromContext(ctx).Info("Cannot create the machine", "code", coded.Code, "error", err.Error())
	return false, reconcile.Result{RequeueAfter: v.recheck}, r.report(ctx, machine, v, nil)
}

func (r *reconciler) createAtProvider(ctx context.Context, machine *machinev1alpha1.Machine) (driver.Status, error) {
	request, err := r.classOf(ctx, machine)
	if err != nil {
		return driver.Status{}, err
	}
	status, err := r.driver.GetMachineStatus(ctx, request)
	code := driver.CodeOf(err)
	if code != driver.NotFound && code != driver.Uninitialized {
		return status, err
	}
	if request.UserData, err = r.userData(ctx, request); err != nil {
		return driver.Status{}, err
	}
	if code == driver.Uninitialized {
		return r.driver.InitializeMachine(ctx, request)
	}
	logf.FromContext(ctx).Info("Creating machine", "class", request.Class.Name)
	return r.driver.CreateMachine(ctx, request)
}

// userData is the user data of a machine, with its bootstrap token.
func (r *reconciler) userData(ctx context.Context, request driver.Request) ([]byte, error) {
	data, err := secretData(ctx, r.controlAPI, request.Class, request.Class.SecretRef)
	if err != nil {
		return nil, err
	}
	content := data[userDataKey]
	token := ""
	if bootstraptoken.Needed(content) {
		// The creation timeout counts once for the creation and once for joining.
		if token, err = r.tokens.Ensure(ctx, request.Machine, r.clock.Now(), 2*limitsOf(request.Machine, r.limits).Creation); err != nil {
			return nil, err
		}
	}
	return bootstraptoken.Render(content, token, request.Machine.Name), nil
}

// deleteIfRequested deletes the Machine if its Node has the annotation for that, or is being deleted.
func (r *reconciler) deleteIfRequested(ctx context.Context, machine *machinev1alpha1.Machine, node *corev1.Node) (bool, error) {
	if node.DeletionTimestamp == nil && node.Annotations[machinev1alpha1.TriggerDeletionByMCM] != "true" {
		return false, nil
	}
	logf.FromContext(ctx).Info("Deleting machine, as its Node is deleted or annotated", "node", node.Name)
	err := r.controlCache.Delete(ctx, machine, client.Preconditions{UID: &machine.UID})
	return true, client.IgnoreNotFound(err)
}

func (r *reconciler) syncNode(ctx context.Context, machine *machinev1alpha1.Machine, node *corev1.Node) error {
	desired, differs, err := withTemplate(machine, node)
	if err != nil || !differs {
		return err
	}
	// With a lock, as taints and finalizers are lists.
	if err := r.targetCache.Patch(ctx, desired, client.MergeFromWithOptions(node, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("apply the template to Node %s: %w", node.Name, err)
	}
	return nil
}
