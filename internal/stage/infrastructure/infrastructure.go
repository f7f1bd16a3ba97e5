// Package infrastructure is the stage for what surrounds the nodes of a cluster: its Infrastructure, and the ControlPlane and the Network
// that extensions run for it.
package infrastructure

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/component/extensionobject"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/internal/stage/credentials"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/pkg/flow"
	"gardener.cloud/gardener/pkg/secrets"
)

// ControlPlaneTask is the ID of the task that reconciles the ControlPlane.
const ControlPlaneTask = "control-plane"

// Inputs are what the tasks read.
type Inputs struct {
	Run *stage.Run
	// Shoot has the configuration, and the networks of which the infrastructure may choose some.
	Shoot *corev1beta1.Shoot
	// WriteCluster writes the Cluster resource with a Shoot.
	WriteCluster func(context.Context, *corev1beta1.Shoot) error
	// Requested is whether the Infrastructure is reconciled even if nothing has changed.
	Requested bool
	// Credentials have the SSH key. They are read after the task credentials.
	Credentials *credentials.Set
	// Hibernated is whether the Infrastructure is all that is reconciled.
	Hibernated bool
	// Restores is whether the control plane is restored on another seed: a hibernated one too gets the states of all its extensions, and what they
	// write in the cluster waits until that wakes up.
	Restores bool
	// BeforeNetwork are tasks that the Network comes after, if the flow has them, besides the ControlPlane: webhooks of extensions change what it deploys, and
	// read what these tasks write.
	BeforeNetwork []string
	// Result is what later stages read.
	Result *Result
}

// Result is complete when the task infrastructure is done.
type Result struct {
	// Infrastructure is the reconciled one. It is nil before.
	Infrastructure *extensionsv1alpha1.Infrastructure
}

// errNotReconciled is the error of a task that should come after the task infrastructure.
var errNotReconciled = errors.New("the status of the Infrastructure is read before the task infrastructure is done")

// ProviderStatus is what the extension for the infrastructure reports to other extensions. It may be nil.
func (r *Result) ProviderStatus() (*runtime.RawExtension, error) {
	if r.Infrastructure == nil {
		return nil, errNotReconciled
	}
	return r.Infrastructure.Status.ProviderStatus, nil
}

// Shoot returns a Shoot with the networks that are used, in its spec and its status: those that the infrastructure reports, else those of
// the spec.
func (r *Result) Shoot(shoot *corev1beta1.Shoot) (*corev1beta1.Shoot, error) {
	if r.Infrastructure == nil {
		return nil, errNotReconciled
	}
	reported := chosen(r.Infrastructure)
	shoot = shoot.DeepCopy()
	if shoot.Spec.Networking == nil {
		shoot.Spec.Networking = &corev1beta1.Networking{}
	}
	if shoot.Status.Networking == nil {
		shoot.Status.Networking = &corev1beta1.NetworkingStatus{}
	}
	spec, status := shoot.Spec.Networking, shoot.Status.Networking
	if len(reported.Nodes) > 0 {
		spec.Nodes = &reported.Nodes[0] // the others have no place in the spec
	}
	// These cannot change once they are set, and the spec has one of each.
	if spec.Pods == nil && len(reported.Pods) > 0 {
		spec.Pods = &reported.Pods[0]
	}
	if spec.Services == nil && len(reported.Services) > 0 {
		spec.Services = &reported.Services[0]
	}
	for _, network := range []struct {
		to       *[]string
		reported []string
		desired  *string
	}{{&status.Nodes, reported.Nodes, spec.Nodes}, {&status.Pods, reported.Pods, spec.Pods}, {&status.Services, reported.Services, spec.Services}} {
		switch {
		case len(network.reported) > 0:
			*network.to = network.reported
		case network.desired != nil && !slices.Contains(*network.to, *network.desired):
			*network.to = []string{*network.desired}
		}
	}
	status.EgressCIDRs = r.Infrastructure.Status.EgressCIDRs
	return shoot, nil
}

// chosen returns the networks that an infrastructure reports.
func chosen(infrastructure *extensionsv1alpha1.Infrastructure) extensionsv1alpha1.InfrastructureStatusNetworking {
	reported := ptr.Deref(infrastructure.Status.Networking.DeepCopy(), extensionsv1alpha1.InfrastructureStatusNetworking{})
	if cidr := infrastructure.Status.NodesCIDR; cidr != nil && len(reported.Nodes) == 0 {
		reported.Nodes = []string{*cidr}
	}
	return reported
}

// Tasks returns the tasks of the stage.
func Tasks(in Inputs) []flow.Task {
	tasks := []flow.Task{
		flow.Await(stage.ExtensionTimeout, "infrastructure", "Waiting until Infrastructure is ready", in.reconcileInfrastructure, "credentials", "cluster").
			IfPresent(stage.BeforeExtensions...),
	}
	after := []string{"infrastructure"}
	switch {
	case !in.Hibernated:
		after = append(after, "resource-manager-ready")
	case !in.Restores:
		return tasks
	}
	if networking := in.Shoot.Spec.Networking; networking != nil && len(networking.IPFamilies) > 1 && !in.Hibernated {
		// The later, the more probable it is that the new configuration of the network is on the nodes.
		tasks = append(tasks, flow.Do("dual-stack-dns", "Restarting pods of CoreDNS with one IP family", in.replaceSingleStackDNS, "network").
			IfPresent("system-components", "nodes-updated"))
	}
	return append(tasks,
		flow.Await(stage.ExtensionTimeout, ControlPlaneTask, "Waiting until ControlPlane is ready", in.reconcileControlPlane, after...).
			IfPresent(stage.BeforeExtensions...),
		flow.Await(stage.ExtensionTimeout, "network", "Waiting until Network is ready", in.reconcileNetwork, slices.Concat(after, []string{ControlPlaneTask})...).
			IfPresent(stage.BeforeExtensions...).IfPresent(in.BeforeNetwork...),
	)
}

// ExistingControlPlane returns the task that reconciles the ControlPlane of a cluster which is deleted, if it exists: what deletes load balancers and
// volumes gets the current credentials, and runs again if the cluster is hibernated. A configuration that the extension refuses does not stop the deletion,
// as it cannot be corrected any more.
func ExistingControlPlane(in Inputs) flow.Task {
	return flow.Await(stage.ExtensionTimeout, ControlPlaneTask, "Waiting until ControlPlane is ready", func(ctx context.Context) error {
		err := in.reconcileExistingControlPlane(ctx)
		if slices.Equal(errorcode.Of(err), []corev1beta1.ErrorCode{corev1beta1.ErrorConfigurationProblem}) {
			logf.FromContext(ctx).Error(err, "Deleting the cluster, although its ControlPlane cannot be reconciled")
			return nil
		}
		return err
	},
		"cluster", "credentials", "resource-manager-ready").IfPresent(stage.BeforeExtensions...)
}

// HibernatedControlPlane returns the task that reconciles the ControlPlane when the kube-apiserver is stopped, so that its extension stops what connects to
// that. Before, it runs: it deletes the nodes.
func HibernatedControlPlane(in Inputs) flow.Task {
	return flow.Await(stage.ExtensionTimeout, "control-plane-hibernated", "Waiting until ControlPlane is hibernated", in.reconcileExistingControlPlane,
		"stop-kube-apiserver")
}

// reconcileInfrastructure reconciles the Infrastructure if it was requested, something has changed, or it is not ready: each time may take many
// requests to an infrastructure, which limits them.
func (in Inputs) reconcileInfrastructure(ctx context.Context) error {
	set, err := in.Credentials.All()
	if err != nil {
		return err
	}
	obj, provider := in.Run.Infrastructure(), in.Shoot.Spec.Provider
	values := in.Run.ExtensionValues()
	if err := in.Run.SeedAPI.Get(ctx, client.ObjectKeyFromObject(obj), obj); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read Infrastructure %q: %w", obj.Name, err)
	}
	values.Always = in.Requested || asksForOtherNodes(in.Shoot, obj) || asksForSecondFamily(in.Shoot, obj)
	if err := extensionobject.Apply(ctx, values, obj, func(obj *extensionsv1alpha1.Infrastructure) {
		obj.Spec.DefaultSpec = stage.DefaultSpec(obj.Spec.Class, provider.Type, provider.InfrastructureConfig)
		obj.Spec.Region, obj.Spec.SecretRef = in.Shoot.Spec.Region, in.Run.CloudProvider()
		obj.Spec.SSHPublicKey = nil // SSH access may have been disabled
		if key := set.Current(constants.SecretNameSSHKeyPair); key != nil {
			obj.Spec.SSHPublicKey = key.Data[secrets.DataKeySSHAuthorizedKeys]
		}
	}); err != nil {
		return err
	}
	if err := extensionobject.Await(ctx, values, obj); err != nil {
		return err
	}
	used, err := (&Result{obj}).Shoot(in.Shoot)
	if err != nil {
		return err
	}
	if err := in.publishNetworks(ctx, used); err != nil {
		return err
	}
	in.Result.Infrastructure = obj
	return nil
}

// asksForOtherNodes reports whether the spec has another range of nodes than the Infrastructure reports, which has to refuse or provide it. The
// extension reads the range in the Cluster resource, so that its change does not change the Infrastructure.
func asksForOtherNodes(shoot *corev1beta1.Shoot, infrastructure *extensionsv1alpha1.Infrastructure) bool {
	reported := chosen(infrastructure).Nodes
	networking := shoot.Spec.Networking
	return len(reported) > 0 && networking != nil && networking.Nodes != nil && !slices.Contains(reported, *networking.Nodes)
}

// asksForSecondFamily reports whether the infrastructure has not reported the ranges of pods of all IP families. Like the range of nodes, families are in the
// Cluster resource. An extension that never reports them is called in each reconciliation.
func asksForSecondFamily(shoot *corev1beta1.Shoot, infrastructure *extensionsv1alpha1.Infrastructure) bool {
	networking := shoot.Spec.Networking
	return networking != nil && len(networking.IPFamilies) > 1 && len(chosen(infrastructure).Pods) < len(networking.IPFamilies)
}

// publishNetworks writes the networks that are used into the Shoot and its Cluster resource, where extensions and their webhooks read them.
func (in Inputs) publishNetworks(ctx context.Context, used *corev1beta1.Shoot) error {
	if apiequality.Semantic.DeepEqual(in.Shoot.Spec.Networking, used.Spec.Networking) &&
		apiequality.Semantic.DeepEqual(in.Shoot.Status.Networking, used.Status.Networking) {
		return nil
	}
	if err := retry.RetryOnConflict(retry.DefaultRetry, func() error { return in.writeNetworks(ctx, used) }); err != nil {
		return fmt.Errorf("write networks of the infrastructure into the Shoot: %w", err)
	}
	return in.WriteCluster(ctx, used)
}

// writeNetworks writes networks into the Shoot in the garden. The new generation of the spec is observed, if it has no other change and this run
// can do everything: the certificate of the kube-apiserver has an address of Services and was generated before, so that it takes another run if
// the infrastructure has chosen these.
func (in Inputs) writeNetworks(ctx context.Context, used *corev1beta1.Shoot) error {
	shoot := &corev1beta1.Shoot{}
	if err := in.Run.GardenAPI.Get(ctx, client.ObjectKeyFromObject(in.Shoot), shoot); err != nil {
		return err
	}
	observed := shoot.Generation == in.Shoot.Status.ObservedGeneration && in.Shoot.Spec.Networking != nil && in.Shoot.Spec.Networking.Services != nil
	if before := shoot.DeepCopy(); !apiequality.Semantic.DeepEqual(in.Shoot.Spec.Networking, used.Spec.Networking) {
		if shoot.Spec.Networking == nil {
			shoot.Spec.Networking = &corev1beta1.Networking{}
		}
		to, from := shoot.Spec.Networking, used.Spec.Networking
		to.Nodes, to.Pods, to.Services = from.Nodes, from.Pods, from.Services
		if err := in.Run.GardenCache.Patch(ctx, shoot, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return err
		}
	}
	before := shoot.DeepCopy()
	shoot.Status.Networking = used.Status.Networking
	if observed {
		shoot.Status.ObservedGeneration = shoot.Generation
	}
	return in.Run.GardenCache.Status().Patch(ctx, shoot, client.MergeFrom(before))
}

func (in Inputs) reconcileControlPlane(ctx context.Context) error {
	provider := in.Shoot.Spec.Provider
	status, err := in.Result.ProviderStatus()
	if err != nil {
		return err
	}
	return stage.Extend(ctx, in.Run, in.Run.ControlPlane(), func(obj *extensionsv1alpha1.ControlPlane) {
		obj.Spec.DefaultSpec = stage.DefaultSpec(obj.Spec.Class, provider.Type, provider.ControlPlaneConfig)
		obj.Spec.Region, obj.Spec.SecretRef, obj.Spec.InfrastructureProviderStatus = in.Shoot.Spec.Region, in.Run.CloudProvider(), status
	})
}

// reconcileExistingControlPlane reconciles the ControlPlane as it is. One that was never created, or is deleted, stays so.
func (in Inputs) reconcileExistingControlPlane(ctx context.Context) error {
	obj := in.Run.ControlPlane()
	if err := in.Run.SeedAPI.Get(ctx, client.ObjectKeyFromObject(obj), obj); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("read ControlPlane %q: %w", obj.Name, err)
	}
	if obj.DeletionTimestamp != nil {
		return nil
	}
	return stage.Extend(ctx, in.Run, obj, func(*extensionsv1alpha1.ControlPlane) {})
}

func (in Inputs) reconcileNetwork(ctx context.Context) error {
	shoot, err := in.Result.Shoot(in.Shoot)
	if err != nil {
		return err
	}
	networking, network := shoot.Spec.Networking, in.Run.Network()
	families, err := in.families(ctx, networking, network)
	if err != nil {
		return err
	}
	return stage.Extend(ctx, in.Run, network, func(obj *extensionsv1alpha1.Network) {
		obj.Spec.DefaultSpec = stage.DefaultSpec(obj.Spec.Class, ptr.Deref(networking.Type, ""), networking.ProviderConfig)
		obj.Spec.PodCIDR, obj.Spec.ServiceCIDR = ptr.Deref(networking.Pods, ""), ptr.Deref(networking.Services, "")
		obj.Spec.IPFamilies = families
	})
}
