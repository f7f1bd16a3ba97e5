package landscape

import (
	"cmp"
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/example"
	"gardener.cloud/gardener/internal/kube"
)

// shootTimeout is how long the creation of a shoot with a node may take on a busy machine; a minute is usual.
const shootTimeout = 15 * time.Minute

// SampleShoot is the shoot that Up creates.
var SampleShoot = client.ObjectKey{Namespace: "garden-local", Name: "local"}

// bringUpSample creates the sample shoot unless it exists, and returns when it is healthy. Changes that users have made to it are kept.
func (u *upRun) bringUpSample(ctx context.Context) error {
	return u.step(ctx, "Creating shoot "+SampleShoot.String(), "", func(ctx context.Context, detail func(string)) error {
		ctx, cancel := u.limit(ctx, shootTimeout)
		defer cancel()
		c, err := u.Client(VirtualGarden)
		if err != nil {
			return err
		}
		report := func(reason error) { detail(reason.Error()) }
		if err := kube.Await(ctx, c, &corev1beta1.ProjectList{}, projectReady(SampleShoot.Namespace), report); err != nil {
			return err
		}
		// One that is being deleted has to be gone first.
		if err := kube.AwaitShoot(ctx, c, SampleShoot, func(shoot *corev1beta1.Shoot) error {
			if shoot != nil && shoot.DeletionTimestamp != nil {
				return fmt.Errorf("the previous one is being deleted: %s", kube.ShootOperation(shoot))
			}
			return nil
		}, report); err != nil {
			return err
		}
		shoot, err := sampleShoot()
		if err != nil {
			return err
		}
		if err := retryReplaced(func() error { return c.Create(ctx, shoot.DeepCopy()) }); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create Shoot %q: %w", SampleShoot, err)
		}
		var failed error
		err = kube.AwaitShoot(ctx, c, SampleShoot, func(shoot *corev1beta1.Shoot) error {
			if failed = failedForGood(shoot); failed != nil {
				return nil // There is nothing to wait for.
			}
			return sampleReady(shoot)
		}, report)
		return cmp.Or(failed, err)
	})
}

// sampleReady returns why a shoot is not healthy yet, or which requested operation is pending.
func sampleReady(shoot *corev1beta1.Shoot) error {
	if operation := pendingOperation(shoot); operation != "" {
		return fmt.Errorf("operation %q is pending", operation)
	}
	return kube.ShootHealthy(shoot)
}

// failedForGood returns what to do about a shoot that Failed and is not retried, and nil for all others.
func failedForGood(shoot *corev1beta1.Shoot) error {
	if shoot == nil || pendingOperation(shoot) != "" || shoot.Status.ObservedGeneration != shoot.Generation || !hasFailed(shoot) {
		return nil
	}
	return fmt.Errorf("it has failed and is not tried again: %s; see why with: bin/gardenctl describe shoot %s -n %[3]s; once that is fixed: bin/gardenctl retry shoot %[2]s -n %[3]s",
		kube.ShootOperation(shoot), shoot.Name, shoot.Namespace)
}

func hasFailed(shoot *corev1beta1.Shoot) bool {
	return shoot.Status.LastOperation != nil && shoot.Status.LastOperation.State == corev1beta1.LastOperationStateFailed
}

// pendingOperation is the operation that was requested of a shoot and has not started yet.
func pendingOperation(shoot *corev1beta1.Shoot) string {
	if shoot == nil {
		return ""
	}
	return shoot.Annotations[constants.GardenerOperation]
}

// sampleShoot is the shoot of example/shoot.yaml.
func sampleShoot() (*corev1beta1.Shoot, error) {
	objects, err := example.Objects(example.Shoot)
	if err != nil {
		return nil, err
	}
	shoot := &corev1beta1.Shoot{}
	return shoot, runtime.DefaultUnstructuredConverter.FromUnstructured(objects[0].Object, shoot)
}

func projectReady(namespace string) func([]*corev1beta1.Project) error {
	return func(projects []*corev1beta1.Project) error {
		for _, project := range projects {
			if ns := project.Spec.Namespace; ns != nil && *ns == namespace && project.Status.Phase == corev1beta1.ProjectReady {
				return nil
			}
		}
		return fmt.Errorf("the project of namespace %q is not ready", namespace)
	}
}
