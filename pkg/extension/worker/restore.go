package worker

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/pkg/extension"
	"gardener.cloud/gardener/pkg/kube"
)

// managerName is the name of the Deployment of the machine-controller-manager.
const managerName = "machine-controller-manager"

// Restore takes over the machines of a control plane that came from another seed. The machine-controller-manager must not run before they are known
// here, or it would create others: the gardenlet deploys it with no replicas, and it is scaled up here. Then it is the same as Reconcile.
//
// There is no method to migrate a Worker: nothing has to be done, as the gardenlet saves the state and removes the objects in the seed.
func (a *Actuator) Restore(ctx context.Context, worker *extensionsv1alpha1.Worker, cluster *extension.Cluster) error {
	if err := complete(worker, cluster); err != nil {
		return err
	}
	if worker.Status.State != nil {
		state, err := DecodeState(worker.Status.State.Raw)
		if err != nil {
			return fmt.Errorf("status.state: %w", err)
		}
		if err := a.restore(ctx, worker, cluster, state); err != nil {
			return err
		}
	}
	if !hibernated(cluster) {
		if err := a.startManager(ctx, worker.Namespace); err != nil {
			return err
		}
	}
	worker.Status.State = nil // also if machines are not ready yet: it must not be restored once more
	return a.Reconcile(ctx, worker, cluster)
}

// restore creates classes, sets, machines and deployments, in this order. What exists is kept.
func (a *Actuator) restore(ctx context.Context, worker *extensionsv1alpha1.Worker, cluster *extension.Cluster, state *State) error {
	existing, err := a.deployments(ctx, worker.Namespace)
	if err != nil {
		return err
	}
	for name, kept := range state.MachineDeployments {
		if existing[name] == nil {
			existing[name] = &machinev1alpha1.MachineDeployment{Spec: machinev1alpha1.MachineDeploymentSpec{Replicas: kept.Replicas}}
		}
	}
	all, err := a.render(ctx, worker, cluster, existing)
	if err != nil {
		return err
	}
	for _, m := range all {
		if err := checkClasses(m.deployment.Name, state.MachineDeployments[m.deployment.Name]); err != nil {
			return err
		}
	}
	for _, m := range all {
		if err := kube.Apply(ctx, a.Client, a.Name, m.secret, m.class); err != nil {
			return err
		}
		if kept := state.MachineDeployments[m.deployment.Name]; kept != nil {
			if err := a.applyFormerClasses(ctx, m, kept); err != nil {
				return err
			}
			for i := range kept.MachineSets {
				set := &machinev1alpha1.MachineSet{ObjectMeta: in(worker.Namespace, &kept.MachineSets[i].ObjectMeta), Spec: kept.MachineSets[i].Spec}
				if err := a.create(ctx, set); err != nil {
					return err
				}
			}
			for i := range kept.Machines {
				machine := &machinev1alpha1.Machine{ObjectMeta: in(worker.Namespace, &kept.Machines[i].ObjectMeta), Spec: kept.Machines[i].Spec}
				if err := a.create(ctx, machine); err != nil {
					return err
				}
			}
		}
		if err := kube.Apply(ctx, a.Client, a.Name, m.deployment); err != nil {
			return err
		}
	}
	return nil
}

// checkClasses refuses a state with classes that are not of its deployment: their names are those of objects that are overwritten, such as a Secret of the
// control plane or the class of another deployment.
func checkClasses(deployment string, kept *DeploymentState) error {
	if kept == nil {
		return nil
	}
	at := field.NewPath("status", "state", "machineDeployments").Key(deployment).Child("machineSets")
	for i := range kept.MachineSets {
		name := kept.MachineSets[i].Spec.Template.Spec.Class.Name
		if hash, ok := strings.CutPrefix(name, deployment+"-"); name != "" && (!ok || hash == "" || strings.Contains(hash, "-")) {
			return field.Invalid(at.Index(i).Child("spec", "template", "spec", "class", "name"), name,
				fmt.Sprintf("must be the name of its deployment, %q, with a hash", deployment))
		}
	}
	return nil
}

// applyFormerClasses applies the classes of machines that were about to be replaced: a machine cannot be deleted without its class. They have the
// content of the current one, as machines are not created from them any more, and are deleted with the last of their machines.
func (a *Actuator) applyFormerClasses(ctx context.Context, current machines, kept *DeploymentState) error {
	names := map[string]bool{}
	for i := range kept.MachineSets {
		names[kept.MachineSets[i].Spec.Template.Spec.Class.Name] = true
	}
	delete(names, current.class.Name)
	delete(names, "")
	for name := range names {
		secret, class := current.secret.DeepCopy(), current.class.DeepCopy()
		secret.Name, class.Name, class.SecretRef.Name = name, name, name
		if err := kube.Apply(ctx, a.Client, a.Name, secret, class); err != nil {
			return err
		}
	}
	return nil
}

// in returns the metadata of an object in another namespace. Owners and finalizers are those that the machine-controller-manager will set.
func in(namespace string, object *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: object.Name, Labels: object.Labels, Annotations: object.Annotations}
}

func (a *Actuator) create(ctx context.Context, object client.Object) error {
	if err := a.Client.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create %T %q: %w", object, object.GetName(), err)
	}
	return nil
}

// startManager scales up the machine-controller-manager, unless it runs.
func (a *Actuator) startManager(ctx context.Context, namespace string) error {
	manager := &appsv1.Deployment{}
	err := a.Reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: managerName}, manager)
	if apierrors.IsNotFound(err) || err == nil && ptr.Deref(manager.Spec.Replicas, 1) > 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read Deployment %q: %w", managerName, err)
	}
	patch := client.MergeFrom(manager.DeepCopy())
	manager.Spec.Replicas = new(int32(1))
	if err := a.Client.Patch(ctx, manager, patch); err != nil {
		return fmt.Errorf("scale up Deployment %q: %w", managerName, err)
	}
	return nil
}
