package nodes

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/component/machinecontrollermanager"
	"gardener.cloud/gardener/pkg/flow"
)

// MachineControllerManagerTask is the task that deploys the machine-controller-manager.
const MachineControllerManagerTask = "machine-controller-manager"

// MachineControllerManager returns the task that deploys the machine-controller-manager, which the Worker comes after, also when it is deleted. Its
// webhook is that of an extension, which may read what the tasks for the ControlPlane and the OperatingSystemConfigs have written.
func MachineControllerManager(in Inputs) flow.Task {
	return flow.Do(MachineControllerManagerTask, "Deploying machine-controller-manager", func(ctx context.Context) error {
		replicas, err := in.managerReplicas(ctx)
		if err != nil {
			return err
		}
		return in.deployManager(ctx, replicas)
	}, "tokens").IfPresent("infrastructure", "operating-system-configs").IfPresent(in.IfPresent...)
}

// StopMachineControllerManager returns what a task does that scales the machine-controller-manager down. It refuses while there are machines, which nothing
// would delete then, whatever the extension of the Worker has reported.
func StopMachineControllerManager(in Inputs) func(context.Context) error {
	return func(ctx context.Context) error {
		machines := &machinev1alpha1.MachineList{}
		if err := in.Run.SeedAPI.List(ctx, machines, client.InNamespace(in.Run.Namespace)); err != nil {
			return fmt.Errorf("list machines: %w", err)
		}
		if n := len(machines.Items); n > 0 {
			return fmt.Errorf("%d machines are left although the Worker is ready: the machine-controller-manager has to delete them before it is stopped", n)
		}
		return in.deployManager(ctx, 0)
	}
}

func (in Inputs) deployManager(ctx context.Context, replicas int32) error {
	values, err := in.MachineControllerManager(replicas)
	if err != nil {
		return err
	}
	objects, err := machinecontrollermanager.Objects(values)
	if err != nil {
		return err
	}
	if err := in.takeManagerOver(ctx); err != nil {
		return err
	}
	if err := in.Run.ApplyManaged(ctx, machinecontrollermanager.ManagedResourceName, machinecontrollermanager.TargetObjects()...); err != nil {
		return err
	}
	return in.Run.Apply(ctx, objects...)
}

// managerReplicas returns the number of pods. While a cluster is being hibernated, they run for as long as machines have to be deleted. Otherwise the
// number is that of all components, unless it was lowered to protect the cluster from a meltdown.
func (in Inputs) managerReplicas(ctx context.Context) (int32, error) {
	if in.Deletes {
		return in.Replicas, nil
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: in.Run.Namespace, Name: machinecontrollermanager.Name}}
	if err := in.Run.SeedAPI.Get(ctx, client.ObjectKeyFromObject(deployment), deployment); client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("read Deployment %q: %w", deployment.Name, err)
	}
	if in.Restores {
		worker := in.Run.Worker()
		if err := in.Run.SeedAPI.Get(ctx, client.ObjectKeyFromObject(worker), worker); client.IgnoreNotFound(err) != nil {
			return 0, fmt.Errorf("read Worker %q: %w", worker.Name, err)
		}
		if !machinesKnown(worker, deployment) {
			return 0, nil
		}
	}
	busy, err := in.machinesChange(ctx)
	if err != nil {
		return 0, err
	}
	current := ptr.Deref(deployment.Spec.Replicas, 0)
	_, protects := deployment.Annotations[constants.DependencyWatchdogMeltdownProtectionActive]
	switch {
	case in.Hibernates && !busy:
		return 0, nil
	case busy && (protects && in.Run.Protected || in.Hibernates && current > 0):
		return current, nil
	}
	return in.Replicas, nil
}

// machinesChange reports whether there are machines, or other objects that the machine-controller-manager still has to observe or to delete. The
// status of MachineDeployments does not count machines that are being deleted.
func (in Inputs) machinesChange(ctx context.Context) (bool, error) {
	deployments, sets, machines := &machinev1alpha1.MachineDeploymentList{}, &machinev1alpha1.MachineSetList{}, &machinev1alpha1.MachineList{}
	for _, list := range []client.ObjectList{deployments, sets, machines} {
		if err := in.Run.SeedAPI.List(ctx, list, client.InNamespace(in.Run.Namespace)); err != nil {
			return false, fmt.Errorf("list %T: %w", list, err)
		}
	}
	return len(machines.Items) > 0 ||
		slices.ContainsFunc(sets.Items, func(s machinev1alpha1.MachineSet) bool { return s.DeletionTimestamp != nil || s.Spec.Replicas > 0 }) ||
		slices.ContainsFunc(deployments.Items, func(d machinev1alpha1.MachineDeployment) bool {
			return d.DeletionTimestamp != nil || d.Status.Replicas > 0 || d.Status.ObservedGeneration < d.Generation
		}), nil
}

// takeManagerOver prepares what extensions of earlier versions have deployed: fields that they applied are not theirs any more, so that they are
// removed when the gardenlet stops to apply them, and a Service with an address, which cannot become one without, is created again.
func (in Inputs) takeManagerOver(ctx context.Context) error {
	c, key := in.Run.SeedAPI, client.ObjectKey{Namespace: in.Run.Namespace, Name: machinecontrollermanager.Name}
	deployment := &appsv1.Deployment{}
	if err := c.Get(ctx, key, deployment); err == nil {
		kept := slices.DeleteFunc(slices.Clone(deployment.ManagedFields), func(f metav1.ManagedFieldsEntry) bool {
			return f.Operation == metav1.ManagedFieldsOperationApply && f.Manager != in.Run.FieldManager
		})
		if len(kept) < len(deployment.ManagedFields) && len(kept) > 0 { // without any, the server would make one up
			patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"managedFields": kept, "resourceVersion": deployment.ResourceVersion}})
			if err != nil {
				return err
			}
			if err := c.Patch(ctx, deployment, client.RawPatch(types.MergePatchType, patch)); err != nil {
				return in.Run.Advise(ctx, fmt.Errorf("take over Deployment %q: %w", key.Name, err))
			}
		}
	} else if !apierrors.IsNotFound(err) {
		return fmt.Errorf("read Deployment %q: %w", key.Name, err)
	}
	service := &corev1.Service{}
	if err := c.Get(ctx, key, service); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("read Service %q: %w", key.Name, err)
	}
	if service.Spec.ClusterIP == "" || service.Spec.ClusterIP == corev1.ClusterIPNone {
		return nil
	}
	if err := c.Delete(ctx, service); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete Service %q: %w", key.Name, err)
	}
	return nil
}
