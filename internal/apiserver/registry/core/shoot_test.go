package core

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// A binding is a new generation even if other changes wait for the maintenance time window.
func TestBindingCounts(t *testing.T) {
	old := &corev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Generation: 5},
		Spec:       corev1beta1.ShootSpec{Maintenance: &corev1beta1.Maintenance{ConfineSpecUpdateRollout: new(true)}},
		Status:     corev1beta1.ShootStatus{TechnicalID: "shoot--a--b"},
	}
	shoot := old.DeepCopy()
	shoot.Spec.SeedName, shoot.Status = new("seed"), corev1beta1.ShootStatus{}
	shootBinding(Settings{}).Strategies(runtime.NewScheme()).Update.PrepareForUpdate(t.Context(), shoot, old)
	if shoot.Generation != 6 || shoot.Status.TechnicalID != "shoot--a--b" {
		t.Errorf("generation %d, technical ID %q; want 6, and the status kept", shoot.Generation, shoot.Status.TechnicalID)
	}
}

func TestRotationWarnings(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	const interval = 90 * 24 * time.Hour
	daysAgo := func(days int) *metav1.Time { return &metav1.Time{Time: now.AddDate(0, 0, -days)} }
	shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: *daysAgo(89)}}
	if got := rotationWarnings(shoot, now, interval); len(got) > 0 {
		t.Errorf("a new shoot has warnings: %q", got)
	}
	shoot.CreationTimestamp = *daysAgo(100)
	shoot.Status.Credentials = &corev1beta1.ShootCredentials{Rotation: &corev1beta1.ShootCredentialsRotation{
		CertificateAuthorities: &corev1beta1.CARotation{LastInitiationTime: daysAgo(95)},
		ETCDEncryptionKey:      &corev1beta1.ETCDEncryptionKeyRotation{LastInitiationTime: daysAgo(1)},
		ServiceAccountKey:      &corev1beta1.ServiceAccountKeyRotation{LastInitiationTime: daysAgo(1)},
	}}
	want := []string{
		"the CAs of this cluster should be rotated, which was not done for 95 days: annotate the Shoot with gardener.cloud/operation=rotate-ca-start",
		"the observability credentials of this cluster should be rotated, which was not done for 100 days: " +
			"annotate the Shoot with gardener.cloud/operation=rotate-observability-credentials",
	}
	if diff := cmp.Diff(want, rotationWarnings(shoot, now, interval)); diff != "" {
		t.Errorf("rotationWarnings() (-want +got):\n%s", diff)
	}
	shoot.DeletionTimestamp = daysAgo(0)
	if got := rotationWarnings(shoot, now, interval); len(got) > 0 {
		t.Errorf("a shoot in deletion has warnings: %q", got)
	}
}
