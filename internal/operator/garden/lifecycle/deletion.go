package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/etcd"
	"gardener.cloud/gardener/internal/component/gardenerapiserver"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/component/kubecontrollermanager"
	"gardener.cloud/gardener/internal/component/resourcemanager"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/operator/extension/requiredvirtual"
	"gardener.cloud/gardener/internal/operator/garden/values"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/internal/stage/controlplane"
	"gardener.cloud/gardener/internal/stage/extension"
	"gardener.cloud/gardener/internal/stage/systemcomponents"
	"gardener.cloud/gardener/pkg/flow"
	"gardener.cloud/gardener/pkg/secrets"
)

// deletionFlow deletes what the other flows have deployed. The volumes of etcd stay, as only operators can know that the data is not needed any more. So do CRDs, which
// other components may use.
func (s *state) deletionFlow() (*flow.Flow, error) {
	var tasks []flow.Task
	var early, late []string
	for _, e := range s.stale {
		task := extension.Deletion(s.run, e)
		tasks = append(tasks, task)
		if e.Delete == corev1beta1.BeforeKubeAPIServer {
			early = append(early, task.ID)
		} else {
			late = append(late, task.ID)
		}
	}
	tasks = append(tasks,
		// Those of extensions are deleted by their controller, with the help of gardener-controller-manager.
		flow.Await(stage.ExtensionTimeout, "extensions-unregistered", "Waiting until extensions are not registered any more", s.awaitOnlyOwn),
		flow.Await(stage.PodsTimeout, "gardener-gone", "Deleting the components of Gardener", s.deleteGardener, append([]string{"extensions-unregistered"}, early...)...),
		flow.Await(stage.PodsTimeout, "virtual-resources-gone", "Deleting ManagedResources of the virtual cluster", s.deleteVirtualResources, "gardener-gone"),
		flow.Await(stage.PodsTimeout, "control-plane-gone", "Deleting the control plane of the virtual cluster", s.deleteControlPlane, "virtual-resources-gone"),
		flow.Do("extensions-not-required", "Reporting that seeds require no Extension any more", func(ctx context.Context) error {
			return requiredvirtual.WriteGardenDeleted(ctx, s.RuntimeAPI, s.Clock)
		}, "control-plane-gone"),
		flow.Await(stage.PodsTimeout, "etcd-gone", "Deleting etcd", s.deleteEtcds, "control-plane-gone"),
		flow.Await(stage.ExtensionTimeout, "dnsrecords-gone", "Deleting DNSRecords", func(ctx context.Context) error { return s.deleteRecords(ctx, nil) }, "control-plane-gone"),
		flow.Await(stage.ExtensionTimeout, "backup-gone", "Deleting the BackupEntry and the BackupBucket", s.deleteBackup, "etcd-gone"),
		// The runtime part of extensions goes when nothing of class garden needs it.
		flow.Await(stage.ExtensionTimeout, "runtime-resources-gone", "Waiting until no ManagedResource of the runtime cluster is left", s.awaitNoRuntimeResources,
			append([]string{"dnsrecords-gone", "backup-gone"}, late...)...),
	)
	tasks = append(tasks, systemcomponents.Deletion(s.systemComponents(), "runtime-resources-gone")...)
	tasks = append(tasks, flow.Do("credentials-gone", "Deleting credentials", s.deleteCredentials, flow.Last(tasks)...))
	return flow.New("Garden deletion", s.guarded(tasks)...)
}

// own is whether a ManagedResource of the virtual cluster is one that this controller has written, besides those of components.
func own(name string) bool {
	return slices.Contains([]string{
		rbacResource, values.AccessResource, values.KubeControllerManagerResource, controlplane.ResourceManagerResource, virtualResource(gardenerapiserver.Name),
	}, name)
}

// awaitManagedResources waits until check accepts each ManagedResource that exists. Without the CRD there are none.
func (s *state) awaitManagedResources(ctx context.Context, check func(*resourcesv1alpha1.ManagedResource) error) error {
	// A watch of a kind that is not served would never begin.
	if err := s.RuntimeAPI.List(ctx, &resourcesv1alpha1.ManagedResourceList{}, client.InNamespace(constants.GardenNamespace), client.Limit(1)); meta.IsNoMatchError(err) {
		return nil
	}
	return kube.Await(ctx, s.RuntimeAPI, &resourcesv1alpha1.ManagedResourceList{}, func(found []*resourcesv1alpha1.ManagedResource) error {
		for _, mr := range found {
			if err := check(mr); err != nil {
				return err
			}
		}
		return nil
	}, nil, client.InNamespace(constants.GardenNamespace))
}

// awaitOnlyOwn waits until the virtual cluster has only ManagedResources of this controller: those of extensions and of users need what this flow deletes.
func (s *state) awaitOnlyOwn(ctx context.Context) error {
	component := func(name string) bool {
		return slices.ContainsFunc(s.components(), func(c component) bool { return name == virtualResource(c.name) })
	}
	return s.awaitManagedResources(ctx, func(mr *resourcesv1alpha1.ManagedResource) error {
		if ptr.Deref(mr.Spec.Class, "") == "" && !own(mr.Name) && !component(mr.Name) {
			return fmt.Errorf("ManagedResource %q still exists: delete it, or wait until its controller does", mr.Name)
		}
		return nil
	})
}

// deleteGardener deletes the components of Gardener: first the webhooks and what the others do in the virtual cluster, then the pods, and gardener-apiserver,
// which all of them need, at the end.
func (s *state) deleteGardener(ctx context.Context) error {
	var inVirtual, inRuntime []string
	for _, c := range s.components() {
		inVirtual, inRuntime = append(inVirtual, virtualResource(c.name)), append(inRuntime, runtimeResource(c.name))
	}
	for _, names := range [][]string{inVirtual, inRuntime, {virtualResource(gardenerapiserver.Name)}, {runtimeResource(gardenerapiserver.Name)}} {
		if err := s.deleteManaged(ctx, names...); err != nil {
			return err
		}
	}
	return nil
}

// deleteManaged deletes ManagedResources, and waits until they are gone with their objects.
func (s *state) deleteManaged(ctx context.Context, names ...string) error {
	for _, name := range names {
		if err := s.run.DeleteManaged(ctx, name); err != nil && !meta.IsNoMatchError(err) {
			return err
		}
	}
	return s.awaitManagedResources(ctx, func(mr *resourcesv1alpha1.ManagedResource) error {
		if slices.Contains(names, mr.Name) {
			return fmt.Errorf("ManagedResource %q is not deleted yet%s", mr.Name, because(mr))
		}
		return nil
	})
}

// because is what the resource manager says of a deletion.
func because(mr *resourcesv1alpha1.ManagedResource) string {
	if c := kube.Condition(mr.Status.Conditions, resourcesv1alpha1.ResourcesApplied); c != nil && c.Status != corev1beta1.ConditionTrue && c.Message != "" {
		return ": " + c.Message
	}
	return ""
}

// deleteVirtualResources deletes the ManagedResources that are left for the virtual cluster. Their objects are deleted with it.
func (s *state) deleteVirtualResources(ctx context.Context) error {
	list := &resourcesv1alpha1.ManagedResourceList{}
	if err := s.RuntimeAPI.List(ctx, list, client.InNamespace(constants.GardenNamespace)); meta.IsNoMatchError(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("list ManagedResources: %w", err)
	}
	for i := range list.Items {
		mr := &list.Items[i]
		if ptr.Deref(mr.Spec.Class, "") != "" {
			continue
		}
		if err := s.RuntimeAPI.Delete(ctx, mr); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete ManagedResource %q: %w", mr.Name, err)
		}
		// Only now: the resource manager cannot add its finalizer again to an object that is deleted.
		if err := s.RuntimeAPI.Get(ctx, client.ObjectKeyFromObject(mr), mr); apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return fmt.Errorf("read ManagedResource %q: %w", mr.Name, err)
		}
		if err := kube.PatchMetadata(ctx, s.RuntimeAPI, mr, func(o *metav1.PartialObjectMetadata) {
			o.Finalizers = slices.DeleteFunc(o.Finalizers, func(f string) bool { return strings.HasPrefix(f, resourcesv1alpha1.FinalizerName) })
		}); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// deleteControlPlane deletes the routes and the components of the control plane, and waits until their pods have terminated: etcd has no clients then.
func (s *state) deleteControlPlane(ctx context.Context) error {
	for _, object := range s.exposure() {
		if err := s.RuntimeAPI.Delete(ctx, object); client.IgnoreNotFound(err) != nil && !meta.IsNoMatchError(err) {
			return fmt.Errorf("delete %T %q: %w", object, object.GetName(), err)
		}
	}
	for _, labels := range []map[string]string{
		{"app": s.run.Of.Name(resourcemanager.Name)}, kubecontrollermanager.Labels(), kubeapiserver.Labels(),
	} {
		if err := s.deleteLabelled(ctx, labels,
			appsv1.SchemeGroupVersion.WithKind("Deployment"), policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"),
			corev1.SchemeGroupVersion.WithKind("Service"), corev1.SchemeGroupVersion.WithKind("ServiceAccount"), corev1.SchemeGroupVersion.WithKind("ConfigMap"),
			autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler"), rbacv1.SchemeGroupVersion.WithKind("RoleBinding"), rbacv1.SchemeGroupVersion.WithKind("Role"),
		); err != nil {
			return err
		}
		if err := kube.Await(ctx, s.RuntimeAPI, &corev1.PodList{}, func(pods []*corev1.Pod) error {
			if len(pods) > 0 {
				return fmt.Errorf("Pod %q has not terminated yet", pods[0].Name)
			}
			return nil
		}, nil, client.InNamespace(constants.GardenNamespace), client.MatchingLabels(labels)); err != nil {
			return err
		}
	}
	return nil
}

// deleteLabelled deletes the objects of kinds with labels, one by one: the process may not delete collections.
func (s *state) deleteLabelled(ctx context.Context, labels client.MatchingLabels, kinds ...schema.GroupVersionKind) error {
	for _, kind := range kinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := s.RuntimeAPI.List(ctx, list, client.InNamespace(constants.GardenNamespace), labels); err != nil {
			return fmt.Errorf("list objects of kind %s: %w", kind.Kind, err)
		}
		for i := range list.Items {
			object := &list.Items[i]
			object.SetGroupVersionKind(kind)
			if err := s.RuntimeAPI.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("delete %s %q: %w", kind.Kind, object.Name, err)
			}
		}
	}
	return nil
}

// deleteEtcds deletes the Etcds of the garden.
func (s *state) deleteEtcds(ctx context.Context) error {
	names := []string{etcd.Name(s.run.Of, etcd.Main), etcd.Name(s.run.Of, etcd.Events)}
	for _, name := range names {
		e := &druidv1alpha1.Etcd{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: name}}
		if err := s.RuntimeAPI.Get(ctx, client.ObjectKeyFromObject(e), e); meta.IsNoMatchError(err) {
			return nil
		} else if apierrors.IsNotFound(err) {
			continue
		} else if err != nil {
			return fmt.Errorf("read Etcd %q: %w", name, err)
		}
		if err := kube.PatchMetadata(ctx, s.RuntimeAPI, e, func(o *metav1.PartialObjectMetadata) {
			metav1.SetMetaDataAnnotation(&o.ObjectMeta, constants.ConfirmationDeletion, "true")
		}); client.IgnoreNotFound(err) != nil {
			return err
		}
		if err := s.RuntimeAPI.Delete(ctx, e); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete Etcd %q: %w", name, err)
		}
	}
	return kube.Await(ctx, s.RuntimeAPI, &druidv1alpha1.EtcdList{}, func(left []*druidv1alpha1.Etcd) error {
		for _, e := range left {
			if slices.Contains(names, e.Name) {
				return fmt.Errorf("Etcd %q is not deleted yet", e.Name)
			}
		}
		return nil
	}, nil, client.InNamespace(constants.GardenNamespace))
}

// deleteBackup deletes the BackupEntry, and then the BackupBucket.
func (s *state) deleteBackup(ctx context.Context) error {
	if s.source.Backup() == nil {
		return nil
	}
	for _, obj := range []extensionsv1alpha1.Object{s.entry(), s.bucket()} {
		if err := s.run.DeleteExtension(ctx, obj); err != nil && !meta.IsNoMatchError(err) { // a deletion may come before the CRDs
			return err
		}
	}
	return nil
}

// awaitNoRuntimeResources waits until nothing is left that the resource manager of the runtime cluster has applied.
func (s *state) awaitNoRuntimeResources(ctx context.Context) error {
	return s.awaitManagedResources(ctx, func(mr *resourcesv1alpha1.ManagedResource) error {
		if ptr.Deref(mr.Spec.Class, "") == resourcemanager.ClassSeed {
			return fmt.Errorf("ManagedResource %q still exists%s", mr.Name, because(mr))
		}
		return nil
	})
}

// deleteCredentials deletes the Secrets and ConfigMaps that the flows have created: credentials, tokens, and configuration that no garbage collector deletes
// any more.
func (s *state) deleteCredentials(ctx context.Context) error {
	for _, labels := range []client.MatchingLabels{
		{secrets.LabelKeyManagedBy: secrets.LabelValueSecretsManager, secrets.LabelKeyManagerIdentity: operatorv1alpha1.SecretManagerIdentityOperator},
		{resourcesv1alpha1.ResourceManagerPurpose: resourcesv1alpha1.LabelPurposeTokenRequest, resourcesv1alpha1.ResourceManagerClass: resourcesv1alpha1.ResourceManagerClassShoot},
		{resourcesv1alpha1.GarbageCollectable: "true"},
	} {
		if err := s.deleteLabelled(ctx, labels, corev1.SchemeGroupVersion.WithKind("Secret"), corev1.SchemeGroupVersion.WithKind("ConfigMap")); err != nil {
			return err
		}
	}
	return nil
}
