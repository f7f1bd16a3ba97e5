// Package deletion is the stage that deletes a control plane, with everything that it has created elsewhere: in the reverse order of
// their creation, or by force, without the help of extensions that do not work. When the control plane moves to another seed, it deletes the
// control plane only.
package deletion

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/internal/stage/autoscaling"
	"gardener.cloud/gardener/internal/stage/containerruntime"
	"gardener.cloud/gardener/internal/stage/dns"
	"gardener.cloud/gardener/internal/stage/extension"
	"gardener.cloud/gardener/pkg/flow"
)

const (
	// namespaceTimeout is for how long a namespace without pods may take to be deleted, until the status tells what it waits for. The next
	// run goes on waiting.
	namespaceTimeout = 2 * time.Minute
	// podsTimeout is for how long deleted pods without a grace period may take to terminate.
	podsTimeout = 10 * time.Second
)

// Inputs are what the tasks read.
type Inputs struct {
	Run *stage.Run
	// HasNamespace is whether the seed has the namespace of the control plane.
	HasNamespace bool
	// HasWorkers is whether there may be machines, an infrastructure, and what extensions have for them.
	HasWorkers bool
	// Extensions are all that the cluster has.
	Extensions []extension.Extension
	// BackupEntry is the key of the one in the garden.
	BackupEntry client.ObjectKey
}

// Tasks returns the tasks of the stage. The first ones come after all tasks of a list.
func Tasks(in Inputs, others []flow.Task) []flow.Task {
	var tasks []flow.Task
	last := func() []string {
		if len(tasks) == 0 {
			return flow.Last(others)
		}
		return flow.Last(tasks)
	}
	if in.HasNamespace {
		tasks = in.extensionTasks(flow.Last(others))
		tasks = append(tasks,
			in.managedResources(last()...),
			in.deployments("managed-resources-gone"),
			in.etcds("kube-apiserver-gone"),
		)
		tasks = append(tasks, in.extensions(corev1beta1.AfterKubeAPIServer, "kube-apiserver-gone")...)
	}
	after := last()
	tasks = append(tasks, dns.Deletion(in.Run, after...)...)
	tasks = append(tasks, in.backupEntry(last()...))
	if in.HasNamespace {
		tasks = append(tasks, in.namespace(last()...))
	}
	return tasks
}

// extensionTasks delete the resources of extensions, each after those that need it.
func (in Inputs) extensionTasks(after []string) []flow.Task {
	tasks := in.extensions(corev1beta1.BeforeKubeAPIServer, after...)
	if !in.HasWorkers {
		return append(tasks, in.extensions(corev1beta1.AfterWorker, after...)...)
	}
	autoscaler, runtimes := autoscaling.Deletion(in.Run), containerruntime.Deletion(in.Run, after...)
	tasks = append(tasks, autoscaler, runtimes, in.extension("worker", "Deleting Worker", in.Run.Worker(), autoscaler.ID, runtimes.ID))
	tasks = append(tasks, in.extensions(corev1beta1.AfterWorker, "worker-gone")...)
	tasks = append(tasks,
		flow.Await(stage.ExtensionTimeout, "operating-system-configs-gone", "Deleting OperatingSystemConfigs", in.deleteSystemConfigs, "worker-gone"),
		in.extension("network", "Deleting Network", in.Run.Network(), "worker-gone"),
		in.extension("control-plane", "Deleting ControlPlane", in.Run.ControlPlane(), "worker-gone"),
	)
	return append(tasks, in.extension("infrastructure", "Deleting Infrastructure", in.Run.Infrastructure(), flow.Last(tasks)...))
}

// extension returns the task that deletes a resource of an extension and waits until it is gone.
func (in Inputs) extension(id, title string, obj extensionsv1alpha1.Object, after ...string) flow.Task {
	return flow.Await(stage.ExtensionTimeout, id+"-gone", title, func(ctx context.Context) error { return in.Run.DeleteExtension(ctx, obj) }, after...)
}

// extensions returns the tasks for the Extensions that are registered to be deleted at a point of the deletion.
func (in Inputs) extensions(at corev1beta1.ControllerResourceLifecycleStrategy, after ...string) []flow.Task {
	var tasks []flow.Task
	for _, e := range in.Extensions {
		if e.Delete == at {
			tasks = append(tasks, extension.Deletion(in.Run, e, after...))
		}
	}
	return tasks
}

func (in Inputs) deleteSystemConfigs(ctx context.Context) error {
	list := &extensionsv1alpha1.OperatingSystemConfigList{}
	if err := in.Run.SeedAPI.List(ctx, list, client.InNamespace(in.Run.Namespace)); err != nil {
		return fmt.Errorf("list OperatingSystemConfigs: %w", err)
	}
	deletions := make([]func(context.Context) error, 0, len(list.Items))
	for i := range list.Items {
		deletions = append(deletions, func(ctx context.Context) error { return in.Run.DeleteExtension(ctx, &list.Items[i]) })
	}
	return flow.Parallel(ctx, deletions...)
}

// managedResources returns the task that deletes all ManagedResources. Their objects are deleted with the cluster, so nothing has to be
// deleted in it.
func (in Inputs) managedResources(after ...string) flow.Task {
	return flow.Await(stage.PodsTimeout, "managed-resources-gone", "Deleting ManagedResources", in.deleteManagedResources, after...)
}

func (in Inputs) deleteManagedResources(ctx context.Context) error {
	c := in.Run.SeedAPI
	list := &resourcesv1alpha1.ManagedResourceList{}
	if err := c.List(ctx, list, client.InNamespace(in.Run.Namespace)); err != nil {
		return fmt.Errorf("list ManagedResources: %w", err)
	}
	for i := range list.Items {
		mr := &list.Items[i]
		if err := c.Delete(ctx, mr); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete ManagedResource %q: %w", mr.Name, err)
		}
		if !ofCluster(mr) {
			continue // its objects in the seed have to be deleted
		}
		// Only now: gardener-resource-manager cannot add its finalizer again to an object that is deleted.
		if err := c.Get(ctx, client.ObjectKeyFromObject(mr), mr); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return fmt.Errorf("read ManagedResource %q: %w", mr.Name, err)
		}
		if err := kube.PatchMetadata(ctx, c, mr, func(o *metav1.PartialObjectMetadata) {
			o.Finalizers = slices.DeleteFunc(o.Finalizers, func(f string) bool { return strings.HasPrefix(f, resourcesv1alpha1.FinalizerName) })
		}); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return awaitNone[*resourcesv1alpha1.ManagedResource](ctx, in.Run, "ManagedResource", &resourcesv1alpha1.ManagedResourceList{})
}

// deployments returns the task that deletes the Deployments of the control plane, so that etcd has no clients any more.
func (in Inputs) deployments(after ...string) flow.Task {
	return flow.Do("kube-apiserver-gone", "Deleting kube-apiserver and other Deployments", func(ctx context.Context) error {
		return in.deletePods(ctx, func(pod *corev1.Pod) bool {
			owner := metav1.GetControllerOf(pod)
			return owner == nil || owner.Kind != "StatefulSet"
		}, &appsv1.Deployment{}, &appsv1.ReplicaSet{})
	}, after...)
}

// deletePods deletes pods and their controllers, without a grace period as nothing uses them any more. The controllers are deleted first,
// but not together with their pods: the garbage collector would grant each pod its grace period.
func (in Inputs) deletePods(ctx context.Context, chosen func(*corev1.Pod) bool, controllers ...client.Object) error {
	c, namespace := in.Run.SeedAPI, client.InNamespace(in.Run.Namespace)
	for _, controller := range controllers {
		if err := c.DeleteAllOf(ctx, controller, namespace, client.PropagationPolicy(metav1.DeletePropagationOrphan)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete controllers of pods: %w", err)
		}
	}
	pods := &corev1.PodList{}
	if err := c.List(ctx, pods, namespace); err != nil {
		return fmt.Errorf("list Pods: %w", err)
	}
	var deletions []func(context.Context) error
	for i := range pods.Items {
		if pod := &pods.Items[i]; chosen(pod) {
			deletions = append(deletions, func(ctx context.Context) error {
				if err := c.Delete(ctx, pod, client.GracePeriodSeconds(1)); client.IgnoreNotFound(err) != nil {
					return fmt.Errorf("delete Pod %q: %w", pod.Name, err)
				}
				return nil
			})
		}
	}
	return flow.Parallel(ctx, deletions...)
}

// etcds returns the task that deletes the Etcds, and then their volumes.
func (in Inputs) etcds(after ...string) flow.Task {
	return flow.Await(stage.PodsTimeout, "etcd-gone", "Deleting etcd", in.deleteEtcds, after...)
}

func (in Inputs) deleteEtcds(ctx context.Context) error {
	c := in.Run.SeedAPI
	list := &druidv1alpha1.EtcdList{}
	if err := c.List(ctx, list, client.InNamespace(in.Run.Namespace)); err != nil {
		return fmt.Errorf("list Etcds: %w", err)
	}
	for i := range list.Items {
		etcd := &list.Items[i]
		if err := confirmDeletion(ctx, c, etcd); client.IgnoreNotFound(err) != nil {
			return err
		}
		if err := c.Delete(ctx, etcd); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete Etcd %q: %w", etcd.Name, err)
		}
	}
	if err := awaitNone[*druidv1alpha1.Etcd](ctx, in.Run, "Etcd", &druidv1alpha1.EtcdList{}); err != nil {
		return err
	}
	return client.IgnoreNotFound(c.DeleteAllOf(ctx, &corev1.PersistentVolumeClaim{}, client.InNamespace(in.Run.Namespace)))
}

// backupEntry returns the task that deletes the BackupEntry. Its controller keeps the backups as long as the gardenlet is configured to.
func (in Inputs) backupEntry(after ...string) flow.Task {
	return flow.Do("backup-entry-gone", "Deleting the BackupEntry", func(ctx context.Context) error {
		entry := &corev1beta1.BackupEntry{}
		err := in.Run.GardenAPI.Get(ctx, in.BackupEntry, entry)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil {
			err = confirmDeletion(ctx, in.Run.GardenCache, entry)
		}
		if err == nil {
			err = in.Run.GardenCache.Delete(ctx, entry)
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete BackupEntry %q: %w", in.BackupEntry.Name, err)
		}
		return nil
	}, after...)
}

// namespace returns the task that deletes the namespace of the control plane and waits until it is gone.
func (in Inputs) namespace(after ...string) flow.Task {
	return flow.Await(namespaceTimeout, "namespace-gone", "Deleting the namespace of the control plane", in.deleteNamespace, after...)
}

// deleteNamespace deletes the namespace. The error says what the namespace controller waits for.
func (in Inputs) deleteNamespace(ctx context.Context) error {
	c, name := in.Run.SeedAPI, in.Run.Namespace
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	err := c.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil && namespace.DeletionTimestamp == nil {
		if err := in.deleteAllPods(ctx); err != nil {
			return err
		}
		if err = confirmDeletion(ctx, c, namespace); err == nil {
			err = c.Delete(ctx, namespace)
		}
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete Namespace %q: %w", name, err)
	}
	return kube.Await(ctx, c, &corev1.NamespaceList{}, func(left []*corev1.Namespace) error {
		if len(left) == 0 {
			return nil
		}
		var reasons []string
		for _, condition := range left[0].Status.Conditions {
			if condition.Status == corev1.ConditionTrue {
				reasons = append(reasons, condition.Message)
			}
		}
		return fmt.Errorf("Namespace %q is not deleted yet: %s", name, strings.Join(reasons, "; "))
	}, nil, client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", name)})
}

// deleteAllPods deletes all pods that are left, and waits a moment for their end: while there are pods, the namespace controller checks
// again only after their grace period.
func (in Inputs) deleteAllPods(ctx context.Context) error {
	all := func(*corev1.Pod) bool { return true }
	if err := in.deletePods(ctx, all, &appsv1.Deployment{}, &appsv1.ReplicaSet{}, &appsv1.StatefulSet{}); err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, podsTimeout)
	defer cancel()
	if err := awaitNone[*corev1.Pod](waiting, in.Run, "Pod", &corev1.PodList{}); err != nil {
		logf.FromContext(ctx).Info("Deleting namespace although it still has pods", "reason", err.Error())
	}
	return ctx.Err()
}

// Cluster returns the task that deletes the Cluster resource, at the end.
func Cluster(in Inputs, after ...string) flow.Task {
	return flow.Do("cluster-gone", "Deleting the Cluster resource", func(ctx context.Context) error {
		cluster := &extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: in.Run.Namespace}}
		err := in.Run.SeedAPI.Get(ctx, client.ObjectKeyFromObject(cluster), cluster)
		if err == nil {
			err = confirmDeletion(ctx, in.Run.SeedAPI, cluster)
		}
		if err == nil {
			err = in.Run.SeedAPI.Delete(ctx, cluster)
		}
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete Cluster %q: %w", in.Run.Namespace, err)
		}
		return nil
	}, after...)
}

// confirmDeletion adds the annotation without which webhooks and controllers refuse the deletion of an object.
func confirmDeletion(ctx context.Context, c client.Client, obj client.Object) error {
	return kube.PatchMetadata(ctx, c, obj, func(o *metav1.PartialObjectMetadata) {
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, constants.ConfirmationDeletion, "true")
	})
}

// awaitNone waits until the namespace has no objects of a kind.
func awaitNone[T client.Object](ctx context.Context, run *stage.Run, kind string, list client.ObjectList) error {
	return kube.Await(ctx, run.SeedAPI, list, func(left []T) error {
		if len(left) > 0 {
			return fmt.Errorf("%s %q is not deleted yet", kind, left[0].GetName())
		}
		return nil
	}, nil, client.InNamespace(run.Namespace))
}
