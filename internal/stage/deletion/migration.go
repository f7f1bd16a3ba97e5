package deletion

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/extensionobject"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/component/machinecontrollermanager"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/internal/stage/autoscaling"
	"gardener.cloud/gardener/internal/stage/dns"
	"gardener.cloud/gardener/internal/stage/extension"
	"gardener.cloud/gardener/pkg/flow"
)

// Migration is what a control plane that moves to another seed needs besides.
type Migration struct {
	// TargetSeed is the name of the other seed.
	TargetSeed string
	// KubeAPIServerRuns is whether gardener-resource-manager runs, and with it the kube-apiserver.
	KubeAPIServerRuns bool
	// Stale are Extensions that the cluster has no longer. They are deleted.
	Stale []extension.Extension
	// SaveState writes the ShootState.
	SaveState func(context.Context) error
	// Snapshot has etcd take the final snapshot. Nil means that the backups have one, or that there are none.
	Snapshot func(context.Context) error
}

// MigrationTasks returns the tasks that release a control plane: extensions keep what exists outside of the seed, objects in the cluster stay, and the
// state and the backups are complete when the namespace is deleted. The first ones come after all tasks of a list.
// Source: compat/fleet.md, 1, "Source: tasks".
func MigrationTasks(in Inputs, m Migration, others []flow.Task) []flow.Task {
	if !in.HasNamespace { // nothing is left, or it is being deleted
		return []flow.Task{m.backupEntry(in), in.namespace("backup-entry-moved")}
	}
	tasks := m.managedResources(in, others)
	tasks = append(tasks, m.extensions(in)...)
	if in.HasWorkers {
		release(in, &tasks, "control-plane", "ControlPlane", listOf(&extensionsv1alpha1.ControlPlaneList{}), flow.Last(tasks)...)
	}
	if m.KubeAPIServerRuns { // extensions write some when they release their resources
		tasks = append(tasks, flow.Await(stage.ExtensionTimeout, "remaining-managed-resources-gone", "Waiting until no ManagedResources are left", in.noManagedResources,
			flow.Last(tasks)...))
	}
	tasks = append(tasks, flow.Await(stage.PodsTimeout, "kube-apiserver-gone", "Deleting kube-apiserver and other Deployments", in.stopAPIServer, flow.Last(tasks)...))
	release(in, &tasks, "extensions-after-kube-apiserver", "Extensions", in.named(corev1beta1.AfterKubeAPIServer), "kube-apiserver-gone")
	if in.HasWorkers {
		release(in, &tasks, "infrastructure", "Infrastructure", listOf(&extensionsv1alpha1.InfrastructureList{}), "kube-apiserver-gone")
	}
	tasks = append(tasks, migrate(in, "dnsrecords", "DNSRecords", listOf(&extensionsv1alpha1.DNSRecordList{}), "kube-apiserver-gone"))
	released := flow.Last(tasks)
	tasks = append(tasks, dns.Deletion(in.Run, released...)...)
	before := released
	if m.Snapshot != nil {
		tasks = append(tasks, flow.Await(stage.PodsTimeout, "final-snapshot", "Taking the final snapshot of etcd", m.Snapshot, released...))
		before = []string{"final-snapshot"}
	}
	moved := m.backupEntry(in, before...)
	tasks = append(tasks, moved, in.etcds(moved.ID))
	return append(tasks, in.namespace(flow.Last(tasks)...))
}

// managedResources returns the tasks that delete ManagedResources, whose objects stay in the cluster.
func (m Migration) managedResources(in Inputs, others []flow.Task) []flow.Task {
	after := flow.Last(others)
	var tasks []flow.Task
	if m.KubeAPIServerRuns {
		tasks = append(tasks, flow.Do("objects-kept", "Keeping objects of ManagedResources in the cluster", in.keepObjects, after...))
		after = []string{"objects-kept"}
	}
	return append(tasks, in.managedResources(after...))
}

// extensions returns the tasks that release all extension resources but those that come last, and then save what they have reported.
func (m Migration) extensions(in Inputs) []flow.Task {
	const start = "managed-resources-gone"
	early := in.named(corev1beta1.BeforeKubeAPIServer)
	tasks := []flow.Task{migrate(in, "extensions", "Extensions", early, start)}
	ofNodes := listOf(&extensionsv1alpha1.ContainerRuntimeList{}, &extensionsv1alpha1.NetworkList{}, &extensionsv1alpha1.OperatingSystemConfigList{},
		&extensionsv1alpha1.WorkerList{})
	saved := []string{"extensions-migrated"}
	if in.HasWorkers {
		autoscaler := autoscaling.Deletion(in.Run, start) // it must not change what is saved of the machines
		tasks = append(tasks,
			autoscaler,
			flow.Await(stage.PodsTimeout, "machine-controller-manager-gone", "Deleting machine-controller-manager", in.stopMachineControllerManager, autoscaler.ID),
			migrate(in, "worker", "Worker, Network, OperatingSystemConfigs and ContainerRuntimes", ofNodes, "machine-controller-manager-gone"),
		)
		saved = append(saved, "worker-migrated")
	}
	tasks = append(tasks, flow.Do("shoot-state", "Writing the ShootState", m.SaveState, saved...))
	var deleted []string
	if in.HasWorkers {
		tasks = append(tasks,
			remove(in, "worker", "Worker, Network, OperatingSystemConfigs and ContainerRuntimes", ofNodes, "shoot-state"),
			flow.Do("machines-released", "Releasing machine resources", in.releaseMachines, "shoot-state"),
		)
		deleted = append(deleted, "worker-gone")
	}
	tasks = append(tasks, remove(in, "extensions", "Extensions", early, append(deleted, "shoot-state")...))
	for _, e := range m.Stale {
		tasks = append(tasks, extension.Deletion(in.Run, e, saved...))
	}
	return tasks
}

// backupEntry returns the task that hands the BackupEntry over to the other seed.
func (m Migration) backupEntry(in Inputs, after ...string) flow.Task {
	return flow.Await(stage.ExtensionTimeout, "backup-entry-moved", "Waiting until the BackupEntry is released", func(ctx context.Context) error {
		return m.moveBackupEntry(ctx, in)
	}, after...)
}

func (m Migration) moveBackupEntry(ctx context.Context, in Inputs) error {
	entry := &corev1beta1.BackupEntry{}
	if err := in.Run.GardenAPI.Get(ctx, in.BackupEntry, entry); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("read BackupEntry %q: %w", in.BackupEntry.Name, err)
	}
	if before := entry.DeepCopy(); ptr.Deref(entry.Spec.SeedName, "") != m.TargetSeed {
		entry.Spec.SeedName = &m.TargetSeed
		if err := in.Run.GardenCache.Patch(ctx, entry, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("patch BackupEntry %q: %w", entry.Name, err)
		}
	}
	ctx, observe, stop := extensionobject.WithErrorTimeout(ctx)
	defer stop()
	return stage.AwaitOne(ctx, in.Run.GardenAPI, entry.Namespace, entry.Name, &corev1beta1.BackupEntryList{}, func(current *corev1beta1.BackupEntry) error {
		if on := current.Status.SeedName; on == nil || *on == m.TargetSeed {
			return nil
		}
		observe(current.Status.LastError)
		if last := current.Status.LastError; last != nil {
			return fmt.Errorf("BackupEntry %q: %s", entry.Name, last.Description)
		}
		return fmt.Errorf("BackupEntry %q is not released yet", entry.Name)
	})
}

// objects are a function that returns resources of extensions.
type objects func(context.Context, *stage.Run) ([]extensionsv1alpha1.Object, error)

// listOf returns all resources of some kinds in the namespace.
func listOf(lists ...client.ObjectList) objects {
	return func(ctx context.Context, run *stage.Run) ([]extensionsv1alpha1.Object, error) {
		var all []extensionsv1alpha1.Object
		for _, list := range lists {
			list := list.DeepCopyObject().(client.ObjectList) //nolint:forcetypeassert // a copy has its original's type
			if err := run.SeedAPI.List(ctx, list, client.InNamespace(run.Namespace)); err != nil {
				return nil, fmt.Errorf("list %T: %w", list, err)
			}
			_ = meta.EachListItem(list, func(item runtime.Object) error {
				all = append(all, item.(extensionsv1alpha1.Object)) //nolint:forcetypeassert // the lists are of such
				return nil
			})
		}
		return all, nil
	}
}

// named returns the Extensions that are registered to be migrated at a point of the migration.
func (in Inputs) named(at corev1beta1.ControllerResourceLifecycleStrategy) objects {
	return func(_ context.Context, run *stage.Run) ([]extensionsv1alpha1.Object, error) {
		var all []extensionsv1alpha1.Object
		for _, e := range in.Extensions {
			if (e.Migrate == corev1beta1.AfterKubeAPIServer) == (at == corev1beta1.AfterKubeAPIServer) {
				all = append(all, e.Object(run.Namespace))
			}
		}
		return all, nil
	}
}

// release adds the tasks that have extensions release resources, and then delete these.
func release(in Inputs, tasks *[]flow.Task, id, kinds string, of objects, after ...string) {
	*tasks = append(*tasks, migrate(in, id, kinds, of, after...), remove(in, id, kinds, of, id+"-migrated"))
}

// migrate returns the task that has extensions release resources.
func migrate(in Inputs, id, kinds string, of objects, after ...string) flow.Task {
	return flow.Await(stage.ExtensionTimeout, id+"-migrated", "Waiting until extensions have released "+kinds, func(ctx context.Context) error {
		return forEach(ctx, in.Run, of, func(ctx context.Context, obj extensionsv1alpha1.Object) error {
			if err := extensionobject.Migrate(ctx, in.Run.ExtensionValues(), obj); err != nil {
				return err
			}
			return extensionobject.AwaitMigrated(ctx, in.Run.ExtensionValues(), obj)
		})
	}, after...)
}

// remove returns the task that deletes resources which extensions have released.
func remove(in Inputs, id, kinds string, of objects, after ...string) flow.Task {
	return flow.Await(stage.ExtensionTimeout, id+"-gone", "Deleting "+kinds, func(ctx context.Context) error {
		return forEach(ctx, in.Run, of, func(ctx context.Context, obj extensionsv1alpha1.Object) error {
			return in.Run.DeleteExtension(ctx, obj)
		})
	}, after...)
}

// forEach calls a function for resources, all at once.
func forEach(ctx context.Context, run *stage.Run, of objects, do func(context.Context, extensionsv1alpha1.Object) error) error {
	all, err := of(ctx, run)
	if err != nil {
		return err
	}
	calls := make([]func(context.Context) error, 0, len(all))
	for _, obj := range all {
		calls = append(calls, func(ctx context.Context) error { return do(ctx, obj) })
	}
	return flow.Parallel(ctx, calls...)
}

// ofCluster is whether the objects of a ManagedResource are in the cluster, and not in the seed.
func ofCluster(mr *resourcesv1alpha1.ManagedResource) bool { return ptr.Deref(mr.Spec.Class, "") == "" }

// keepObjects has gardener-resource-manager keep the objects of ManagedResources that are deleted.
func (in Inputs) keepObjects(ctx context.Context) error {
	list := &resourcesv1alpha1.ManagedResourceList{}
	if err := in.Run.SeedAPI.List(ctx, list, client.InNamespace(in.Run.Namespace)); err != nil {
		return fmt.Errorf("list ManagedResources: %w", err)
	}
	var errs []error
	for i := range list.Items {
		mr := &list.Items[i]
		if before := mr.DeepCopy(); ofCluster(mr) && !ptr.Deref(mr.Spec.KeepObjects, false) {
			mr.Spec.KeepObjects = new(true)
			errs = append(errs, client.IgnoreNotFound(in.Run.SeedAPI.Patch(ctx, mr, client.MergeFrom(before))))
		}
	}
	return errors.Join(errs...)
}

func (in Inputs) noManagedResources(ctx context.Context) error {
	return kube.Await(ctx, in.Run.SeedAPI, &resourcesv1alpha1.ManagedResourceList{}, func(left []*resourcesv1alpha1.ManagedResource) error {
		if at := slices.IndexFunc(left, ofCluster); at >= 0 {
			return fmt.Errorf("ManagedResource %q is not deleted yet", left[at].Name)
		}
		return nil
	}, nil, client.InNamespace(in.Run.Namespace))
}

func (in Inputs) stopMachineControllerManager(ctx context.Context) error {
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: in.Run.Namespace, Name: machinecontrollermanager.Name}}
	if err := in.Run.Delete(ctx, deployment); err != nil {
		return err
	}
	return in.Run.PodsGone(ctx, machinecontrollermanager.Labels())
}

// stopAPIServer deletes the Deployments of the control plane, and waits until nothing writes to etcd any more. Pods of others, which may be machines,
// are not touched.
func (in Inputs) stopAPIServer(ctx context.Context) error {
	if err := in.deletePods(ctx, func(pod *corev1.Pod) bool {
		owner := metav1.GetControllerOf(pod)
		return owner != nil && owner.Kind == "ReplicaSet"
	}, &appsv1.Deployment{}, &appsv1.ReplicaSet{}); err != nil {
		return err
	}
	return in.Run.PodsGone(ctx, kubeapiserver.Labels())
}

// releaseMachines deletes the resources of machines, and not the machines: nothing works on these any more. The credentials of the infrastructure
// stay until extensions have released their resources.
func (in Inputs) releaseMachines(ctx context.Context) error {
	release := func(obj *metav1.PartialObjectMetadata, deletes bool) error {
		if deletes {
			if err := in.Run.SeedAPI.Delete(ctx, obj); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("delete %s %q: %w", obj.Kind, obj.Name, err)
			}
		}
		key, kind := client.ObjectKeyFromObject(obj), obj.GroupVersionKind()
		current := kube.Metadata(kind)
		if err := in.Run.SeedAPI.Get(ctx, key, current); err != nil {
			return client.IgnoreNotFound(err)
		}
		return client.IgnoreNotFound(kube.PatchMetadata(ctx, in.Run.SeedAPI, current, func(o *metav1.PartialObjectMetadata) {
			o.Finalizers = slices.DeleteFunc(o.Finalizers, func(f string) bool {
				return f == machinev1alpha1.MCMFinalizerName || f == machinev1alpha1.MCFinalizerName
			})
		}))
	}
	for _, kind := range []string{"MachineDeployment", "MachineSet", "Machine", "MachineClass"} {
		if err := each(ctx, in.Run, machinev1alpha1.SchemeGroupVersion.WithKind(kind), func(obj *metav1.PartialObjectMetadata) error {
			return release(obj, true)
		}); err != nil {
			return err
		}
	}
	return each(ctx, in.Run, corev1.SchemeGroupVersion.WithKind("Secret"), func(obj *metav1.PartialObjectMetadata) error {
		ofMachines := obj.Labels[constants.GardenerPurpose] == constants.GardenPurposeMachineClass
		if !ofMachines && obj.Name != constants.SecretNameCloudProvider {
			return nil
		}
		return release(obj, ofMachines)
	})
}
