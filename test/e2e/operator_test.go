//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
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

// TestVirtualGarden tests a garden that gardener-operator has installed: its API is that of a virtual cluster, a shoot works on it, and its
// credentials are rotated while the shoot exists. One of its seeds is the runtime cluster, the other a cluster of its own.
func TestVirtualGarden(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a landscape needs root")
	}
	l := newLandscape(t)
	l.basic(t, "up installs the operator, a Garden and two seeds", func(t *testing.T) { l.run(t, "up", "--operator", "--seeds=2", "--without-shoot") })
	l.connect(t)
	runtime := l.cluster
	l.cluster = connect(t, strings.TrimSpace(l.run(t, "kubeconfig", "garden")))
	l.timed(t, "status is healthy", l.awaitStatus)
	l.timed(t, "the runtime cluster does not serve the garden API", func(t *testing.T) {
		if err := runtime.client.List(t.Context(), &corev1beta1.ShootList{}); err == nil {
			t.Error("it does")
		}
	})
	shoot := sample(t, example.ShootWorkerless)
	shoot.Spec.SeedName = new(secondSeed)
	key := l.create(t, shoot)
	l.basic(t, "a shoot becomes healthy, and answers", func(t *testing.T) {
		l.awaitShoot(t, key, kube.ShootHealthy)
		if err := l.shoot(t, key).client.List(t.Context(), &corev1.NamespaceList{}); err != nil {
			t.Error(err)
		}
	})
	l.timed(t, "the Garden cannot be deleted while it has a seed", func(t *testing.T) {
		garden := readGarden(t, runtime)
		metav1.SetMetaDataAnnotation(&garden.ObjectMeta, constants.ConfirmationDeletion, "true")
		if err := runtime.client.Update(t.Context(), garden); err != nil {
			t.Fatal(err)
		}
		if err := runtime.client.Delete(t.Context(), garden); !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
			t.Errorf("the error is %v", err)
		}
	})
	l.basic(t, "its credentials are rotated", func(t *testing.T) {
		old := l.cluster
		operate(t, runtime, constants.OperationRotateCredentialsStart, corev1beta1.RotationPrepared)
		if err := old.client.List(t.Context(), &corev1.NamespaceList{}); err != nil {
			t.Errorf("with old credentials, while both are valid: %v", err)
		}
		operate(t, runtime, constants.OperationRotateCredentialsComplete, corev1beta1.RotationCompleted)
		if err := old.client.List(t.Context(), &corev1.NamespaceList{}); err == nil {
			t.Error("old credentials are still accepted")
		}
		l.run(t, "up", "--operator", "--without-shoot")
		l.cluster = connect(t, strings.TrimSpace(l.run(t, "kubeconfig", "garden")))
	})
	l.timed(t, "the shoot is healthy, and deleted without leftovers", func(t *testing.T) {
		l.awaitShoot(t, key, kube.ShootHealthy)
		l.deleteShoot(t, key)
		second := connect(t, strings.TrimSpace(l.run(t, "kubeconfig", secondSeed)))
		if err := second.client.Get(t.Context(), client.ObjectKey{Name: "shoot--local--" + key.Name}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
			t.Errorf("its namespace: %v", err)
		}
	})
}

func readGarden(t *testing.T, runtime cluster) *operatorv1alpha1.Garden {
	t.Helper()
	garden := &operatorv1alpha1.Garden{}
	if err := runtime.client.Get(t.Context(), client.ObjectKey{Name: "garden"}, garden); err != nil {
		t.Fatal(err)
	}
	return garden
}

// operate requests an operation of the Garden, and waits until the rotations of its CAs and its keys have a phase.
func operate(t *testing.T, runtime cluster, operation string, want corev1beta1.CredentialsRotationPhase) {
	t.Helper()
	garden := readGarden(t, runtime)
	if err := kube.PatchMetadata(t.Context(), runtime.client, garden, func(o *metav1.PartialObjectMetadata) {
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, constants.GardenerOperation, operation)
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeoutCause(working(t), shootTimeout, fmt.Errorf("not done after %s", shootTimeout))
	defer cancel()
	if err := kube.Await(ctx, runtime.client, &operatorv1alpha1.GardenList{}, func(found []*operatorv1alpha1.Garden) error {
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
