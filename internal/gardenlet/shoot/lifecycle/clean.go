package lifecycle

import (
	"context"
	"fmt"
	"strings"

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
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/pkg/flow"
)

// named is how many objects an error names of those that are left.
const named = 10

// cleanShoot deletes in the shoot what has made something in the infrastructure, and waits until it is gone: Services with load balancers
// and volumes. Webhooks of users go first, as their pods may not run any more. Then go their workloads: a volume stays as long as a pod
// uses it, and a StatefulSet would order a new one.
func (h *hosted) cleanShoot(ctx context.Context) error {
	shoot, err := h.connect(ctx)
	if err != nil {
		return err
	}
	for what, list := range map[string]client.ObjectList{
		"ValidatingWebhookConfiguration": &admissionregistrationv1.ValidatingWebhookConfigurationList{},
		"MutatingWebhookConfiguration":   &admissionregistrationv1.MutatingWebhookConfigurationList{},
	} {
		if err := deleteUsers(ctx, shoot, what, list, nil); err != nil {
			return err
		}
	}
	if err := deleteWorkloads(ctx, shoot); err != nil {
		return err
	}
	g := graceOf(h.shoot, h.Clock)
	return flow.Parallel(ctx,
		func(ctx context.Context) error {
			return clean(ctx, shoot, "Service", &corev1.ServiceList{}, func(s *corev1.Service) bool { return s.Spec.Type == corev1.ServiceTypeLoadBalancer }, g)
		},
		func(ctx context.Context) error {
			return clean[*corev1.PersistentVolumeClaim](ctx, shoot, "PersistentVolumeClaim", &corev1.PersistentVolumeClaimList{}, nil, g)
		},
		func(ctx context.Context) error {
			return clean[*corev1.PersistentVolume](ctx, shoot, "PersistentVolume", &corev1.PersistentVolumeList{}, nil, g)
		},
	)
}

// deleteWorkloads deletes what users run.
func deleteWorkloads(ctx context.Context, shoot client.Client) error {
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
		if err := deleteUsers(ctx, shoot, workload.kind, workload.list, uncontrolled); err != nil {
			return err
		}
	}
	return nil
}

// clean deletes the objects of a kind that users have made and waits until they are gone. The error names those that are left.
func clean[T client.Object](ctx context.Context, shoot client.WithWatch, what string, list client.ObjectList, only func(T) bool, g grace) error {
	counts := func(object client.Object) bool {
		typed, ok := object.(T)
		return ok && (only == nil || only(typed))
	}
	if err := deleteUsers(ctx, shoot, what, list, counts); err != nil {
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
		return errorcode.With(fmt.Errorf("%d of kind %s are still there in the shoot: %s", len(left), what, strings.Join(left[:min(len(left), named)], ", ")),
			corev1beta1.ErrorCleanupClusterResources)
	}
	return g.await(ctx, shoot, list, counts, func(ctx context.Context) error { return kube.Await(ctx, shoot, list, gone, nil) })
}

// deleteUsers deletes the objects of a kind that users have made.
func deleteUsers(ctx context.Context, shoot client.Client, what string, list client.ObjectList, counts func(client.Object) bool) error {
	if err := shoot.List(ctx, list); err != nil {
		return fmt.Errorf("list %s in the shoot: %w", what, err)
	}
	err := meta.EachListItem(list, func(item runtime.Object) error {
		object := item.(client.Object) //nolint:forcetypeassert // lists have nothing else
		if !usersOwn(object) || counts != nil && !counts(object) || object.GetDeletionTimestamp() != nil {
			return nil
		}
		// What belongs to it goes, too, which is not the default of all kinds.
		return client.IgnoreNotFound(shoot.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	})
	if err != nil {
		return fmt.Errorf("delete %s in the shoot: %w", what, err)
	}
	return nil
}

// uncontrolled is whether an object stands for itself. Others go with what controls them, which may be ours.
func uncontrolled(object client.Object) bool { return metav1.GetControllerOfNoCopy(object) == nil }

// usersOwn is whether an object is not one of ours.
func usersOwn(object client.Object) bool {
	return object.GetLabels()[constants.ShootNoCleanup] != "true"
}
