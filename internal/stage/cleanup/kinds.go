package cleanup

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/pkg/errorcode"
)

// automanaged is the label of APIServices that the kube-apiserver creates for the APIs which it serves itself.
const automanaged = "kube-aggregator.kubernetes.io/automanaged"

const (
	// pageSize is how many objects are read at a time: users decide how many there are, and how large.
	pageSize = 100
	// maxPages is how many pages are read at most. A million objects are more than a shoot can have: a program of users may respond for its API server.
	maxPages = 10_000
	// deletionsTimeout is the end of the deletions of one kind, and requestTimeout that of one of them. Webhooks that users create again and
	// again can make each take long, while other shoots wait for the worker. The next pass goes on.
	deletionsTimeout, requestTimeout = 3 * time.Minute, 10 * time.Second
)

// kind is a kind of objects in the shoot, and what of it is deleted. Objects that are part of Gardener are never deleted.
type kind struct {
	gvk schema.GroupVersionKind
	// list is for the objects. Without it, only their metadata are read.
	list client.ObjectList
	// chosen is whether an object of users is deleted. Nil means that each is.
	chosen func(client.Object) bool
	// awaited is whether an object is waited for that is deleted. Nil means that each is, also one that is created meanwhile.
	awaited func(client.Object) bool
	// period is for how long objects may keep their finalizers. It begins with the deletion of an object. Zero means forever.
	period time.Duration
}

// webhooks are the kinds that could refuse the deletion of other objects.
func (in Inputs) webhooks() []kind {
	var kinds []kind
	for _, name := range []string{
		"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy",
	} {
		kinds = append(kinds, kind{gvk: admissionregistrationv1.SchemeGroupVersion.WithKind(name), awaited: held, period: in.Periods.Webhooks})
	}
	return kinds
}

// extendedAPIs are the kinds that extend the API. With a CustomResourceDefinition, all its resources are deleted.
func (in Inputs) extendedAPIs() []kind {
	return []kind{
		{gvk: apiregistrationv1.SchemeGroupVersion.WithKind("APIService"), chosen: notAutomanaged, awaited: held, period: in.Periods.ExtendedAPIs},
		{gvk: apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"), awaited: held, period: in.Periods.ExtendedAPIs},
	}
}

// resources are workloads and the kinds that may have something in the infrastructure. Workloads are first: a volume is kept as long as a
// pod uses it, and a StatefulSet would create a new claim.
func (in Inputs) resources() []kind {
	chosen := uncontrolled
	if in.OnlyInfrastructure {
		chosen = func(object client.Object) bool { return uncontrolled(object) && usesClaim(object) }
	}
	var kinds []kind
	for _, workload := range []struct {
		gvk  schema.GroupVersionKind
		list client.ObjectList
	}{
		{batchv1.SchemeGroupVersion.WithKind("CronJob"), &batchv1.CronJobList{}},
		{appsv1.SchemeGroupVersion.WithKind("Deployment"), &appsv1.DeploymentList{}},
		{appsv1.SchemeGroupVersion.WithKind("StatefulSet"), &appsv1.StatefulSetList{}},
		{appsv1.SchemeGroupVersion.WithKind("DaemonSet"), &appsv1.DaemonSetList{}},
		{appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), &appsv1.ReplicaSetList{}},
		{corev1.SchemeGroupVersion.WithKind("ReplicationController"), &corev1.ReplicationControllerList{}},
		{batchv1.SchemeGroupVersion.WithKind("Job"), &batchv1.JobList{}},
		{corev1.SchemeGroupVersion.WithKind("Pod"), &corev1.PodList{}},
	} {
		kinds = append(kinds, kind{gvk: workload.gvk, list: workload.list, chosen: chosen, awaited: held, period: in.Periods.Resources})
	}
	service := kind{
		gvk: corev1.SchemeGroupVersion.WithKind("Service"), list: &corev1.ServiceList{}, chosen: notOfAPIServer, awaited: hasLoadBalancer,
		period: in.Periods.Resources,
	}
	if in.OnlyInfrastructure {
		service.chosen = hasLoadBalancer
	} else {
		kinds = append(kinds, kind{gvk: networkingv1.SchemeGroupVersion.WithKind("Ingress"), awaited: held, period: in.Periods.Resources})
	}
	return append(kinds, service,
		kind{gvk: corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), period: in.Periods.Resources},
		kind{gvk: corev1.SchemeGroupVersion.WithKind("PersistentVolume"), period: in.Periods.Volumes},
	)
}

// groupSnapshots are the API versions of snapshots of several volumes. Which of them a shoot serves is up to its CustomResourceDefinitions;
// those of two versions are the same objects.
var groupSnapshots = []string{"v1", "v1beta2", "v1beta1", "v1alpha1"}

// snapshots are the kinds of the snapshots of volumes. A shoot may not have them. A VolumeGroupSnapshot owns VolumeSnapshots, and its driver
// deletes these.
func (in Inputs) snapshots() []kind {
	var kinds []kind
	add := func(group, version string, names ...string) {
		for _, name := range names {
			kinds = append(kinds, kind{gvk: schema.GroupVersionKind{Group: group, Version: version, Kind: name}, period: in.Periods.Snapshots})
		}
	}
	for _, version := range groupSnapshots {
		add("groupsnapshot.storage.k8s.io", version, "VolumeGroupSnapshot", "VolumeGroupSnapshotContent")
	}
	add("snapshot.storage.k8s.io", "v1", "VolumeSnapshot", "VolumeSnapshotContent")
	return kinds
}

// newObject returns an empty object of the kind.
func (k kind) newObject(scheme *runtime.Scheme) (client.Object, error) {
	if k.list == nil {
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(k.gvk)
		return object, nil
	}
	object, err := scheme.New(k.gvk)
	if err != nil {
		return nil, err
	}
	return object.(client.Object), nil //nolint:forcetypeassert // the kinds above are objects
}

// newList returns an empty list of the kind.
func (k kind) newList() client.ObjectList {
	if k.list != nil {
		return k.list.DeepCopyObject().(client.ObjectList) //nolint:forcetypeassert // a copy has its original's type
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(k.gvk.GroupVersion().WithKind(k.gvk.Kind + "List"))
	return list
}

// each calls a function with each object that has to be deleted, or is being deleted. It reads a page of them at a time, and returns
// whether the cluster serves the kind.
func (k kind) each(ctx context.Context, shootClient client.Client, do func(client.Object) error) (served bool, err error) {
	list := k.newList()
	next := ""
	for range maxPages {
		if err := shootClient.List(ctx, list, client.Limit(pageSize), client.Continue(next)); meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return false, nil
		} else if err != nil {
			return false, fmt.Errorf("list %s in the shoot: %w", k.gvk.Kind, err)
		}
		if err := meta.EachListItem(list, func(item runtime.Object) error {
			if object := item.(client.Object); k.includes(object) { //nolint:forcetypeassert // lists have nothing else
				return do(object)
			}
			return nil
		}); err != nil {
			return true, err
		}
		if next = list.GetContinue(); next == "" {
			return true, nil
		}
		if meta.LenList(list) == 0 {
			break
		}
	}
	return true, errorcode.With(fmt.Errorf("list %s in the shoot: the list has no end", k.gvk.Kind), corev1beta1.ErrorCleanupClusterResources)
}

// includes is whether an object has to be deleted.
func (k kind) includes(object client.Object) bool {
	return usersOwn(object) && (k.chosen == nil || k.chosen(object))
}

// delete deletes the objects, and returns whether there may be some to wait for.
func (k kind) delete(ctx context.Context, shootClient client.Client) (wait bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, deletionsTimeout)
	defer cancel()
	some := false
	served, err := k.each(ctx, shootClient, func(object client.Object) error {
		some = true
		if object.GetDeletionTimestamp() != nil {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		// Objects that it owns are deleted, too, which is not the default of all kinds.
		err := shootClient.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground))
		switch {
		case client.IgnoreNotFound(err) == nil:
			return nil
		case ctx.Err() != nil:
			return errorcode.With(fmt.Errorf("delete %s %q in the shoot: the kube-apiserver did not respond within %s; webhooks may be slow: %w", k.gvk.Kind, nameOf(object), requestTimeout, err),
				corev1beta1.ErrorCleanupClusterResources)
		}
		return fmt.Errorf("delete %s %q in the shoot: %w", k.gvk.Kind, nameOf(object), err)
	})
	if err != nil {
		return false, err
	}
	return served && (k.awaited == nil || some), nil
}

// gone returns an error that names the objects which are left, or nil.
func (k kind) gone(objects []client.Object) error {
	var left []string
	for _, object := range objects {
		if k.includes(object) && (k.awaited == nil || k.awaited(object)) {
			left = append(left, nameOf(object))
		}
	}
	if len(left) == 0 {
		return nil
	}
	slices.Sort(left)
	return errorcode.With(fmt.Errorf("%d objects of kind %s are not deleted yet in the shoot: %s", len(left), k.gvk.Kind, strings.Join(left[:min(len(left), stage.Named)], ", ")),
		corev1beta1.ErrorCleanupClusterResources)
}

// nameOf returns the name of an object, with its namespace if it has one.
func nameOf(object client.Object) string {
	return strings.TrimPrefix(client.ObjectKeyFromObject(object).String(), "/")
}

// usersOwn is whether an object is no part of Gardener.
func usersOwn(object client.Object) bool {
	labels := object.GetLabels()
	return labels[constants.ShootNoCleanup] != "true" && labels[resourcesv1alpha1.ManagedBy] != resourcesv1alpha1.GardenerManager
}

// uncontrolled is whether an object has no controller. Others are deleted with their controller, which may be a system component.
func uncontrolled(object client.Object) bool { return metav1.GetControllerOfNoCopy(object) == nil }

// held is whether finalizers keep an object that is being deleted. An object without them was deleted at once, and controllers of users that
// create it again do not keep the shoot from being deleted.
func held(object client.Object) bool {
	return object.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) > 0
}

// notAutomanaged is whether an APIService is not one of those that the kube-apiserver creates for the APIs which it serves itself.
func notAutomanaged(object client.Object) bool { return object.GetLabels()[automanaged] == "" }

// notOfAPIServer is whether a Service is not the one that the kube-apiserver creates again at once.
func notOfAPIServer(object client.Object) bool {
	return object.GetNamespace() != metav1.NamespaceDefault || object.GetName() != "kubernetes"
}

// hasLoadBalancer is whether a Service has a load balancer, or had one that may not be deleted yet.
func hasLoadBalancer(object client.Object) bool {
	service, ok := object.(*corev1.Service)
	return ok && (service.Spec.Type == corev1.ServiceTypeLoadBalancer || len(service.Finalizers) > 0)
}

// usesClaim is whether pods of a workload use PersistentVolumeClaims, which are kept as long as the pods exist.
func usesClaim(object client.Object) bool {
	var spec corev1.PodSpec
	switch o := object.(type) {
	case *batchv1.CronJob:
		spec = o.Spec.JobTemplate.Spec.Template.Spec
	case *appsv1.Deployment:
		spec = o.Spec.Template.Spec
	case *appsv1.StatefulSet:
		if len(o.Spec.VolumeClaimTemplates) > 0 {
			return true
		}
		spec = o.Spec.Template.Spec
	case *appsv1.DaemonSet:
		spec = o.Spec.Template.Spec
	case *appsv1.ReplicaSet:
		spec = o.Spec.Template.Spec
	case *corev1.ReplicationController:
		if o.Spec.Template != nil {
			spec = o.Spec.Template.Spec
		}
	case *batchv1.Job:
		spec = o.Spec.Template.Spec
	case *corev1.Pod:
		spec = o.Spec
	}
	return slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil || v.Ephemeral != nil })
}
