// Package local is the driver for machines that are privileged pods, in the namespace that the Infrastructure has made for them. It may be in
// another cluster than the control plane, which leaves it behind when it moves to another seed.
//
// It writes, per machine, a Pod and a Secret with its user data, both named after the Machine, and reads nothing else.
// A pod that has ended is a lost machine: it is never started again. The Node has the name of the Machine.
// The providerSpec of a MachineClass: api/provider/local/v1alpha1, MachineProviderSpec.
package local

import (
	"context"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	localv1alpha1 "gardener.cloud/gardener/api/provider/local/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/machinecontroller/driver"
)

// providerIDPrefix begins a provider ID. The namespace and the name of the pod follow.
const providerIDPrefix = "local:///"

// powerOffSeconds is the termination grace period of a machine. It was drained before, and systemd gives its services twenty seconds.
const powerOffSeconds = 25

// Driver creates machines as pods.
type Driver struct {
	control, infrastructure client.Client
	cache                   cache.Cache
	namespace               string
}

// New returns the driver. The clients, for the cluster of the Machines and for the one of the pods, read from API servers, not from caches. The cache has
// at least the pods with the label of machines. The namespace is that of the Machines.
func New(control, infrastructure client.Client, pods cache.Cache, namespace string) *Driver {
	return &Driver{control: control, infrastructure: infrastructure, cache: pods, namespace: namespace}
}

// place is where the pod of a machine is.
type place struct {
	client.Client
	namespace string
}

// in returns the place in a namespace. Machines that a version before 1.150 has created are in the namespace of their Machine.
func (d *Driver) in(namespace string) place {
	if namespace == d.namespace {
		return place{d.control, namespace}
	}
	return place{d.infrastructure, namespace}
}

// placeOf returns where a machine is, or is to be created: its provider ID says it, or else its class.
func (d *Driver) placeOf(request driver.Request) place {
	if id, ok := strings.CutPrefix(request.Machine.Spec.ProviderID, providerIDPrefix); ok {
		namespace, _, _ := strings.Cut(id, "/")
		return d.in(namespace)
	}
	return d.in(namespaceOf(request.Class))
}

var (
	_ driver.Driver   = (*Driver)(nil)
	_ driver.Notifier = (*Driver)(nil)
)

// CreateMachine implements driver.Driver.
func (d *Driver) CreateMachine(ctx context.Context, request driver.Request) (driver.Status, error) {
	spec, err := decode(request.Class)
	if err != nil {
		return driver.Status{}, err
	}
	at := d.placeOf(request)
	secret, pod := objects(request, spec, at.namespace)
	// The Secret first: without it, the kubelet would retry the mount after a while.
	if err := at.Create(ctx, secret); err != nil && !apierrors.IsAlreadyExists(err) {
		return driver.Status{}, driver.APIErrorf(err, "create Secret %s", secret.Name)
	} else if err != nil {
		if err := refresh(ctx, at, secret); err != nil {
			return driver.Status{}, err
		}
	}
	err = at.Create(ctx, pod)
	if apierrors.IsAlreadyExists(err) {
		// The pod of an earlier pass, which may have ended. Its deletion requeues the Machine.
		existing := &corev1.Pod{}
		if err := at.Get(ctx, client.ObjectKeyFromObject(pod), existing); err != nil {
			return driver.Status{}, driver.APIErrorf(err, "read Pod %s", pod.Name)
		}
		if !lost(existing) {
			return status(existing), nil
		}
		if err := deletePod(ctx, at, existing); err != nil {
			return driver.Status{}, err
		}
		return driver.Status{}, driver.Errorf(driver.Aborted, "Pod %s of an earlier attempt is being deleted", pod.Name)
	}
	if err != nil {
		return driver.Status{}, driver.APIErrorf(err, "create Pod %s", pod.Name)
	}
	return status(pod), nil
}

// refresh updates the Secret of an earlier attempt, whose bootstrap token may have expired.
func refresh(ctx context.Context, c client.Client, desired *corev1.Secret) error {
	existing := &corev1.Secret{}
	if err := c.Get(ctx, client.ObjectKeyFromObject(desired), existing); err != nil {
		return driver.APIErrorf(err, "read Secret %s", desired.Name)
	}
	patch := client.MergeFrom(existing.DeepCopy())
	existing.Data = desired.Data
	if err := c.Patch(ctx, existing, patch); err != nil {
		return driver.APIErrorf(err, "update Secret %s", desired.Name)
	}
	return nil
}

// InitializeMachine implements driver.Driver. A pod needs nothing more.
func (d *Driver) InitializeMachine(context.Context, driver.Request) (driver.Status, error) {
	return driver.Status{}, driver.Errorf(driver.Unimplemented, "local machines need no initialization")
}

// GetMachineStatus implements driver.Driver.
func (d *Driver) GetMachineStatus(ctx context.Context, request driver.Request) (driver.Status, error) {
	pod := &corev1.Pod{}
	at := d.placeOf(request)
	key := client.ObjectKey{Namespace: at.namespace, Name: request.Machine.Name}
	gone := driver.Status{NodeName: key.Name}
	if err := at.Get(ctx, key, pod); err != nil {
		return gone, driver.APIErrorf(err, "read Pod %s", key.Name)
	}
	if lost(pod) {
		return gone, driver.Errorf(driver.NotFound, "Pod %s has ended%s", pod.Name, why(pod))
	}
	return status(pod), nil
}

// DeleteMachine implements driver.Driver.
func (d *Driver) DeleteMachine(ctx context.Context, request driver.Request) error {
	at := d.placeOf(request)
	meta := metav1.ObjectMeta{Namespace: at.namespace, Name: request.Machine.Name}
	pod := &corev1.Pod{ObjectMeta: meta}
	if err := deletePod(ctx, at, pod); err != nil {
		return err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: meta.Namespace, Name: secretName(meta.Name)}}
	if err := at.Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
		return driver.APIErrorf(err, "delete Secret %s", secret.Name)
	}
	err := at.Get(ctx, client.ObjectKeyFromObject(pod), pod)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return driver.APIErrorf(err, "read Pod %s", pod.Name)
	default:
		return driver.Errorf(driver.DeadlineExceeded, "Pod %s is still ending", pod.Name)
	}
}

func deletePod(ctx context.Context, c client.Client, pod *corev1.Pod) error {
	if pod.DeletionTimestamp != nil {
		return nil
	}
	options := &client.DeleteOptions{GracePeriodSeconds: new(int64(powerOffSeconds))}
	if pod.UID != "" {
		options.Preconditions = &metav1.Preconditions{UID: &pod.UID}
	}
	if err := c.Delete(ctx, pod, options); client.IgnoreNotFound(err) != nil {
		return driver.APIErrorf(err, "delete Pod %s", pod.Name)
	}
	return nil
}

// ListMachines implements driver.Driver.
func (d *Driver) ListMachines(ctx context.Context, request driver.ClassRequest) (map[string]string, error) {
	pods := &corev1.PodList{}
	at := d.in(namespaceOf(request.Class))
	err := at.List(ctx, pods, client.InNamespace(at.namespace), client.MatchingLabels(labelsOf(map[string]string{LabelClass: kube.LabelValue(request.Class.Name)})))
	if err != nil {
		return nil, driver.APIErrorf(err, "list Pods")
	}
	machines := map[string]string{}
	for i := range pods.Items {
		machines[providerID(&pods.Items[i])] = pods.Items[i].Name
	}
	return machines, nil
}

// Changes implements driver.Notifier. The name of a pod is that of its Machine. Only changes that make the machine lost, or
// change its address, are events.
func (d *Driver) Changes(h handler.EventHandler) source.Source {
	return source.Kind[client.Object](d.cache, &corev1.Pod{}, d.machines(h), predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, // all Machines are reconciled when the process starts
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*corev1.Pod)
			after, okAfter := e.ObjectNew.(*corev1.Pod)
			return ok && okAfter && isMachine(after) && (lost(before) != lost(after) || before.Status.PodIP != after.Status.PodIP)
		},
		DeleteFunc: func(e event.DeleteEvent) bool {
			pod, ok := e.Object.(*corev1.Pod)
			return ok && isMachine(pod)
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	})
}

// machines handles events of pods as those of their Machines.
func (d *Driver) machines(h handler.EventHandler) handler.EventHandler {
	machine := func(pod client.Object) client.Object {
		return &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: pod.GetName()}}
	}
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			h.Update(ctx, event.UpdateEvent{ObjectOld: machine(e.ObjectOld), ObjectNew: machine(e.ObjectNew)}, q)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			h.Delete(ctx, event.DeleteEvent{Object: machine(e.Object)}, q)
		},
	}
}

func isMachine(pod *corev1.Pod) bool {
	return labels.SelectorFromSet(localv1alpha1.MachineLabels()).Matches(labels.Set(pod.Labels))
}

// labelsOf adds the labels of all machines.
func labelsOf(of map[string]string) map[string]string {
	maps.Copy(of, localv1alpha1.MachineLabels())
	return of
}

// lost reports whether a machine has ended, or will soon, as its pod is being deleted.
func lost(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// why describes how a pod ended, as far as it is known.
func why(pod *corev1.Pod) string {
	if pod.Status.Message != "" {
		return ": " + pod.Status.Message
	}
	for _, container := range pod.Status.ContainerStatuses {
		if ended := container.State.Terminated; ended != nil {
			return fmt.Sprintf(": %s, exit code %d", ended.Reason, ended.ExitCode)
		}
	}
	return ""
}

func status(pod *corev1.Pod) driver.Status {
	s := driver.Status{ProviderID: providerID(pod), NodeName: pod.Name, Addresses: []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: pod.Name}}}
	var internal []corev1.NodeAddress
	for _, ip := range pod.Status.PodIPs {
		internal = append(internal, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip.IP})
	}
	s.Addresses = append(internal, s.Addresses...)
	return s
}

// providerID has the namespace and the name of the pod.
func providerID(pod *corev1.Pod) string {
	return providerIDPrefix + types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}.String()
}
