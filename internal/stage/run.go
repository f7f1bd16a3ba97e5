// Package stage has what all stages share: what a run of a flow works with, and the waits of its tasks. A stage is a package below this
// one with the tasks for one part of a cluster. Source: docs/flows.md.
package stage

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/extensionobject"
	"gardener.cloud/gardener/internal/component/instance"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/managedresource"
)

const (
	// PodsTimeout is the end of a wait for pods. An image that is pulled for the first time takes a minute.
	PodsTimeout = 5 * time.Minute
	// ExtensionTimeout is the end of a wait for an extension. Infrastructures take minutes.
	ExtensionTimeout = 10 * time.Minute
	// Named is how many objects an error names, of those that it is about.
	Named = 10
)

// BeforeExtensions are the tasks that each resource of an extension comes after, in flows that have them. Extensions read what these write: the name
// of the generic kubeconfig in the Cluster resource, credentials of the infrastructure, and copies of referenced resources.
var BeforeExtensions = []string{"generic-kubeconfig", "cloudprovider", "cloudprovider-token", "references"}

// BeforeWebhooks are the tasks that parts of the control plane come after, in flows that have them, which webhooks of extensions change: these read the
// same. They need no token of a WorkloadIdentity, which takes a request to the garden.
var BeforeWebhooks = []string{"generic-kubeconfig", "cloudprovider", "references"}

// Run is what the tasks of all stages work with in one run of a flow.
type Run struct {
	// SeedAPI is the cluster with the control plane. Its reads are fresh: tasks read what others of the run have just written.
	SeedAPI client.WithWatch
	// GardenCache reads from the cache of the garden and writes to its API. GardenAPI reads from the API.
	GardenCache client.Client
	GardenAPI   client.WithWatch
	// Of is the kind of cluster that the control plane is for.
	Of instance.Kind
	// Namespace is that of the control plane, and Name that of the Shoot, which extension resources have, too.
	Namespace, Name string
	// FieldManager is the one of server-side apply.
	FieldManager string
	// Autoscalers returns the VerticalPodAutoscalers that go with objects of the control plane. Nil means none.
	Autoscalers func(objects []client.Object) []client.Object
	// SystemAutoscalers returns the VerticalPodAutoscalers that go with objects in the cluster itself. Nil means none.
	SystemAutoscalers func(objects []client.Object) []client.Object
	// Target is the cluster itself, which the control plane is for.
	Target *Target
	// SkipReadiness is whether extensions are not waited for whose results no other task needs.
	SkipReadiness bool
	// Restore returns the states of resources of extensions, in a run that restores a control plane from another seed. Nil means that it does not.
	Restore func(ctx context.Context, kind, name string) (extensionobject.State, error)
	// Controller returns the ControllerInstallation that is responsible for resources of extensions, see extensionobject.Values. It may be nil.
	Controller func(ctx context.Context, kind, typ string) (*corev1beta1.ControllerInstallation, error)
	// Protected is whether the dependency-watchdog probes the cluster: what it has scaled down stays so. Otherwise nothing would scale it up again.
	Protected bool
	// Clock tells the time.
	Clock clock.PassiveClock
}

// Apply writes objects in the seed, together with their autoscalers.
func (r *Run) Apply(ctx context.Context, objects ...client.Object) error {
	if r.Autoscalers != nil {
		objects = slices.Concat(objects, r.Autoscalers(objects))
	}
	for _, object := range objects {
		var err error
		if deployment, ok := object.(*appsv1.Deployment); ok {
			err = kube.ApplyDeployment(ctx, r.SeedAPI, r.FieldManager, deployment)
		} else {
			err = kube.Apply(ctx, r.SeedAPI, r.FieldManager, object)
		}
		if err != nil {
			return r.Advise(ctx, err)
		}
	}
	return nil
}

// Delete deletes objects in the seed, together with their autoscalers.
func (r *Run) Delete(ctx context.Context, objects ...client.Object) error {
	if r.Autoscalers != nil {
		objects = slices.Concat(objects, r.Autoscalers(objects))
	}
	for _, object := range objects {
		if err := r.SeedAPI.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %T %q: %w", object, object.GetName(), err)
		}
	}
	return nil
}

// ApplyManaged writes a ManagedResource with objects for the cluster, together with their autoscalers.
func (r *Run) ApplyManaged(ctx context.Context, name string, objects ...client.Object) error {
	if r.SystemAutoscalers != nil {
		objects = slices.Concat(objects, r.SystemAutoscalers(objects))
	}
	packed, err := managedresource.Objects(r.SeedAPI.Scheme(), managedresource.Values{
		Namespace: r.Namespace, Name: name, InjectLabels: map[string]string{constants.ShootNoCleanup: "true"},
	}, objects...)
	if err != nil {
		return err
	}
	return r.Apply(ctx, packed...)
}

// DeleteManaged deletes a ManagedResource. gardener-resource-manager then deletes its objects in the cluster.
func (r *Run) DeleteManaged(ctx context.Context, name string) error {
	mr := &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: name}}
	if err := r.SeedAPI.Delete(ctx, mr); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete ManagedResource %q: %w", name, err)
	}
	return nil
}

// ManagedApplied waits until the objects of a ManagedResource are applied to the cluster.
func (r *Run) ManagedApplied(ctx context.Context, name string) error {
	return AwaitOne(ctx, r.SeedAPI, r.Namespace, name, &resourcesv1alpha1.ManagedResourceList{}, managedresource.Applied)
}

// DeploymentReady waits until all pods of a Deployment are updated and available.
func (r *Run) DeploymentReady(ctx context.Context, name string) error {
	return AwaitOne(ctx, r.SeedAPI, r.Namespace, name, &appsv1.DeploymentList{}, kube.DeploymentComplete)
}

// ProtectedReplicas returns how many pods a Deployment has, which may not exist yet: the desired number, or those that it has while the dependency-watchdog
// has scaled it down, as the kube-apiserver cannot be reached from the nodes.
func (r *Run) ProtectedReplicas(ctx context.Context, name string, desired int32) (int32, error) {
	if !r.Protected {
		return desired, nil
	}
	existing := &appsv1.Deployment{}
	if err := r.SeedAPI.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name}, existing); client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("read Deployment %q: %w", name, err)
	}
	if _, ok := existing.Annotations[constants.DependencyWatchdogMeltdownProtectionActive]; ok {
		return min(desired, ptr.Deref(existing.Spec.Replicas, desired)), nil
	}
	return desired, nil
}

// OldPodsGone waits until the pods have terminated that a Deployment, which is ready, has replaced: they go on for a while.
func (r *Run) OldPodsGone(ctx context.Context, labels map[string]string) error {
	return kube.Await(ctx, r.SeedAPI, &corev1.PodList{}, func(pods []*corev1.Pod) error {
		for _, pod := range pods {
			if pod.DeletionTimestamp != nil {
				return fmt.Errorf("Pod %q has not terminated yet", pod.Name)
			}
		}
		return nil
	}, nil, client.InNamespace(r.Namespace), client.MatchingLabels(labels))
}

// PodsGone waits until there are no pods with some labels.
func (r *Run) PodsGone(ctx context.Context, labels map[string]string) error {
	return kube.Await(ctx, r.SeedAPI, &corev1.PodList{}, func(pods []*corev1.Pod) error {
		if len(pods) > 0 {
			return fmt.Errorf("Pod %q has not terminated yet", pods[0].Name)
		}
		return nil
	}, nil, client.InNamespace(r.Namespace), client.MatchingLabels(labels))
}

// AwaitOne waits until one object passes a check.
func AwaitOne[T client.Object](ctx context.Context, c client.WithWatch, namespace, name string, list client.ObjectList, check func(T) error) error {
	return kube.Await(ctx, c, list, func(objects []T) error {
		if len(objects) == 0 {
			return fmt.Errorf("%T %q not found", *new(T), name)
		}
		return check(objects[0])
	}, nil, client.InNamespace(namespace), client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", name)})
}
