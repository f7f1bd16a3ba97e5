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
)

const (
	// userDataKey is that of the user data in the Secret of a class.
	userDataKey = "userData"

	// retrySoon is when an infrastructure is asked again that needs a moment.
	retrySoon = 5 * time.Second
	// retryCreation is when a creation is tried again that failed.
	retryCreation = 30 * time.Second
	// retryRarely is when something is tried again that only an edit, or free capacity, helps. An edit of the Machine helps at once.
	retryRarely = 3 * time.Minute
	// drainAgain is when a Node is looked at again that is being drained. Neither the end of a pod nor a budget that allows an eviction
	// again is an event here: that would take a cache of all pods.
	drainAgain = 5 * time.Second
)

// Reconciler brings one machine through its life.
type Reconciler struct {
	client       client.Client // the control cluster: reads Machines and MachineClasses from a cache
	reader       client.Reader // the control cluster, past the cache
	targetClient client.Client // reads Nodes from a cache, everything else from the API server
	targetReader client.Reader // past the cache
	driver       driver.Driver
	tokens       *bootstraptoken.Tokens
	drainer      *drain.Drainer
	events       events.EventRecorder
	clock        clock.PassiveClock
	limits       Limits
	pvDetach     time.Duration
	maxReplaced  int
	// reachableSince tells since when the target cluster is reachable, if it was not for a while, and whether it is now.
	reachable func() (since time.Time, now bool)

	// failing makes machines fail one after the other, so that each sees how many have.
	failing sync.Mutex
	// detaching remembers since when a deletion has been waiting for volumes, by the UID of the machine. If the process dies, it waits
	// once more.
	detaching sync.Map
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	machine := &machinev1alpha1.Machine{}
	if err := r.client.Get(ctx, request.NamespacedName, machine); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	machine = machine.DeepCopy()
	var result reconcile.Result
	var err error
	if machine.DeletionTimestamp != nil {
		result, err = r.delete(ctx, machine)
	} else {
		result, err = r.keep(ctx, machine)
	}
	if err != nil {
		return kube.Result(err)
	}
	return result, nil
}

// classOf reads what the machine is made from.
func (r *Reconciler) classOf(ctx context.Context, machine *machinev1alpha1.Machine) (driver.Request, error) {
	class := &machinev1alpha1.MachineClass{}
	if err := r.client.Get(ctx, client.ObjectKey{Namespace: machine.Namespace, Name: machine.Spec.Class.Name}, class); err != nil {
		if apierrors.IsNotFound(err) {
			return driver.Request{}, driver.Errorf(driver.FailedPrecondition, "MachineClass %q does not exist", machine.Spec.Class.Name)
		}
		return driver.Request{}, fmt.Errorf("read MachineClass %q: %w", machine.Spec.Class.Name, err)
	}
	credentials, err := Credentials(ctx, r.reader, class)
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

// keep makes a machine, and watches over it.
func (r *Reconciler) keep(ctx context.Context, machine *machinev1alpha1.Machine) (reconcile.Result, error) {
	if err := r.ensureFinalizer(ctx, machine); err != nil {
		return reconcile.Result{}, err
	}
	if machine.Status.CurrentStatus.Phase == machinev1alpha1.MachineFailed {
		return reconcile.Result{}, nil // its set deletes it
	}
	if machine.Spec.ProviderID == "" {
		if done, result, err := r.create(ctx, machine); !done {
			return result, err
		}
	}
	o := observation{machine: machine, nodeName: machine.Labels[machinev1alpha1.NodeLabelKey], limits: limitsOf(machine, r.limits), now: r.clock.Now()}
	var err error
	joining := o.nodeName == ""
	if joining {
		if err := r.askDriver(ctx, &o); err != nil {
			return reconcile.Result{}, err
		}
	}
	if o.nodeName != "" {
		if o.node, err = nodeOf(ctx, r.targetClient, o.nodeName); err != nil {
			return reconcile.Result{}, err
		}
	}
	var failure error
	if o.node != nil {
		if joining {
			if err := r.label(ctx, machine, o.nodeName); err != nil {
				return reconcile.Result{}, err
			}
		}
		if deleted, err := r.deleteIfAsked(ctx, machine, o.node); deleted || err != nil {
			return reconcile.Result{}, err
		}
		failure = r.syncNode(ctx, machine, o.node)
	}
	// A machine does not run before its Node has what the template wants. One that has run is watched over, whatever the template wants.
	if phase := machine.Status.CurrentStatus.Phase; failure != nil && phase != machinev1alpha1.MachineRunning && phase != machinev1alpha1.MachineUnknown {
		return reconcile.Result{}, failure
	}
	result, err := r.judge(ctx, o, joining)
	return result, errors.Join(failure, err)
}

// judge decides how the machine is, and reports it.
func (r *Reconciler) judge(ctx context.Context, o observation, asked bool) (reconcile.Result, error) {
	machine := o.machine
	var reachable bool
	if o.reachableSince, reachable = r.reachable(); !reachable {
		// What is known of the Node is old. It will be looked at when the cluster is back.
		return reconcile.Result{RequeueAfter: undecided}, nil
	}
	// A driver that says when machines change is asked whenever there is news: the loss of a machine is known at once, long before
	// its Node stops being Ready. Others are asked when the Node is not well.
	_, tells := r.driver.(driver.Notifier)
	if !asked && (tells || problems(o.nodeName, o.node, o.limits.NodeConditions) != "") {
		if err := r.askDriver(ctx, &o); err != nil {
			logf.FromContext(ctx).V(1).Info("Cannot ask for the machine", "error", err.Error()) // its Node says enough
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
	return reconcile.Result{RequeueAfter: v.recheck}, r.report(ctx, machine, v, o.node)
}

// fail decides once more, about what is so right now, with everybody else waiting. A machine that has failed is replaced, so it is worth
// being sure.
func (r *Reconciler) fail(ctx context.Context, o observation) (reconcile.Result, error) {
	r.failing.Lock()
	defer r.failing.Unlock()
	others := &machinev1alpha1.MachineList{}
	if err := r.reader.List(ctx, others, client.InNamespace(o.machine.Namespace)); err != nil {
		return reconcile.Result{}, fmt.Errorf("list Machines: %w", err)
	}
	replaced := 0
	for i := range others.Items {
		other := &others.Items[i]
		if other.Name != o.machine.Name && poolOf(other) == poolOf(o.machine) && isBeingReplaced(other) {
			replaced++
		}
	}
	o.mayFail = replaced < r.maxReplaced
	if o.nodeName != "" {
		var err error
		if o.node, err = nodeOf(ctx, r.targetReader, o.nodeName); err != nil {
			return reconcile.Result{}, err
		}
	}
	v := decide(o)
	return reconcile.Result{RequeueAfter: v.recheck}, r.report(ctx, o.machine, v, o.node)
}

// poolOf is what machines have in common that replace each other: their MachineDeployment, which names itself in a label, or their set.
func poolOf(machine *machinev1alpha1.Machine) string {
	if name := machine.Labels["name"]; name != "" {
		return "MachineDeployment/" + name
	}
	if owner := metav1.GetControllerOf(machine); owner != nil {
		return owner.Kind + "/" + owner.Name
	}
	return "Machine/" + machine.Name
}

// askDriver asks the infrastructure for the machine. That there is none is an answer.
func (r *Reconciler) askDriver(ctx context.Context, o *observation) error {
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
		return fmt.Errorf("ask for machine %s: %w", o.machine.Name, err)
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

func (r *Reconciler) ensureFinalizer(ctx context.Context, machine *machinev1alpha1.Machine) error {
	if controllerutil.ContainsFinalizer(machine, machinev1alpha1.MCFinalizerName) {
		return nil
	}
	before := machine.DeepCopy()
	controllerutil.AddFinalizer(machine, machinev1alpha1.MCFinalizerName)
	return r.client.Patch(ctx, machine, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// label notes the Node of a machine, which is there from now on. Before that, certificates are given to a machine that has none yet.
func (r *Reconciler) label(ctx context.Context, machine *machinev1alpha1.Machine, node string) error {
	before := machine.DeepCopy()
	metav1.SetMetaDataLabel(&machine.ObjectMeta, machinev1alpha1.NodeLabelKey, node)
	if err := r.client.Patch(ctx, machine, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("label Machine %s with its Node: %w", machine.Name, err)
	}
	return nil
}

// create makes the machine, or finds what an earlier pass made. It is done when the machine's provider ID is noted.
func (r *Reconciler) create(ctx context.Context, machine *machinev1alpha1.Machine) (bool, reconcile.Result, error) {
	status, err := r.createAtProvider(ctx, machine)
	if err == nil {
		before := machine.DeepCopy()
		machine.Spec.ProviderID = status.ProviderID
		if err := r.client.Patch(ctx, machine, client.MergeFrom(before)); err != nil {
			return false, reconcile.Result{}, fmt.Errorf("note the provider ID of Machine %s: %w", machine.Name, err)
		}
		return true, reconcile.Result{}, nil
	}
	var coded *driver.Error
	if !errors.As(err, &coded) {
		return false, reconcile.Result{}, err // our own API servers
	}
	v := decideAfterFailedCreation(machine, coded, limitsOf(machine, r.limits), r.clock.Now())
	logf.FromContext(ctx).Info("Cannot create the machine", "code", coded.Code, "error", err.Error())
	return false, reconcile.Result{RequeueAfter: v.recheck}, r.report(ctx, machine, v, nil)
}

func (r *Reconciler) createAtProvider(ctx context.Context, machine *machinev1alpha1.Machine) (driver.Status, error) {
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

// userData is what the machine executes at first.
func (r *Reconciler) userData(ctx context.Context, request driver.Request) ([]byte, error) {
	data, err := secretData(ctx, r.reader, request.Class, request.Class.SecretRef)
	if err != nil {
		return nil, err
	}
	content := data[userDataKey]
	token := ""
	if bootstraptoken.Needed(content) {
		// The time that a machine has to join begins only when it is made, and that may take as long.
		if token, err = r.tokens.Ensure(ctx, request.Machine, r.clock.Now(), 2*limitsOf(request.Machine, r.limits).Creation); err != nil {
			return nil, err
		}
	}
	return bootstraptoken.Render(content, token, request.Machine.Name), nil
}

// deleteIfAsked deletes the machine if somebody asked for it at its Node, or deletes the Node.
func (r *Reconciler) deleteIfAsked(ctx context.Context, machine *machinev1alpha1.Machine, node *corev1.Node) (bool, error) {
	if node.DeletionTimestamp == nil && node.Annotations[machinev1alpha1.TriggerDeletionByMCM] != "true" {
		return false, nil
	}
	logf.FromContext(ctx).Info("Deleting machine, as its Node asks for it", "node", node.Name)
	err := r.client.Delete(ctx, machine, client.Preconditions{UID: &machine.UID})
	return true, client.IgnoreNotFound(err)
}

func (r *Reconciler) syncNode(ctx context.Context, machine *machinev1alpha1.Machine, node *corev1.Node) error {
	want, differs, err := withTemplate(machine, node)
	if err != nil || !differs {
		return err
	}
	// Taints and finalizers are lists.
	if err := r.targetClient.Patch(ctx, want, client.MergeFromWithOptions(node, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("bring Node %s to its template: %w", node.Name, err)
	}
	return nil
}
