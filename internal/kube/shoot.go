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

// AwaitShoot is Await for one shoot. The check, such as ShootHealthy or ShootGone, gets nil while the shoot does not exist.
func AwaitShoot(ctx context.Context, c client.WithWatch, key client.ObjectKey, check func(*corev1beta1.Shoot) error, report func(error)) error {
	return Await(ctx, c, &corev1beta1.ShootList{}, func(shoots []*corev1beta1.Shoot) error {
		if len(shoots) == 0 {
			return check(nil)
		}
		return check(shoots[0])
	}, report, client.InNamespace(key.Namespace), client.MatchingFields{"metadata.name": key.Name})
}

// ShootHealthy returns why a shoot is not healthy, or nil if it is: its last operation succeeded for its current generation, and all conditions
// are True.
func ShootHealthy(shoot *corev1beta1.Shoot) error {
	if shoot == nil {
		return errors.New("it is gone")
	}
	if last := shoot.Status.LastOperation; last == nil || last.State != corev1beta1.LastOperationStateSucceeded {
		return errors.New(ShootOperation(shoot))
	}
	// Its control plane runs in no seed then, and the conditions are those of the former one.
	if shoot.Status.LastOperation.Type == corev1beta1.LastOperationTypeMigrate {
		return errors.New("its control plane has left the former seed, and is not restored yet")
	}
	if shoot.Status.ObservedGeneration != shoot.Generation {
		return errors.New("its last change has not been observed yet")
	}
	if len(shoot.Status.Conditions) == 0 {
		return errors.New("its health has not been checked yet")
	}
	return ConditionsTrue(shoot.Status.Conditions)
}

// Unrestored reports whether a control plane has left its former seed and is not complete in the other one, so that it cannot be bound again: between both
// operations, the gardenlet of the other one may have begun to copy backups.
func Unrestored(last *corev1beta1.LastOperation) bool {
	return last != nil && (last.Type == corev1beta1.LastOperationTypeRestore && last.State != corev1beta1.LastOperationStateSucceeded ||
		last.Type == corev1beta1.LastOperationTypeMigrate && last.State == corev1beta1.LastOperationStateSucceeded)
}

// ShootGone returns an error with the operation of a shoot that still exists, or nil if there is none.
func ShootGone(shoot *corev1beta1.Shoot) error {
	if shoot == nil {
		return nil
	}
	return fmt.Errorf("it still exists: %s", ShootOperation(shoot))
}

// ShootOperation is the last operation of a shoot on one line, with its last errors and their codes.
func ShootOperation(shoot *corev1beta1.Shoot) string {
	last := shoot.Status.LastOperation
	if last == nil {
		return "no operation has begun yet"
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
	return strings.Join(strings.Fields(text), " ")
}

// DeleteShoot confirms the deletion of a shoot, and deletes it. A missing shoot is not an error.
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
