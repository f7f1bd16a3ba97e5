package kube

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// AwaitShoot watches one shoot until check returns nil, such as ShootHealthy and ShootGone; it gets nil while there is none. The rest is as
// for Await.
func AwaitShoot(ctx context.Context, c client.WithWatch, key client.ObjectKey, check func(*corev1beta1.Shoot) error, report func(error)) error {
	return Await(ctx, c, &corev1beta1.ShootList{}, func(shoots []*corev1beta1.Shoot) error {
		if len(shoots) == 0 {
			return check(nil)
		}
		return check(shoots[0])
	}, report, client.InNamespace(key.Namespace), client.MatchingFields{"metadata.name": key.Name})
}

// ShootHealthy returns why a shoot is not as it was ordered, or nil if it is: its last operation has succeeded, and all conditions are True.
func ShootHealthy(shoot *corev1beta1.Shoot) error {
	if shoot == nil {
		return errors.New("it is gone")
	}
	if last := shoot.Status.LastOperation; last == nil || last.State != corev1beta1.LastOperationStateSucceeded {
		return errors.New(ShootOperation(shoot))
	}
	if shoot.Status.ObservedGeneration != shoot.Generation {
		return errors.New("its last change has not been seen yet")
	}
	if len(shoot.Status.Conditions) == 0 {
		return errors.New("nobody has looked at its health yet")
	}
	return ConditionsTrue(shoot.Status.Conditions)
}

// ShootGone returns what becomes of a shoot that is still there, or nil if it is gone.
func ShootGone(shoot *corev1beta1.Shoot) error {
	if shoot == nil {
		return nil
	}
	return fmt.Errorf("it is still there: %s", ShootOperation(shoot))
}

// ShootOperation says in a line what is done with a shoot, and what went wrong with the codes of the errors.
func ShootOperation(shoot *corev1beta1.Shoot) string {
	last := shoot.Status.LastOperation
	if last == nil {
		return "nobody has begun yet"
	}
	text := fmt.Sprintf("%s %s %d%%", last.Type, last.State, last.Progress)
	if last.State == corev1beta1.LastOperationStateSucceeded {
		return text
	}
	if last.Description != "" {
		text += ", " + last.Description
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
	return oneLine(text)
}

// DeleteShoot orders the deletion of a shoot, and confirms it first. One that is gone is fine.
func DeleteShoot(ctx context.Context, c client.Client, key client.ObjectKey) error {
	shoot := &corev1beta1.Shoot{}
	shoot.Namespace, shoot.Name = key.Namespace, key.Name
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"true"}}}`, constants.ConfirmationDeletion)
	if err := c.Patch(ctx, shoot, client.RawPatch(types.MergePatchType, []byte(patch))); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("confirm the deletion of shoot %q: %w", key, err)
	}
	if err := c.Delete(ctx, shoot); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete shoot %q: %w", key, err)
	}
	return nil
}
