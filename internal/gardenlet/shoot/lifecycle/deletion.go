package lifecycle

import (
	"context"
	"errors"
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
	"gardener.cloud/gardener/internal/component/extensionobject"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/flow"
)

// deletionFlow composes what takes a control plane away, with everything that it has made elsewhere.
func (r *reconciler) deletionFlow(w *world) (*flow.Flow, error) {
	h := &hosted{reconciler: r, world: w}
	var tasks []flow.Task
	if w.hasNamespace {
		if w.workerless() {
			tasks = append(tasks, h.introduction())
		} else {
			// Machines, disks and load balancers are made by what runs in the control plane, so it has to work until they are gone.
			tasks = slices.Concat(tasks, h.awake(), h.emptyShoot())
		}
		tasks = slices.Concat(tasks, h.undoExtensions(last(tasks)))
		tasks = append(tasks,
			lasting(podsTimeout, task("managed-resources-gone", "Waiting until nothing is applied to the shoot any more", h.dropManagedResources, last(tasks)...)),
			task("kube-apiserver-gone", "Stopping the control plane", h.dropDeployments, "managed-resources-gone"),
			lasting(podsTimeout, task("etcd-gone", "Waiting until etcd is gone", h.dropEtcds, "kube-apiserver-gone")),
		)
		tasks = slices.Concat(tasks, h.dropExtensions(corev1beta1.AfterKubeAPIServer, "kube-apiserver-gone"))
	}
	tasks = append(tasks, h.undoNames(last(tasks))...)
	tasks = append(tasks, task("backup-entry-gone", "Letting go of backups", func(ctx context.Context) error {
		return h.dropBackup(ctx, h.world)
	}, last(tasks)...))
	if w.hasNamespace {
		tasks = append(tasks, lasting(namespaceTimeout, task("namespace-gone", "Waiting until the namespace is gone", h.dropNamespace, last(tasks)...)))
	}
	tasks = append(tasks,
		task("cluster-gone", "Telling extensions that the cluster is gone", h.dropCluster, last(tasks)...),
		task("unpublish", "Removing credentials from the garden", func(ctx context.Context) error {
			return errors.Join(h.unpublishAll(ctx, h.shoot), h.unpublishIssuer(ctx))
		}, last(tasks)...),
	)
	return compose("Shoot deletion", tasks)
}

// awake are the tasks after which the API server of a shoot that is deleted works.
func (h *hosted) awake() []flow.Task {
	return slices.Concat(h.foundation(), h.storage(), h.apiServer(), h.controllers(), h.content())
}

// emptyShoot removes what users have made, as far as something outside of the cluster depends on it.
func (h *hosted) emptyShoot() []flow.Task {
	if skipsCleanup(h.shoot) {
		return nil
	}
	clean := lasting(extensionTimeout, task("clean-shoot", "Waiting until volumes and load balancers of the cluster are gone", h.cleanShoot,
		"kube-apiserver-ready", "kube-controller-manager"))
	if !h.hibernated() && !h.shoot.Status.Hibernated {
		return []flow.Task{clean}
	}
	clean.After = append(clean.After, "control-plane")
	wake := lasting(extensionTimeout, task("control-plane", "Waiting for the control plane of the infrastructure", h.wakeControlPlane,
		"cluster", "credentials", "resource-manager-ready"))
	wake.AfterIfPresent = []string{"cloudprovider"}
	return []flow.Task{wake, clean}
}

// wakeControlPlane has what an extension runs in the control plane run again, such as who deletes volumes: it rests while a cluster is
// hibernated. What was never made, or goes already, is left as it is.
func (h *hosted) wakeControlPlane(ctx context.Context) error {
	obj := h.controlPlaneObject()
	if err := h.SeedClient.Get(ctx, client.ObjectKeyFromObject(obj), obj); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read ControlPlane %q: %w", obj.Name, err)
	}
	if obj.UID == "" || obj.DeletionTimestamp != nil {
		return nil
	}
	if err := extensionobject.Order(ctx, h.orders(true), obj, func(*extensionsv1alpha1.ControlPlane) {}); err != nil {
		return err
	}
	return extensionobject.Await(ctx, h.orders(true), obj)
}

// dropExtensions deletes the Extensions that are registered to go at a point of the deletion.
func (h *hosted) dropExtensions(at corev1beta1.ControllerResourceLifecycleStrategy, after ...string) []flow.Task {
	var tasks []flow.Task
	for _, e := range slices.Concat(h.extensions, h.stale) {
		if e.remove == at {
			tasks = append(tasks, h.dropExtension(e, after...))
		}
	}
	return tasks
}

func (h *hosted) dropExtension(e extensionOrder, after ...string) flow.Task {
	return lasting(e.timeout(), task("extension-"+e.typ+"-gone", "Waiting until extension "+e.typ+" is gone", func(ctx context.Context) error {
		return undo(ctx, h, e.object(h.namespace))
	}, after...))
}

// undoExtensions deletes the resources of extensions, each after those that need it.
func (h *hosted) undoExtensions(after []string) []flow.Task {
	tasks := h.dropExtensions(corev1beta1.BeforeKubeAPIServer, after...)
	if h.workerless() {
		return append(tasks, h.dropExtensions(corev1beta1.AfterWorker, after...)...)
	}
	gone := func(id, title string, obj extensionsv1alpha1.Object, after ...string) flow.Task {
		return lasting(extensionTimeout, task(id, title, func(ctx context.Context) error { return undo(ctx, h, obj) }, after...))
	}
	worker := &extensionsv1alpha1.Worker{ObjectMeta: h.infrastructureObject().ObjectMeta}
	tasks = append(tasks, gone("worker-gone", "Waiting until the nodes are gone", worker, after...))
	tasks = append(tasks, h.dropExtensions(corev1beta1.AfterWorker, "worker-gone")...)
	tasks = append(tasks,
		lasting(extensionTimeout, task("operating-system-configs-gone", "Waiting until the configurations of nodes are gone", h.dropSystemConfigs, "worker-gone")),
		gone("network-gone", "Waiting until the network is gone", h.networkObject(), "worker-gone"),
		gone("control-plane-gone", "Waiting until the control plane of the infrastructure is gone", h.controlPlaneObject(), "worker-gone"),
	)
	return append(tasks, gone("infrastructure-gone", "Waiting until the infrastructure is gone", h.infrastructureObject(), last(tasks)...))
}

// undo deletes a resource of an extension, and waits until it is gone.
func undo(ctx context.Context, h *hosted, obj extensionsv1alpha1.Object) error {
	if err := extensionobject.Delete(ctx, h.orders(true), obj); err != nil {
		return err
	}
	return extensionobject.AwaitGone(ctx, h.orders(true), obj)
}

func (h *hosted) dropSystemConfigs(ctx context.Context) error {
	list := &extensionsv1alpha1.OperatingSystemConfigList{}
	if err := h.SeedClient.List(ctx, list, client.InNamespace(h.namespace)); err != nil {
		return fmt.Errorf("list OperatingSystemConfigs: %w", err)
	}
	drop := make([]func(context.Context) error, 0, len(list.Items))
	for i := range list.Items {
		drop = append(drop, func(ctx context.Context) error { return undo(ctx, h, &list.Items[i]) })
	}
	return flow.Parallel(ctx, drop...)
}

// undoNames deletes the records, after which nobody finds the API server any more.
func (h *hosted) undoNames(after []string) []flow.Task {
	tasks := make([]flow.Task, 0, 2)
	for _, name := range []string{extensionsv1alpha1.DNSRecordExternalName, extensionsv1alpha1.DNSRecordInternalName} {
		tasks = append(tasks, lasting(extensionTimeout, task("dnsrecord-"+name+"-gone", "Waiting until the "+name+" domain is gone", func(ctx context.Context) error {
			return undo(ctx, h, h.dnsRecord(name))
		}, after...)))
	}
	return tasks
}

// dropManagedResources lets go of what was applied to the shoot. It goes with the shoot, so nothing has to be deleted in there.
func (h *hosted) dropManagedResources(ctx context.Context) error {
	list := &resourcesv1alpha1.ManagedResourceList{}
	if err := h.SeedClient.List(ctx, list, client.InNamespace(h.namespace)); err != nil {
		return fmt.Errorf("list ManagedResources: %w", err)
	}
	for i := range list.Items {
		mr := &list.Items[i]
		if err := h.SeedClient.Delete(ctx, mr); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete ManagedResource %q: %w", mr.Name, err)
		}
		if deref(mr.Spec.Class) != "" {
			continue // what they have in the seed has to go
		}
		// Only now: on what is deleted already, the resource manager cannot put its finalizer back.
		if err := h.SeedClient.Get(ctx, client.ObjectKeyFromObject(mr), mr); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return fmt.Errorf("read ManagedResource %q: %w", mr.Name, err)
		}
		if err := kube.PatchMetadata(ctx, h.SeedClient, mr, func(o *metav1.PartialObjectMetadata) {
			o.Finalizers = slices.DeleteFunc(o.Finalizers, func(f string) bool { return strings.HasPrefix(f, resourcesv1alpha1.FinalizerName) })
		}); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return kube.Await(ctx, h.SeedClient, &resourcesv1alpha1.ManagedResourceList{}, func(left []*resourcesv1alpha1.ManagedResource) error {
		if len(left) > 0 {
			return fmt.Errorf("ManagedResource %q is still there", left[0].Name)
		}
		return nil
	}, nil, client.InNamespace(h.namespace))
}

// dropDeployments stops what runs, so that nobody misses etcd.
func (h *hosted) dropDeployments(ctx context.Context) error {
	return h.endPods(ctx, func(pod *corev1.Pod) bool {
		owner := metav1.GetControllerOf(pod)
		return owner == nil || owner.Kind != "StatefulSet"
	}, &appsv1.Deployment{}, &appsv1.ReplicaSet{})
}

// endPods deletes pods and what would replace them. Nobody is served any more, so nothing has to end with grace. What would replace the pods
// goes first, but not together with them: the garbage collector would give them all their grace.
func (h *hosted) endPods(ctx context.Context, chosen func(*corev1.Pod) bool, owners ...client.Object) error {
	for _, owner := range owners {
		err := h.SeedClient.DeleteAllOf(ctx, owner, client.InNamespace(h.namespace), client.PropagationPolicy(metav1.DeletePropagationOrphan))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete what replaces pods: %w", err)
		}
	}
	pods := &corev1.PodList{}
	if err := h.SeedClient.List(ctx, pods, client.InNamespace(h.namespace)); err != nil {
		return fmt.Errorf("list Pods: %w", err)
	}
	var end []func(context.Context) error
	for i := range pods.Items {
		if pod := &pods.Items[i]; chosen(pod) {
			end = append(end, func(ctx context.Context) error {
				if err := h.SeedClient.Delete(ctx, pod, client.GracePeriodSeconds(1)); client.IgnoreNotFound(err) != nil {
					return fmt.Errorf("delete Pod %q: %w", pod.Name, err)
				}
				return nil
			})
		}
	}
	return flow.Parallel(ctx, end...)
}

// dropEtcds has etcd-druid remove the clusters, and waits until they are gone: their volumes must not outlive them.
func (h *hosted) dropEtcds(ctx context.Context) error {
	list := &druidv1alpha1.EtcdList{}
	if err := h.SeedClient.List(ctx, list, client.InNamespace(h.namespace)); err != nil {
		return fmt.Errorf("list Etcds: %w", err)
	}
	for i := range list.Items {
		etcd := &list.Items[i]
		if err := kube.PatchMetadata(ctx, h.SeedClient, etcd, func(o *metav1.PartialObjectMetadata) {
			metav1.SetMetaDataAnnotation(&o.ObjectMeta, constants.ConfirmationDeletion, "true")
		}); client.IgnoreNotFound(err) != nil {
			return err
		}
		if err := h.SeedClient.Delete(ctx, etcd); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete Etcd %q: %w", etcd.Name, err)
		}
	}
	if err := kube.Await(ctx, h.SeedClient, &druidv1alpha1.EtcdList{}, func(left []*druidv1alpha1.Etcd) error {
		if len(left) > 0 {
			return fmt.Errorf("Etcd %q is still there", left[0].Name)
		}
		return nil
	}, nil, client.InNamespace(h.namespace)); err != nil {
		return err
	}
	return client.IgnoreNotFound(h.SeedClient.DeleteAllOf(ctx, &corev1.PersistentVolumeClaim{}, client.InNamespace(h.namespace)))
}

// namespaceTimeout is for how long a namespace without pods may take to go until the status tells what holds it. The next run goes on waiting.
const namespaceTimeout = 2 * time.Minute

// podsPatience is for how long pods may take that were told to end at once.
const podsPatience = 10 * time.Second

// dropPods ends what still runs. The namespace controller looks again only when it thinks that all pods have ended, so it is to find none.
func (h *hosted) dropPods(ctx context.Context) error {
	everything := func(*corev1.Pod) bool { return true }
	if err := h.endPods(ctx, everything, &appsv1.Deployment{}, &appsv1.ReplicaSet{}, &appsv1.StatefulSet{}); err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, podsPatience)
	defer cancel()
	err := kube.Await(waiting, h.SeedClient, &corev1.PodList{}, func(left []*corev1.Pod) error {
		if len(left) > 0 {
			return fmt.Errorf("Pod %q still runs", left[0].Name)
		}
		return nil
	}, nil, client.InNamespace(h.namespace))
	if err != nil {
		logf.FromContext(ctx).Info("Deleting namespace although pods are left in it", "reason", err.Error())
	}
	return ctx.Err()
}

// dropNamespace deletes the namespace and waits until it is gone. The error says what the namespace controller waits for.
func (h *hosted) dropNamespace(ctx context.Context) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}}
	err := h.SeedClient.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil && namespace.DeletionTimestamp == nil {
		if err := h.dropPods(ctx); err != nil {
			return err
		}
		err = kube.PatchMetadata(ctx, h.SeedClient, namespace, func(o *metav1.PartialObjectMetadata) {
			metav1.SetMetaDataAnnotation(&o.ObjectMeta, constants.ConfirmationDeletion, "true")
		})
		if err == nil {
			err = h.SeedClient.Delete(ctx, namespace)
		}
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete Namespace %q: %w", h.namespace, err)
	}
	return kube.Await(ctx, h.SeedClient, &corev1.NamespaceList{}, func(left []*corev1.Namespace) error {
		if len(left) == 0 {
			return nil
		}
		var reasons []string
		for _, condition := range left[0].Status.Conditions {
			if condition.Status == corev1.ConditionTrue {
				reasons = append(reasons, condition.Message)
			}
		}
		return fmt.Errorf("Namespace %q is still there: %s", h.namespace, strings.Join(reasons, "; "))
	}, nil, client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", h.namespace)})
}

func (h *hosted) dropCluster(ctx context.Context) error {
	cluster := &extensionsv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}}
	err := h.SeedClient.Get(ctx, client.ObjectKeyFromObject(cluster), cluster)
	if err == nil {
		err = kube.PatchMetadata(ctx, h.SeedClient, cluster, func(o *metav1.PartialObjectMetadata) {
			metav1.SetMetaDataAnnotation(&o.ObjectMeta, constants.ConfirmationDeletion, "true")
		})
	}
	if err == nil {
		err = h.SeedClient.Delete(ctx, cluster)
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete Cluster %q: %w", h.namespace, err)
	}
	return nil
}
