package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/component/extensionobject"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/flow"
)

// forcedPatience is for how long extensions may work on what they have made for a shoot that is deleted by force. They hear that it is, so
// that the least they have to do is to let go.
const forcedPatience = 2 * time.Minute

// forced is whether a shoot is deleted although something of it is left elsewhere: its owner takes care of that.
func forced(shoot *corev1beta1.Shoot) bool {
	force, _ := strconv.ParseBool(shoot.Annotations[constants.ConfirmationForceDeletion]) // what is no answer is a no
	return force && shoot.DeletionTimestamp != nil
}

// forcedFlow composes what takes a control plane away without the help of the cluster itself, nor of extensions that do not work: whatever
// they do not let go of in time is let go of here.
func (r *reconciler) forcedFlow(w *world) (*flow.Flow, error) {
	h := &hosted{reconciler: r, world: w}
	var tasks []flow.Task
	if w.hasNamespace {
		abandon := func(id, title string, lists []client.ObjectList, after ...string) flow.Task {
			return lasting(2*forcedPatience, task(id, title, func(ctx context.Context) error { return h.abandon(ctx, lists...) }, after...))
		}
		tasks = append(tasks,
			task("cluster", "Telling extensions that the cluster is deleted by force", func(ctx context.Context) error { return h.syncCluster(ctx, h.world, h.shoot) }),
			abandon("worker-gone", "Waiting until the nodes are given up", []client.ObjectList{&extensionsv1alpha1.WorkerList{}}, "cluster"),
			abandon("extensions-gone", "Waiting until extensions have given up the cluster", []client.ObjectList{
				&extensionsv1alpha1.ContainerRuntimeList{}, &extensionsv1alpha1.ControlPlaneList{}, &extensionsv1alpha1.ExtensionList{},
				&extensionsv1alpha1.NetworkList{}, &extensionsv1alpha1.OperatingSystemConfigList{},
			}, "worker-gone"),
			abandon("infrastructure-gone", "Waiting until the infrastructure is given up", []client.ObjectList{&extensionsv1alpha1.InfrastructureList{}}, "extensions-gone"),
			abandon("dnsrecords-gone", "Waiting until the domains are given up", []client.ObjectList{&extensionsv1alpha1.DNSRecordList{}}, "cluster"),
			lasting(podsTimeout, task("managed-resources-gone", "Waiting until nothing is applied to the shoot any more", h.dropManagedResources, "infrastructure-gone")),
			task("kube-apiserver-gone", "Stopping the control plane", h.dropDeployments, "managed-resources-gone"),
			task("machines-gone", "Giving up machines", h.dropMachines, "kube-apiserver-gone"),
			lasting(podsTimeout, task("etcd-gone", "Waiting until etcd is gone", h.dropEtcds, "kube-apiserver-gone")),
		)
	}
	tasks = append(tasks, task("backup-entry-gone", "Letting go of backups", func(ctx context.Context) error {
		return h.dropBackup(ctx, h.world)
	}, last(tasks)...))
	if w.hasNamespace {
		tasks = append(tasks,
			task("finalizers", "Letting go of what nobody looks after any more", h.dropFinalizers, last(tasks)...),
			lasting(namespaceTimeout, task("namespace-gone", "Waiting until the namespace is gone", h.dropNamespace, "finalizers")),
		)
	}
	tasks = append(tasks,
		task("cluster-gone", "Telling extensions that the cluster is gone", h.dropCluster, last(tasks)...),
		task("unpublish", "Removing credentials from the garden", func(ctx context.Context) error {
			return errors.Join(h.unpublishAll(ctx, h.shoot), h.unpublishIssuer(ctx))
		}, last(tasks)...),
	)
	return compose("Shoot deletion by force", tasks)
}

// abandon deletes resources of extensions. Those that are still there after a while lose their finalizers.
func (h *hosted) abandon(ctx context.Context, lists ...client.ObjectList) error {
	var give []func(context.Context) error
	for _, list := range lists {
		if err := h.SeedClient.List(ctx, list, client.InNamespace(h.namespace)); err != nil {
			return fmt.Errorf("list %T: %w", list, err)
		}
		if err := meta.EachListItem(list, func(item runtime.Object) error {
			obj := item.(extensionsv1alpha1.Object) //nolint:forcetypeassert // the lists are of such
			give = append(give, func(ctx context.Context) error { return h.abandonOne(ctx, obj) })
			return nil
		}); err != nil {
			return err
		}
	}
	return flow.Parallel(ctx, give...)
}

func (h *hosted) abandonOne(ctx context.Context, obj extensionsv1alpha1.Object) error {
	if obj.GetDeletionTimestamp() == nil {
		if err := extensionobject.Delete(ctx, h.orders(true), obj); err != nil {
			return err
		}
	} else if err := kube.PatchMetadata(ctx, h.SeedClient, obj, func(o *metav1.PartialObjectMetadata) { // the deletion is another one now
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, constants.GardenerOperation, constants.GardenerOperationReconcile)
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, constants.GardenerTimestamp, h.Clock.Now().UTC().Format(time.RFC3339Nano))
	}); client.IgnoreNotFound(err) != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, forcedPatience)
	defer cancel()
	err := extensionobject.AwaitGone(waiting, h.orders(true), obj)
	if err == nil || ctx.Err() != nil {
		return err
	}
	logf.FromContext(ctx).Info("Giving up a resource that its extension does not let go of", "name", obj.GetName(), "reason", err.Error())
	return h.release(ctx, obj)
}

// release takes all finalizers off an object.
func (h *hosted) release(ctx context.Context, obj client.Object) error {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := h.SeedClient.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		return kube.PatchMetadata(ctx, h.SeedClient, obj, func(o *metav1.PartialObjectMetadata) { o.Finalizers = nil })
	})
	return client.IgnoreNotFound(err)
}

// dropMachines deletes what is known of machines. Nobody works on them any more.
func (h *hosted) dropMachines(ctx context.Context) error {
	for _, kind := range []string{"MachineDeployment", "MachineSet", "Machine", "MachineClass"} {
		if err := h.each(ctx, machinev1alpha1.SchemeGroupVersion.WithKind(kind), func(obj *metav1.PartialObjectMetadata) error {
			if err := h.SeedClient.Delete(ctx, obj); err != nil {
				return client.IgnoreNotFound(err)
			}
			return h.release(ctx, obj)
		}); err != nil {
			return err
		}
	}
	return nil
}

// dropFinalizers lets go of credentials and configuration that somebody has wanted to keep.
func (h *hosted) dropFinalizers(ctx context.Context) error {
	for _, kind := range []string{"Secret", "ConfigMap"} {
		if err := h.each(ctx, corev1.SchemeGroupVersion.WithKind(kind), func(obj *metav1.PartialObjectMetadata) error {
			if len(obj.Finalizers) == 0 {
				return nil
			}
			return h.release(ctx, obj)
		}); err != nil {
			return err
		}
	}
	return nil
}

// each does something with all objects of a kind in the namespace. Of a kind that the seed does not know there are none.
func (h *hosted) each(ctx context.Context, kind schema.GroupVersionKind, do func(*metav1.PartialObjectMetadata) error) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := h.SeedClient.List(ctx, list, client.InNamespace(h.namespace)); meta.IsNoMatchError(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("list kind %s: %w", kind.Kind, err)
	}
	var errs []error
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(kind)
		errs = append(errs, do(&list.Items[i]))
	}
	return errors.Join(errs...)
}
