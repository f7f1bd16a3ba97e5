// Package cleanup is the stage that deletes, in a cluster that is deleted, the objects of users which have something in the infrastructure:
// load balancers and volumes.
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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/pkg/flow"
)

// Inputs are what the tasks read.
type Inputs struct {
	Run *stage.Run
	// GracePeriod is for how long objects may keep their finalizers. It begins with the deletion of an object. Zero means forever, as the
	// controller that has added a finalizer may have something to do.
	GracePeriod time.Duration
	// After are the tasks that it comes after besides those of the kube-apiserver and kube-controller-manager.
	After []string
}

// Tasks returns the tasks of the stage.
func Tasks(in Inputs) []flow.Task {
	return []flow.Task{flow.Await(stage.ExtensionTimeout, "clean-shoot", "Deleting load balancers and volumes of the shoot", in.clean,
		slices.Concat([]string{"kube-apiserver-ready", "kube-controller-manager"}, in.After)...)}
}

// clean deletes what has something in the infrastructure, and waits until it is gone: Services with load balancers, and volumes. Webhooks
// of users go first, as their pods may not run any more. Then go workloads: a volume is kept as long as a pod uses it, and a StatefulSet
// would create a new claim.
func (in Inputs) clean(ctx context.Context) error {
	shootClient, err := in.Run.Target.Client(ctx)
	if err != nil {
		return err
	}
	for kind, list := range map[string]client.ObjectList{
		"ValidatingWebhookConfiguration": &admissionregistrationv1.ValidatingWebhookConfigurationList{},
		"MutatingWebhookConfiguration":   &admissionregistrationv1.MutatingWebhookConfigurationList{},
	} {
		if err := deleteUsers(ctx, shootClient, kind, list, nil); err != nil {
			return err
		}
	}
	if err := deleteWorkloads(ctx, shootClient); err != nil {
		return err
	}
	g := grace{period: in.GracePeriod, clock: in.Run.Clock}
	return flow.Parallel(ctx,
		func(ctx context.Context) error {
			return deleteAndWait(ctx, shootClient, "Service", &corev1.ServiceList{}, func(s *corev1.Service) bool { return s.Spec.Type == corev1.ServiceTypeLoadBalancer }, g)
		},
		func(ctx context.Context) error {
			return deleteAndWait[*corev1.PersistentVolumeClaim](ctx, shootClient, "PersistentVolumeClaim", &corev1.PersistentVolumeClaimList{}, nil, g)
		},
		func(ctx context.Context) error {
			return deleteAndWait[*corev1.PersistentVolume](ctx, shootClient, "PersistentVolume", &corev1.PersistentVolumeList{}, nil, g)
		},
	)
}

// deleteWorkloads deletes the workloads of users.
func deleteWorkloads(ctx context.Context, shootClient client.Client) error {
	for _, workload := range []struct {
		kind string
		list client.ObjectList
	}{
		{"CronJob", &batchv1.CronJobList{}},
		{"Deployment", &appsv1.DeploymentList{}},
		{"StatefulSet", &appsv1.StatefulSetList{}},
		{"DaemonSet", &appsv1.DaemonSetList{}},
		{"ReplicaSet", &appsv1.ReplicaSetList{}},
		{"ReplicationController", &corev1.ReplicationControllerList{}},
		{"Job", &batchv1.JobList{}},
		{"Pod", &corev1.PodList{}},
	} {
		if err := deleteUsers(ctx, shootClient, workload.kind, workload.list, uncontrolled); err != nil {
			return err
		}
	}
	return nil
}

// deleteAndWait deletes the objects of a kind that users have created, and waits until they are gone. The error names those that are left.
func deleteAndWait[T client.Object](ctx context.Context, shootClient client.WithWatch, kind string, list client.ObjectList, only func(T) bool, g grace) error {
	counts := func(object client.Object) bool {
		typed, ok := object.(T)
		return ok && (only == nil || only(typed))
	}
	if err := deleteUsers(ctx, shootClient, kind, list, counts); err != nil {
		return err
	}
	gone := func(objects []T) error {
		var left []string
		for _, object := range objects {
			if usersOwn(object) && counts(object) {
				left = append(left, client.ObjectKeyFromObject(object).String())
			}
		}
		if len(left) == 0 {
			return nil
		}
		return errorcode.With(fmt.Errorf("%d objects of kind %s are not deleted yet in the shoot: %s", len(left), kind, strings.Join(left[:min(len(left), stage.Named)], ", ")),
			corev1beta1.ErrorCleanupClusterResources)
	}
	return g.await(ctx, shootClient, list, counts, func(ctx context.Context) error { return kube.Await(ctx, shootClient, list, gone, nil) })
}

const (
	// pageSize is how many objects are read at a time: users decide how many there are, and how large.
	pageSize = 100
	// deletionsTimeout is the end of the deletions of one kind, and requestTimeout that of one of them. Webhooks that users create again and
	// again can make each take long, while other shoots wait for the worker. The next pass goes on.
	deletionsTimeout, requestTimeout = 3 * time.Minute, 10 * time.Second
)

// deleteUsers deletes the objects of a kind that users have created.
func deleteUsers(ctx context.Context, shootClient client.Client, kind string, list client.ObjectList, counts func(client.Object) bool) error {
	ctx, cancel := context.WithTimeout(ctx, deletionsTimeout)
	defer cancel()
	err := eachObject(ctx, shootClient, list, func(object client.Object) error {
		if !usersOwn(object) || counts != nil && !counts(object) || object.GetDeletionTimestamp() != nil {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		// Objects that it owns are deleted, too, which is not the default of all kinds.
		err := shootClient.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if err != nil && ctx.Err() != nil {
			return errorcode.With(fmt.Errorf("delete %q: the kube-apiserver did not respond within %s; webhooks may be slow: %w", client.ObjectKeyFromObject(object), requestTimeout, err),
				corev1beta1.ErrorCleanupClusterResources)
		}
		return client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("delete %s in the shoot: %w", kind, err)
	}
	return nil
}

// uncontrolled is whether an object has no controller. Others are deleted with their controller, which may be a system component.
func uncontrolled(object client.Object) bool { return metav1.GetControllerOfNoCopy(object) == nil }

// usersOwn is whether an object is no part of Gardener.
func usersOwn(object client.Object) bool {
	return object.GetLabels()[constants.ShootNoCleanup] != "true"
}

// eachObject calls a function with each object of a kind, and reads a page of them at a time.
func eachObject(ctx context.Context, shootClient client.Client, list client.ObjectList, do func(client.Object) error) error {
	for next := ""; ; {
		if err := shootClient.List(ctx, list, client.Limit(pageSize), client.Continue(next)); err != nil {
			return fmt.Errorf("list: %w", err)
		}
		if err := meta.EachListItem(list, func(item runtime.Object) error {
			return do(item.(client.Object)) //nolint:forcetypeassert // lists have nothing else
		}); err != nil {
			return err
		}
		if next = list.GetContinue(); next == "" {
			return nil
		}
	}
}
