package extension

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/pkg/kube"
	"gardener.cloud/gardener/pkg/managedresource"
)

// CheckManagedResource checks that the objects of a ManagedResource are applied, healthy and rolled out, in the seed or in the shoot.
func CheckManagedResource(condition corev1beta1.ConditionType, name string) HealthCheck {
	return HealthCheck{
		Condition: condition, Reads: []client.Object{&resourcesv1alpha1.ManagedResource{}},
		Run: func(ctx context.Context, s Subject) error {
			mr := &resourcesv1alpha1.ManagedResource{}
			if err := readChecked(ctx, s, mr, "ManagedResource", name); err != nil {
				return err
			}
			for _, check := range []func(*resourcesv1alpha1.ManagedResource) error{managedresource.Applied, managedresource.Healthy} {
				if err := check(mr); err != nil {
					return &Unhealthy{Message: err.Error()}
				}
			}
			if err := managedresource.RolledOut(mr); err != nil {
				return &Unfinished{Message: err.Error()}
			}
			return nil
		},
	}
}

// CheckObject checks that an object in the namespace of the extension resource exists, is healthy and is rolled out: a Deployment, StatefulSet,
// DaemonSet, or any other kind that package kube has a check for. The object is an empty one of the kind, as in
// CheckObject(corev1beta1.ShootControlPlaneHealthy, &appsv1.Deployment{}, "cloud-controller-manager").
func CheckObject(condition corev1beta1.ConditionType, object client.Object, name string) HealthCheck {
	return HealthCheck{
		Condition: condition, Reads: []client.Object{object},
		Run: func(ctx context.Context, s Subject) error {
			found := object.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has its original's type
			kind := kindOf(object)
			if err := readChecked(ctx, s, found, kind, name); err != nil {
				return err
			}
			if err := kube.Healthy(found); err != nil {
				return &Unhealthy{Message: fmt.Sprintf("%s %q: %v", kind, name, err)}
			}
			if err := kube.RolledOut(found); err != nil {
				return &Unfinished{Message: fmt.Sprintf("%s %q: %v", kind, name, err)}
			}
			return nil
		},
	}
}

// CheckNodes checks that each MachineDeployment of a Worker has as many ready nodes as it should. It counts for EveryNodeReady.
func CheckNodes() HealthCheck {
	return HealthCheck{
		Condition: corev1beta1.ShootEveryNodeReady, Reads: []client.Object{&machinev1alpha1.MachineDeployment{}, &machinev1alpha1.Machine{}},
		Run: func(ctx context.Context, s Subject) error {
			deployments, machines := &machinev1alpha1.MachineDeploymentList{}, &machinev1alpha1.MachineList{}
			for _, list := range []client.ObjectList{deployments, machines} {
				if err := s.Reader.List(ctx, list, client.InNamespace(s.Object.GetNamespace())); err != nil {
					return fmt.Errorf("list %T: %w", list, err)
				}
			}
			return nodesReady(deployments.Items, machines.Items)
		},
	}
}

// nodesReady returns why there are not as many ready nodes as there should be, or why there are too many.
func nodesReady(deployments []machinev1alpha1.MachineDeployment, machines []machinev1alpha1.Machine) error {
	desired, ready, joining := 0, 0, 0
	for i := range deployments {
		if deployments[i].DeletionTimestamp == nil {
			desired += int(deployments[i].Spec.Replicas)
		}
	}
	for i := range machines {
		machine := &machines[i]
		switch phase := machine.Status.CurrentStatus.Phase; {
		case phase == machinev1alpha1.MachineFailed, phase == machinev1alpha1.MachineCrashLoopBackOff:
			err := &Unhealthy{Message: fmt.Sprintf("Machine %q: its phase is %s: %s", machine.Name, phase, machine.Status.LastOperation.Description)}
			return errorcode.With(err, machineCodes(machine)...)
		case phase == machinev1alpha1.MachineRunning && nodeReady(machine):
			ready++
		case phase == "", phase == machinev1alpha1.MachinePending, phase == machinev1alpha1.MachineAvailable, phase == machinev1alpha1.MachineInPlaceUpdating:
			joining++
		}
	}
	switch {
	case ready < desired && ready+joining >= desired, ready > desired:
		return &Unfinished{Message: fmt.Sprintf("%d of %d nodes are ready, %d machines are being created", ready, desired, joining)}
	case ready < desired:
		return &Unhealthy{Message: fmt.Sprintf("%d of %d nodes are ready", ready, desired)}
	}
	return nil
}

// nodeReady says whether the node of a machine is ready.
func nodeReady(machine *machinev1alpha1.Machine) bool {
	return slices.ContainsFunc(machine.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// machineCodes are the codes for the status of the last operation at the infrastructure.
func machineCodes(machine *machinev1alpha1.Machine) []corev1beta1.ErrorCode {
	switch machine.Status.LastOperation.ErrorCode {
	case "ResourceExhausted":
		return []corev1beta1.ErrorCode{corev1beta1.ErrorInfraResourcesDepleted}
	case "Unauthenticated":
		return []corev1beta1.ErrorCode{corev1beta1.ErrorInfraUnauthenticated}
	case "PermissionDenied":
		return []corev1beta1.ErrorCode{corev1beta1.ErrorInfraUnauthorized}
	}
	return nil
}

// readChecked reads an object that is checked. One that is missing is a problem.
func readChecked(ctx context.Context, s Subject, object client.Object, kind, name string) error {
	err := s.Reader.Get(ctx, client.ObjectKey{Namespace: s.Object.GetNamespace(), Name: name}, object)
	if apierrors.IsNotFound(err) {
		return &Unhealthy{Message: fmt.Sprintf("%s %q: not found", kind, name)}
	}
	if err != nil {
		return fmt.Errorf("read %s %q: %w", kind, name, err)
	}
	return nil
}

// kindOf returns the name of a kind, also for an object without one.
func kindOf(object client.Object) string {
	if kind := object.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	return reflect.TypeOf(object).Elem().Name()
}
