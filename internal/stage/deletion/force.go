package deletion

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/component/extensionobject"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/pkg/flow"
)

// ForceTimeout is for how long extensions may work on the deletion of what they have created for a shoot that is deleted by force. They
// know that it is, so that all they have to do is to remove their finalizers.
const ForceTimeout = 2 * time.Minute

// ForceTasks returns the tasks that delete a control plane without the help of the cluster itself, and of extensions that do not work:
// finalizers that they do not remove in time are removed here. The task cluster comes first.
func ForceTasks(in Inputs) []flow.Task {
	var tasks []flow.Task
	if in.HasNamespace {
		force := func(id, title string, lists []client.ObjectList, after ...string) flow.Task {
			return flow.Await(2*ForceTimeout, id, title, func(ctx context.Context) error { return in.forceDelete(ctx, lists...) }, after...)
		}
		tasks = append(tasks,
			force("worker-gone", "Deleting Worker", []client.ObjectList{&extensionsv1alpha1.WorkerList{}}, "cluster"),
			force("extensions-gone", "Deleting other extension resources", []client.ObjectList{
				&extensionsv1alpha1.BastionList{}, &extensionsv1alpha1.ContainerRuntimeList{}, &extensionsv1alpha1.ControlPlaneList{}, &extensionsv1alpha1.ExtensionList{},
				&extensionsv1alpha1.NetworkList{}, &extensionsv1alpha1.OperatingSystemConfigList{},
			}, "worker-gone"),
			force("infrastructure-gone", "Deleting Infrastructure", []client.ObjectList{&extensionsv1alpha1.InfrastructureList{}}, "extensions-gone"),
			force("dnsrecords-gone", "Deleting DNSRecords", []client.ObjectList{&extensionsv1alpha1.DNSRecordList{}}, "cluster"),
			in.managedResources("infrastructure-gone"),
			in.deployments("managed-resources-gone"),
			flow.Do("machines-gone", "Deleting machine resources", in.deleteMachines, "kube-apiserver-gone"),
			in.etcds("kube-apiserver-gone"),
		)
	}
	tasks = append(tasks, in.backupEntry(flow.Last(tasks)...))
	if in.HasNamespace {
		tasks = append(tasks,
			flow.Do("remaining-finalizers", "Removing finalizers of Secrets and ConfigMaps", in.removeFinalizers, flow.Last(tasks)...),
			in.namespace("remaining-finalizers"),
		)
	}
	return tasks
}

// forceDelete deletes resources of extensions. Those that still exist after a while lose their finalizers.
func (in Inputs) forceDelete(ctx context.Context, lists ...client.ObjectList) error {
	var deletions []func(context.Context) error
	for _, list := range lists {
		if err := in.Run.SeedAPI.List(ctx, list, client.InNamespace(in.Run.Namespace)); err != nil {
			return fmt.Errorf("list %T: %w", list, err)
		}
		if err := meta.EachListItem(list, func(item runtime.Object) error {
			obj := item.(extensionsv1alpha1.Object) //nolint:forcetypeassert // the lists are of such
			deletions = append(deletions, func(ctx context.Context) error { return in.forceDeleteOne(ctx, obj) })
			return nil
		}); err != nil {
			return err
		}
	}
	return flow.Parallel(ctx, deletions...)
}

func (in Inputs) forceDeleteOne(ctx context.Context, obj extensionsv1alpha1.Object) error {
	values := in.Run.ExtensionValues()
	values.Controller = nil // one that does not run has all the time to come back, as what it would have deleted is left behind
	if obj.GetDeletionTimestamp() == nil {
		if err := extensionobject.Delete(ctx, values, obj); err != nil {
			return err
		}
	} else if err := extensionobject.RequestDeletion(ctx, values, obj); err != nil { // it is deleted by force from now on
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, ForceTimeout)
	defer cancel()
	err := extensionobject.AwaitGone(waiting, values, obj)
	if err == nil || ctx.Err() != nil {
		return err
	}
	logf.FromContext(ctx).Info("Removing finalizers of a resource that its extension did not delete in time", "name", obj.GetName(), "reason", err.Error())
	return in.removeAllFinalizers(ctx, obj)
}

// removeAllFinalizers removes all finalizers of an object.
func (in Inputs) removeAllFinalizers(ctx context.Context, obj client.Object) error {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := in.Run.SeedAPI.Get(ctx, client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		return kube.PatchMetadata(ctx, in.Run.SeedAPI, obj, func(o *metav1.PartialObjectMetadata) { o.Finalizers = nil })
	})
	return client.IgnoreNotFound(err)
}

// deleteMachines deletes the resources of machines. No controller works on them any more.
func (in Inputs) deleteMachines(ctx context.Context) error {
	for _, kind := range []string{"MachineDeployment", "MachineSet", "Machine", "MachineClass"} {
		if err := each(ctx, in.Run, machinev1alpha1.SchemeGroupVersion.WithKind(kind), func(obj *metav1.PartialObjectMetadata) error {
			if err := in.Run.SeedAPI.Delete(ctx, obj); err != nil {
				return client.IgnoreNotFound(err)
			}
			return in.removeAllFinalizers(ctx, obj)
		}); err != nil {
			return err
		}
	}
	return nil
}

// removeFinalizers removes the finalizers of Secrets and ConfigMaps, which would keep the namespace from being deleted.
func (in Inputs) removeFinalizers(ctx context.Context) error {
	for _, kind := range []string{"Secret", "ConfigMap"} {
		if err := each(ctx, in.Run, corev1.SchemeGroupVersion.WithKind(kind), func(obj *metav1.PartialObjectMetadata) error {
			if len(obj.Finalizers) == 0 {
				return nil
			}
			return in.removeAllFinalizers(ctx, obj)
		}); err != nil {
			return err
		}
	}
	return nil
}

// each calls a function for all objects of a kind in the namespace. There are none of a kind that the seed does not serve.
func each(ctx context.Context, run *stage.Run, kind schema.GroupVersionKind, do func(*metav1.PartialObjectMetadata) error) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := run.SeedAPI.List(ctx, list, client.InNamespace(run.Namespace)); meta.IsNoMatchError(err) {
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
