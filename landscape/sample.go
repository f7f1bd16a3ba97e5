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

// shootTimeout is the time that a shoot with a node may take on a busy machine; a minute is usual.
const shootTimeout = 15 * time.Minute

// SampleShoot is the shoot that a landscape comes up with.
var SampleShoot = client.ObjectKey{Namespace: "garden-local", Name: "local"}

// bringUpSample orders the sample shoot unless it is there, and returns when it is healthy. What somebody has made of it since then is
// left alone.
func (u *upRun) bringUpSample(ctx context.Context) error {
	return u.step(ctx, "Make the shoot "+SampleShoot.String(), "", func(ctx context.Context, detail func(string)) error {
		ctx, cancel := context.WithTimeoutCause(ctx, shootTimeout, fmt.Errorf("not done after %s", shootTimeout))
		defer cancel()
		c, err := u.Client(RuntimeCluster)
		if err != nil {
			return err
		}
		report := func(reason error) { detail(reason.Error()) }
		if err := kube.Await(ctx, c, &corev1beta1.ProjectList{}, projectReady(SampleShoot.Namespace), report); err != nil {
			return err
		}
		// One that is being deleted makes way first.
		if err := kube.AwaitShoot(ctx, c, SampleShoot, func(shoot *corev1beta1.Shoot) error {
			if shoot != nil && shoot.DeletionTimestamp != nil {
				return fmt.Errorf("the old one is being deleted: %s", kube.ShootOperation(shoot))
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
			return fmt.Errorf("order it: %w", err)
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

// sampleReady returns what is missing until a shoot is healthy, and nothing that was asked of it is left to do.
func sampleReady(shoot *corev1beta1.Shoot) error {
	if operation := pendingOperation(shoot); operation != "" {
		return fmt.Errorf("operation %q is to be taken up", operation)
	}
	return kube.ShootHealthy(shoot)
}

// failedForGood says what to do about a shoot that nobody tries to make healthy any more, and is nil for all others.
func failedForGood(shoot *corev1beta1.Shoot) error {
	if shoot == nil || pendingOperation(shoot) != "" || shoot.Status.ObservedGeneration != shoot.Generation || !hasFailed(shoot) {
		return nil
	}
	return fmt.Errorf("it has failed and is not tried again: %s; see why with: bin/gardenctl describe shoot %s -n %[3]s; once that is mended: bin/gardenctl retry shoot %[2]s -n %[3]s",
		kube.ShootOperation(shoot), shoot.Name, shoot.Namespace)
}

func hasFailed(shoot *corev1beta1.Shoot) bool {
	return shoot.Status.LastOperation != nil && shoot.Status.LastOperation.State == corev1beta1.LastOperationStateFailed
}

// pendingOperation is what a shoot was asked to do and has not taken up yet.
func pendingOperation(shoot *corev1beta1.Shoot) string {
	if shoot == nil {
		return ""
	}
	return shoot.Annotations[constants.GardenerOperation]
}

// sampleShoot is the shoot of the examples that has nodes.
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
