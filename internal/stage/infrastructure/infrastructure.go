// Package infrastructure is the stage for what surrounds the nodes of a cluster: its Infrastructure, and the ControlPlane and the Network
// that extensions run for it.
package infrastructure

import (
	"context"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/internal/stage/credentials"
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
	// Credentials have the SSH key. They are read after the task credentials.
	Credentials *credentials.Set
	// Hibernated is whether the Infrastructure is all that the cluster has.
	Hibernated bool
	// Result is what later stages read.
	Result *Result
}

// Result is complete when the task infrastructure is done.
type Result struct {
	// Infrastructure is the reconciled one. It is nil before.
	Infrastructure *extensionsv1alpha1.Infrastructure
}

// ProviderStatus is what the extension for the infrastructure reports to other extensions. It may be nil.
func (r *Result) ProviderStatus() *runtime.RawExtension {
	if r.Infrastructure == nil {
		return nil
	}
	return r.Infrastructure.Status.ProviderStatus
}

// Networks returns the networks of a Shoot's status with those that the infrastructure has chosen, which replace these.
func (r *Result) Networks(status *corev1beta1.NetworkingStatus) *corev1beta1.NetworkingStatus {
	n := &corev1beta1.NetworkingStatus{}
	if status != nil {
		n = status.DeepCopy()
	}
	if r.Infrastructure == nil {
		return n
	}
	chosen := r.Infrastructure.Status
	if cidr := chosen.NodesCIDR; cidr != nil {
		n.Nodes = []string{*cidr}
	}
	if from := chosen.Networking; from != nil {
		for _, list := range []struct {
			to   *[]string
			from []string
		}{{&n.Nodes, from.Nodes}, {&n.Pods, from.Pods}, {&n.Services, from.Services}} {
			if len(list.from) > 0 {
				*list.to = list.from
			}
		}
	}
	n.EgressCIDRs = chosen.EgressCIDRs
	return n
}

// Tasks returns the tasks of the stage.
func Tasks(in Inputs) []flow.Task {
	tasks := []flow.Task{
		flow.Await(stage.ExtensionTimeout, "infrastructure", "Waiting until Infrastructure is ready", in.reconcileInfrastructure, "credentials", "cluster").
			IfPresent("cloudprovider", "cloudprovider-token"),
	}
	if in.Hibernated {
		return tasks
	}
	return append(tasks,
		flow.Await(stage.ExtensionTimeout, ControlPlaneTask, "Waiting until ControlPlane is ready", in.reconcileControlPlane, "infrastructure", "resource-manager-ready"),
		flow.Await(stage.ExtensionTimeout, "network", "Waiting until Network is ready", in.reconcileNetwork, "resource-manager-ready"),
	)
}

// WakeUp returns the task that reconciles the existing ControlPlane of a hibernated cluster which is deleted: what deletes its volumes
// does not run while it is hibernated.
func WakeUp(in Inputs) flow.Task {
	return flow.Await(stage.ExtensionTimeout, ControlPlaneTask, "Waiting until ControlPlane is ready", in.wakeControlPlane,
		"cluster", "credentials", "resource-manager-ready").IfPresent("cloudprovider", "cloudprovider-token")
}

func (in Inputs) reconcileInfrastructure(ctx context.Context) error {
	obj, provider := in.Run.Infrastructure(), in.Shoot.Spec.Provider
	if err := stage.ExtendAndAwait(ctx, in.Run, obj, func(obj *extensionsv1alpha1.Infrastructure) {
		obj.Spec.DefaultSpec = stage.DefaultSpec(obj.Spec.Class, provider.Type, provider.InfrastructureConfig)
		obj.Spec.Region, obj.Spec.SecretRef = in.Shoot.Spec.Region, in.Run.CloudProvider()
		if key := in.Credentials.Current(constants.SecretNameSSHKeyPair); key != nil {
			obj.Spec.SSHPublicKey = key.Data[secrets.DataKeySSHAuthorizedKeys]
		}
	}); err != nil {
		return err
	}
	if err := in.publishNetworks(ctx, (&Result{obj}).Networks(in.Shoot.Status.Networking)); err != nil {
		return err
	}
	in.Result.Infrastructure = obj
	return nil
}

// publishNetworks writes the networks that the infrastructure has chosen into the status of the Shoot.
func (in Inputs) publishNetworks(ctx context.Context, networks *corev1beta1.NetworkingStatus) error {
	before := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: in.Shoot.Namespace, Name: in.Shoot.Name}}
	before.Status.Networking = in.Shoot.Status.Networking
	after := before.DeepCopy()
	after.Status.Networking = networks
	if apiequality.Semantic.DeepEqual(before.Status, after.Status) {
		return nil
	}
	if err := in.Run.GardenCache.Status().Patch(ctx, after, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("write networks of the infrastructure into the status: %w", err)
	}
	return nil
}

func (in Inputs) reconcileControlPlane(ctx context.Context) error {
	provider := in.Shoot.Spec.Provider
	return stage.Extend(ctx, in.Run, in.Run.ControlPlane(), func(obj *extensionsv1alpha1.ControlPlane) {
		obj.Spec.DefaultSpec = stage.DefaultSpec(obj.Spec.Class, provider.Type, provider.ControlPlaneConfig)
		obj.Spec.Region, obj.Spec.SecretRef, obj.Spec.InfrastructureProviderStatus = in.Shoot.Spec.Region, in.Run.CloudProvider(), in.Result.ProviderStatus()
	})
}

// wakeControlPlane reconciles the ControlPlane as it is. One that was never created, or is deleted, stays so.
func (in Inputs) wakeControlPlane(ctx context.Context) error {
	obj := in.Run.ControlPlane()
	if err := in.Run.SeedAPI.Get(ctx, client.ObjectKeyFromObject(obj), obj); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read ControlPlane %q: %w", obj.Name, err)
	}
	if obj.UID == "" || obj.DeletionTimestamp != nil {
		return nil
	}
	return stage.Extend(ctx, in.Run, obj, func(*extensionsv1alpha1.ControlPlane) {})
}

func (in Inputs) reconcileNetwork(ctx context.Context) error {
	networking := in.Shoot.Spec.Networking
	return stage.Extend(ctx, in.Run, in.Run.Network(), func(obj *extensionsv1alpha1.Network) {
		obj.Spec.DefaultSpec = stage.DefaultSpec(obj.Spec.Class, ptr.Deref(networking.Type, ""), networking.ProviderConfig)
		obj.Spec.PodCIDR, obj.Spec.ServiceCIDR = ptr.Deref(networking.Pods, ""), ptr.Deref(networking.Services, "")
		obj.Spec.IPFamilies = nil
		for _, family := range networking.IPFamilies {
			obj.Spec.IPFamilies = append(obj.Spec.IPFamilies, extensionsv1alpha1.IPFamily(family))
		}
	})
}
