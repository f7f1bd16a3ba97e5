package lifecycle

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
)

// The completion of a rotation of CAs is followed by one run in which the old CAs are not trusted any more, whether or not etcd has several members.
func TestRunAfterCompletionOfCAs(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	for name, controlPlane := range map[string]*operatorv1alpha1.ControlPlane{
		"one member":       nil,
		"highly available": {HighAvailability: &operatorv1alpha1.HighAvailability{}},
	} {
		t.Run(name, func(t *testing.T) {
			ca := &corev1beta1.CARotation{Phase: corev1beta1.RotationCompleting, LastInitiationTime: &at, LastCompletionTriggeredTime: &at}
			garden := &operatorv1alpha1.Garden{}
			garden.Spec.VirtualCluster.ControlPlane = controlPlane
			garden.Status.Credentials = &operatorv1alpha1.Credentials{Rotation: &operatorv1alpha1.CredentialsRotation{CertificateAuthorities: ca}}
			for run, want := range []bool{true, false, false} {
				finishRotations(garden, at)
				if ca.Phase != corev1beta1.RotationCompleted {
					t.Errorf("after run %d, the phase is %q", run+1, ca.Phase)
				}
				if got := continues(garden); got != want {
					t.Errorf("after run %d, another one follows: %t, want %t", run+1, got, want)
				}
			}
		})
	}
}
