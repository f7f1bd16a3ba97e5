package generic

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/pkg/extension"
)

// RenderContainerRuntime returns objects for the shoot. The same input gives the same objects.
type RenderContainerRuntime func(context.Context, *extensionsv1alpha1.ContainerRuntime, *extension.Cluster) ([]client.Object, error)

// ContainerRuntime is an extension.Actuator of ContainerRuntimes. Add it with extension.WatchManaged, as it waits for deletions.
type ContainerRuntime struct {
	// Client is that of the seed. It lists ContainerRuntimes, and writes ManagedResources and their Secrets.
	Client client.Client
	// Owner is the field manager, which is the name of the extension.
	Owner string
	// Shoot are objects for the whole shoot, such as a RuntimeClass. They are the same for all pools.
	Shoot RenderContainerRuntime
	// Pool are the objects for the nodes of one pool: a DaemonSet that installs the runtime on the nodes of spec.workerPool.selector, in spec.binaryPath.
	Pool RenderContainerRuntime
}

// Reconcile applies the objects of the shoot and of the pool.
func (a *ContainerRuntime) Reconcile(ctx context.Context, runtime *extensionsv1alpha1.ContainerRuntime, cluster *extension.Cluster) error {
	for _, part := range []struct {
		name   string
		render RenderContainerRuntime
	}{{runtimeResource(runtime), a.Shoot}, {poolResource(runtime), a.Pool}} {
		objects, err := part.render(ctx, runtime, cluster)
		if err != nil {
			return fmt.Errorf("render the objects of ManagedResource %q: %w", part.name, err)
		}
		if err := extension.ApplyShoot(ctx, a.Client, a.Owner, runtime.Namespace, part.name, objects...); err != nil {
			return err
		}
	}
	return nil
}

// Delete deletes the objects of the pool, and those of the shoot with the last pool.
func (a *ContainerRuntime) Delete(ctx context.Context, runtime *extensionsv1alpha1.ContainerRuntime, _ *extension.Cluster) error {
	if err := extension.DeleteManaged(ctx, a.Client, runtime.Namespace, poolResource(runtime)); err != nil {
		return err
	}
	last, err := a.isLast(ctx, runtime)
	if err != nil || !last {
		return err
	}
	return extension.DeleteManaged(ctx, a.Client, runtime.Namespace, runtimeResource(runtime))
}

// ForceDelete keeps the objects in the shoot, which is deleted anyway.
func (a *ContainerRuntime) ForceDelete(ctx context.Context, runtime *extensionsv1alpha1.ContainerRuntime, _ *extension.Cluster) error {
	return a.release(ctx, runtime)
}

// Migrate keeps the objects in the shoot.
func (a *ContainerRuntime) Migrate(ctx context.Context, runtime *extensionsv1alpha1.ContainerRuntime, _ *extension.Cluster) error {
	return a.release(ctx, runtime)
}

// release keeps the objects: the other pools are deleted or migrate, too.
func (a *ContainerRuntime) release(ctx context.Context, runtime *extensionsv1alpha1.ContainerRuntime) error {
	return errors.Join(
		extension.ReleaseManaged(ctx, a.Client, runtime.Namespace, poolResource(runtime)),
		extension.ReleaseManaged(ctx, a.Client, runtime.Namespace, runtimeResource(runtime)),
	)
}

// CheckContainerRuntime checks that the objects of the shoot and of the pool are applied, healthy and rolled out.
func CheckContainerRuntime(condition corev1beta1.ConditionType) extension.HealthCheck {
	return extension.HealthCheck{
		Condition: condition, Reads: []client.Object{&resourcesv1alpha1.ManagedResource{}},
		Run: func(ctx context.Context, s extension.Subject) error {
			runtime, ok := s.Object.(*extensionsv1alpha1.ContainerRuntime)
			if !ok {
				return fmt.Errorf("the check is for ContainerRuntimes, and not for %T", s.Object)
			}
			for _, name := range []string{runtimeResource(runtime), poolResource(runtime)} {
				if err := extension.CheckManagedResource(condition, name).Run(ctx, s); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// isLast says whether no other pool of the shoot has the runtime. Of pools that are removed together, each may be the last: deleting twice does no harm.
func (a *ContainerRuntime) isLast(ctx context.Context, runtime *extensionsv1alpha1.ContainerRuntime) (bool, error) {
	all := &extensionsv1alpha1.ContainerRuntimeList{}
	if err := a.Client.List(ctx, all, client.InNamespace(runtime.Namespace)); err != nil {
		return false, fmt.Errorf("list ContainerRuntimes: %w", err)
	}
	for i := range all.Items {
		other := &all.Items[i]
		if other.Spec.Type == runtime.Spec.Type && other.Name != runtime.Name && other.DeletionTimestamp == nil {
			return false, nil
		}
	}
	return true, nil
}

// runtimeResource is the name of the ManagedResource for a whole shoot, and poolResource of that for one pool.
func runtimeResource(runtime *extensionsv1alpha1.ContainerRuntime) string {
	return "extension-runtime-" + runtime.Spec.Type
}

func poolResource(runtime *extensionsv1alpha1.ContainerRuntime) string {
	return runtimeResource(runtime) + "-installation-" + runtime.Spec.WorkerPool.Name
}
