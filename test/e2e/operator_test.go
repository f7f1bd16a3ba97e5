//go:build e2e

package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/example"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/test/env"
)

// testOperator tests what gardener-operator does for a garden with two seeds: its credentials are rotated while a shoot exists, whose control plane has moved
// from one to the other before.
func testOperator(t *testing.T, l *landscape) {
	l.timed(t, "the runtime cluster does not serve the garden API", func(t *testing.T) {
		if err := l.client.List(t.Context(), &corev1beta1.ShootList{}); err == nil {
			t.Error("it does")
		}
	})
	shoot := sample(t, example.ShootWorkerless)
	shoot.Name, shoot.Spec.SeedName = "rotated", new("local")
	key := l.create(t, shoot)
	l.basic(t, "a shoot becomes healthy, and answers", func(t *testing.T) {
		l.awaitShoot(t, key, kube.ShootHealthy)
		if err := l.shoot(t, key).client.List(t.Context(), &corev1.NamespaceList{}); err != nil {
			t.Error(err)
		}
	})
	l.basic(t, "its control plane moves to the other seed", func(t *testing.T) { l.testMove(t, key) })
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
	l.timed(t, "it is restored when the volume of its etcd is lost", l.testRestoration)
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

// testRestoration expects that what was written before the last snapshot exists after the volume of etcd was lost with its pod.
func (l *landscape) testRestoration(t *testing.T) {
	precious := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-local", Name: "precious"}, Data: map[string]string{"a": "b"}}
	if err := l.garden.client.Create(t.Context(), precious); err != nil {
		t.Fatal(err)
	}
	etcd := &druidv1alpha1.Etcd{}
	if err := l.client.Get(t.Context(), client.ObjectKey{Namespace: constants.GardenNamespace, Name: "virtual-garden-etcd-main"}, etcd); err != nil {
		t.Fatal(err)
	}
	pod := etcd.Name + "-0"
	l.takeSnapshot(t, etcd, pod)
	claim := *etcd.Spec.VolumeClaimTemplate + "-" + pod
	before := env.Await(t, l.client, env.Named[*corev1.PersistentVolumeClaim](etcd.Namespace, claim), env.Exists)
	start := time.Now()
	for _, lost := range []client.Object{
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: etcd.Namespace, Name: claim}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: etcd.Namespace, Name: pod}},
	} {
		if err := l.client.Delete(t.Context(), lost, client.GracePeriodSeconds(0)); err != nil {
			t.Fatal(err)
		}
	}
	env.Await(t, l.client, env.Named[*corev1.PersistentVolumeClaim](etcd.Namespace, claim), func(now *corev1.PersistentVolumeClaim) error {
		if now.UID == before.UID {
			return errors.New("it is not replaced")
		}
		return nil
	})
	read := func(obj client.Object) {
		t.Helper()
		eventually(t, func(ctx context.Context) error { return l.garden.client.Get(ctx, client.ObjectKeyFromObject(obj), obj) })
	}
	read(precious)
	t.Logf("the kube-apiserver answered with restored data after %s", time.Since(start).Round(time.Second))
	read(&corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "local"}})
	t.Logf("and the garden API after %s", time.Since(start).Round(time.Second))
	l.awaitStatus(t)
	if err := l.garden.client.Delete(t.Context(), precious); err != nil {
		t.Error(err)
	}
}

// takeSnapshot has a member of etcd store what has changed since its last snapshot.
func (l *landscape) takeSnapshot(t *testing.T, etcd *druidv1alpha1.Etcd, pod string) {
	t.Helper()
	server, identity, ca := etcd.Spec.Backup.TLS, &corev1.Secret{}, &corev1.Secret{}
	for name, into := range map[string]*corev1.Secret{server.ClientTLSSecretRef.Name: identity, server.TLSCASecretRef.Name: ca} {
		if err := l.client.Get(t.Context(), client.ObjectKey{Namespace: etcd.Namespace, Name: name}, into); err != nil {
			t.Fatal(err)
		}
	}
	certificate, err := tls.X509KeyPair(identity.Data[corev1.TLSCertKey], identity.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca.Data[*server.TLSCASecretRef.DataKey])
	c := &http.Client{Timeout: timeout, Transport: &http.Transport{TLSClientConfig: &tls.Config{
		Certificates: []tls.Certificate{certificate}, RootCAs: roots, ServerName: etcd.Name + "-client." + etcd.Namespace + ".svc", MinVersion: tls.VersionTLS12,
	}}}
	defer c.CloseIdleConnections()
	response, err := c.Get("https://" + l.forward(t, etcd.Namespace, pod) + "/snapshot/delta")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if answer, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("a snapshot is answered with %s: %s, %v", response.Status, answer, err)
	}
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
