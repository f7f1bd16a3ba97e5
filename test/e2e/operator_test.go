//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/example"
	"gardener.cloud/gardener/internal/kube"
)

// testOperator tests what gardener-operator does for a garden with two seeds: its credentials are rotated while a shoot exists.
func testOperator(t *testing.T, l *landscape) {
	l.timed(t, "the runtime cluster does not serve the garden API", func(t *testing.T) {
		if err := l.client.List(t.Context(), &corev1beta1.ShootList{}); err == nil {
			t.Error("it does")
		}
	})
	shoot := sample(t, example.ShootWorkerless)
	shoot.Name, shoot.Spec.SeedName = "rotated", new(secondSeed)
	key := l.create(t, shoot)
	l.basic(t, "a shoot becomes healthy, and answers", func(t *testing.T) {
		l.awaitShoot(t, key, kube.ShootHealthy)
		if err := l.shoot(t, key).client.List(t.Context(), &corev1.NamespaceList{}); err != nil {
			t.Error(err)
		}
	})
	l.timed(t, "the Garden cannot be deleted while it has a seed", func(t *testing.T) {
		garden := l.readGarden(t)
		metav1.SetMetaDataAnnotation(&garden.ObjectMeta, constants.ConfirmationDeletion, "true")
		if err := l.client.Update(t.Context(), garden); err != nil {
			t.Fatal(err)
		}
		if err := l.client.Delete(t.Context(), garden); !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
			t.Errorf("the error is %v", err)
		}
	})
	// The rotation restarts the kube-apiserver, whose audit log is lost.
	l.timed(t, "every right in the garden is used or has a reason", func(t *testing.T) {
		expectRights(t, l.garden.client, "garden.yaml", l.auditDirs(t, constants.GardenNamespace)...)
	})
	l.basic(t, "its credentials are rotated", func(t *testing.T) {
		old := l.garden
		l.operate(t, constants.OperationRotateCredentialsStart, corev1beta1.RotationPrepared)
		if err := old.client.List(t.Context(), &corev1.NamespaceList{}); err != nil {
			t.Errorf("with old credentials, while both are valid: %v", err)
		}
		l.operate(t, constants.OperationRotateCredentialsComplete, corev1beta1.RotationCompleted)
		if err := old.client.List(t.Context(), &corev1.NamespaceList{}); err == nil {
			t.Error("old credentials are still accepted")
		}
		l.run(t, "up", "--without-shoot")
		l.connectGarden(t)
	})
	l.timed(t, "the shoot is healthy, and deleted without leftovers", func(t *testing.T) {
		l.awaitShoot(t, key, kube.ShootHealthy)
		l.deleteShoot(t, key)
		second := connect(t, strings.TrimSpace(l.run(t, "kubeconfig", secondSeed)))
		if err := second.client.Get(t.Context(), client.ObjectKey{Name: "shoot--local--" + key.Name}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
			t.Errorf("its namespace: %v", err)
		}
	})
	l.timed(t, "status is healthy", l.awaitStatus)
}

func (l *landscape) readGarden(t *testing.T) *operatorv1alpha1.Garden {
	t.Helper()
	garden := &operatorv1alpha1.Garden{}
	if err := l.client.Get(t.Context(), client.ObjectKey{Name: "garden"}, garden); err != nil {
		t.Fatal(err)
	}
	return garden
}

// operate requests an operation of the Garden, and waits until the rotations of its CAs and its keys have a phase.
func (l *landscape) operate(t *testing.T, operation string, want corev1beta1.CredentialsRotationPhase) {
	t.Helper()
	garden := l.readGarden(t)
	if err := kube.PatchMetadata(t.Context(), l.client, garden, func(o *metav1.PartialObjectMetadata) {
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, constants.GardenerOperation, operation)
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeoutCause(working(t), shootTimeout, fmt.Errorf("not done after %s", shootTimeout))
	defer cancel()
	if err := kube.Await(ctx, l.client, &operatorv1alpha1.GardenList{}, func(found []*operatorv1alpha1.Garden) error {
		status := found[0].Status
		c := status.Credentials
		switch last := status.LastOperation; {
		case c == nil || c.Rotation == nil || c.Rotation.CertificateAuthorities == nil || c.Rotation.ServiceAccountKey == nil:
			return fmt.Errorf("operation %s has not begun", operation)
		case c.Rotation.CertificateAuthorities.Phase != want || c.Rotation.ServiceAccountKey.Phase != want,
			last.State != corev1beta1.LastOperationStateSucceeded,
			c.Rotation.ETCDEncryptionKey.Phase != corev1beta1.RotationCompleted:
			return fmt.Errorf("%s %s (%d%%): %s", last.Type, last.State, last.Progress, last.Description)
		}
		return nil
	}, nil); err != nil {
		t.Fatal(err)
	}
}
