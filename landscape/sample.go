package landscape

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
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
		if err := awaitShoot(ctx, c, SampleShoot, func(shoot *corev1beta1.Shoot) error {
			if shoot != nil && shoot.DeletionTimestamp != nil {
				return fmt.Errorf("the old one is being deleted: %s", operation(shoot))
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
		return awaitShoot(ctx, c, SampleShoot, ShootHealthy, report)
	})
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

// awaitShoot watches one shoot until check says nothing; it gets nil while there is none.
func awaitShoot(ctx context.Context, c client.WithWatch, key client.ObjectKey, check func(*corev1beta1.Shoot) error, report func(error)) error {
	return kube.Await(ctx, c, &corev1beta1.ShootList{}, func(shoots []*corev1beta1.Shoot) error {
		if len(shoots) == 0 {
			return check(nil)
		}
		return check(shoots[0])
	}, report, client.InNamespace(key.Namespace), client.MatchingFields{"metadata.name": key.Name})
}

// ShootHealthy returns why a shoot is not as it was ordered, or nil if it is.
func ShootHealthy(shoot *corev1beta1.Shoot) error {
	if shoot == nil {
		return errors.New("it is gone")
	}
	if last := shoot.Status.LastOperation; last == nil || last.State != corev1beta1.LastOperationStateSucceeded {
		return errors.New(operation(shoot))
	}
	if shoot.Status.ObservedGeneration != shoot.Generation {
		return errors.New("its last change has not been seen yet")
	}
	if len(shoot.Status.Conditions) == 0 {
		return errors.New("nobody has looked at its health yet")
	}
	for _, condition := range shoot.Status.Conditions {
		if condition.Status != corev1beta1.ConditionTrue {
			return fmt.Errorf("its condition %s is %s: %s", condition.Type, condition.Status, condition.Message)
		}
	}
	return nil
}

// operation says in a line what is done with a shoot, and what went wrong with the codes of the errors.
func operation(shoot *corev1beta1.Shoot) string {
	last := shoot.Status.LastOperation
	if last == nil {
		return "nobody has begun yet"
	}
	text := fmt.Sprintf("%s %s %d%%", last.Type, last.State, last.Progress)
	if last.Description != "" && last.State != corev1beta1.LastOperationStateSucceeded {
		text += ", " + last.Description
	}
	if last.State == corev1beta1.LastOperationStateSucceeded {
		return text
	}
	for _, failure := range shoot.Status.LastErrors {
		codes := make([]string, 0, len(failure.Codes))
		for _, code := range failure.Codes {
			codes = append(codes, string(code))
		}
		slices.Sort(codes)
		text += "; error"
		if len(codes) > 0 {
			text += " " + strings.Join(codes, ", ")
		}
		text += ": " + failure.Description
	}
	return strings.Join(strings.Fields(text), " ")
}
