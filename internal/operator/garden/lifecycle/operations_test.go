package lifecycle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
)

// phases are those of the rotations of a Garden. Observability has no phases, but begins and ends.
type phases struct {
	CA, ServiceAccountKey, EncryptionKey, WorkloadIdentityKey corev1beta1.CredentialsRotationPhase
	AutoComplete, ObservabilityBegun, ObservabilityDone       bool
}

func (p phases) garden(operations string) *operatorv1alpha1.Garden {
	garden := plainGarden()
	if operations != "" {
		garden.Annotations = map[string]string{"gardener.cloud/operation": operations}
	}
	r := &operatorv1alpha1.CredentialsRotation{}
	if p.CA != "" {
		r.CertificateAuthorities = &corev1beta1.CARotation{Phase: p.CA}
	}
	if p.ServiceAccountKey != "" {
		r.ServiceAccountKey = &corev1beta1.ServiceAccountKeyRotation{Phase: p.ServiceAccountKey}
	}
	if p.EncryptionKey != "" {
		r.ETCDEncryptionKey = &corev1beta1.ETCDEncryptionKeyRotation{Phase: p.EncryptionKey}
		if p.AutoComplete {
			r.ETCDEncryptionKey.AutoCompleteAfterPrepared = new(true)
		}
	}
	if p.WorkloadIdentityKey != "" {
		r.WorkloadIdentityKey = &operatorv1alpha1.WorkloadIdentityKeyRotation{Phase: p.WorkloadIdentityKey}
	}
	if p.ObservabilityBegun {
		r.Observability = &corev1beta1.ObservabilityRotation{LastInitiationTime: &metav1.Time{Time: yesterday}}
	}
	if *r != (operatorv1alpha1.CredentialsRotation{}) {
		garden.Status.Credentials = &operatorv1alpha1.Credentials{Rotation: r}
	}
	return garden
}

func phasesOf(garden *operatorv1alpha1.Garden) phases {
	p := phases{}
	c := garden.Status.Credentials
	if c == nil || c.Rotation == nil {
		return p
	}
	if r := c.Rotation.CertificateAuthorities; r != nil {
		p.CA = r.Phase
	}
	if r := c.Rotation.ServiceAccountKey; r != nil {
		p.ServiceAccountKey = r.Phase
	}
	if r := c.Rotation.ETCDEncryptionKey; r != nil {
		p.EncryptionKey, p.AutoComplete = r.Phase, r.AutoCompleteAfterPrepared != nil && *r.AutoCompleteAfterPrepared
	}
	if r := c.Rotation.WorkloadIdentityKey; r != nil {
		p.WorkloadIdentityKey = r.Phase
	}
	if r := c.Rotation.Observability; r != nil {
		p.ObservabilityBegun, p.ObservabilityDone = r.LastInitiationTime != nil, r.LastCompletionTime != nil
	}
	return p
}

var (
	now       = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	yesterday = now.AddDate(0, 0, -1)
)

const (
	preparing, prepared   = corev1beta1.RotationPreparing, corev1beta1.RotationPrepared
	completing, completed = corev1beta1.RotationCompleting, corev1beta1.RotationCompleted
)

func TestBeginOperations(t *testing.T) {
	all := func(phase corev1beta1.CredentialsRotationPhase) phases {
		return phases{phase, phase, phase, phase, false, false, false}
	}
	for name, tc := range map[string]struct {
		before     phases
		operations string
		want       phases
		begun      []string
	}{
		"nothing":                         {},
		"reconciliation":                  {operations: "reconcile", begun: []string{"reconcile"}},
		"an operation of another program": {operations: "dance;reconcile", begun: []string{"reconcile"}},
		"CAs":                             {operations: "rotate-ca-start", want: phases{CA: preparing}, begun: []string{"rotate-ca-start"}},
		"CAs, again":                      {before: all(completed), operations: "rotate-ca-start", want: phases{preparing, completed, completed, completed, false, false, false}, begun: []string{"rotate-ca-start"}},
		"CAs, while they are rotated":     {before: phases{CA: prepared}, operations: "rotate-ca-start", want: phases{CA: prepared}, begun: []string{"rotate-ca-start"}},
		"CAs, completion":                 {before: all(prepared), operations: "rotate-ca-complete", want: phases{completing, prepared, prepared, prepared, false, false, false}, begun: []string{"rotate-ca-complete"}},
		"CAs, completion too early":       {before: phases{CA: preparing}, operations: "rotate-ca-complete", want: phases{CA: preparing}, begun: []string{"rotate-ca-complete"}},
		"service account key": {
			operations: "rotate-serviceaccount-key-start", want: phases{ServiceAccountKey: preparing}, begun: []string{"rotate-serviceaccount-key-start"},
		},
		"service account key, completion": {
			before: phases{ServiceAccountKey: prepared}, operations: "rotate-serviceaccount-key-complete", want: phases{ServiceAccountKey: completing},
			begun: []string{"rotate-serviceaccount-key-complete"},
		},
		"encryption key": {
			operations: "rotate-etcd-encryption-key", want: phases{EncryptionKey: preparing, AutoComplete: true}, begun: []string{"rotate-etcd-encryption-key"},
		},
		"encryption key in two steps": {
			operations: "rotate-etcd-encryption-key-start", want: phases{EncryptionKey: preparing}, begun: []string{"rotate-etcd-encryption-key-start"},
		},
		"encryption key, completion": {
			before: phases{EncryptionKey: prepared}, operations: "rotate-etcd-encryption-key-complete", want: phases{EncryptionKey: completing},
			begun: []string{"rotate-etcd-encryption-key-complete"},
		},
		"workload identity key": {
			operations: "rotate-workload-identity-key-start", want: phases{WorkloadIdentityKey: preparing}, begun: []string{"rotate-workload-identity-key-start"},
		},
		"workload identity key, completion": {
			before: phases{WorkloadIdentityKey: prepared}, operations: "rotate-workload-identity-key-complete", want: phases{WorkloadIdentityKey: completing},
			begun: []string{"rotate-workload-identity-key-complete"},
		},
		"observability": {
			operations: "rotate-observability-credentials", want: phases{ObservabilityBegun: true}, begun: []string{"rotate-observability-credentials"},
		},
		"everything": {
			operations: "rotate-credentials-start", want: phases{preparing, preparing, preparing, preparing, true, true, false}, begun: []string{"rotate-credentials-start"},
		},
		"everything, completion": {before: all(prepared), operations: "rotate-credentials-complete", want: all(completing), begun: []string{"rotate-credentials-complete"}},
		"everything, completion after that of the encryption key": {
			before: phases{prepared, prepared, completed, prepared, false, false, false}, operations: "rotate-credentials-complete",
			want: phases{completing, completing, completed, completing, false, false, false}, begun: []string{"rotate-credentials-complete"},
		},
		"several": {
			before: phases{CA: prepared}, operations: "rotate-ca-complete; rotate-serviceaccount-key-start;reconcile",
			want: phases{CA: completing, ServiceAccountKey: preparing}, begun: []string{"rotate-ca-complete", "rotate-serviceaccount-key-start", "reconcile"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			garden := tc.before.garden(tc.operations)
			begun := beginOperations(garden, metav1.NewTime(now))
			if diff := cmp.Diff(tc.begun, begun); diff != "" {
				t.Errorf("operations that begin (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, phasesOf(garden)); diff != "" {
				t.Errorf("phases (-want +got):\n%s", diff)
			}
			if tc.want == (phases{}) && garden.Status.Credentials != nil {
				t.Errorf("rotations that never began are in the status: %+v", garden.Status.Credentials)
			}
		})
	}
}

func TestFinishRotations(t *testing.T) {
	for name, tc := range map[string]struct {
		before, want phases
		continues    bool
	}{
		"nothing": {},
		"preparing": {
			before: phases{preparing, preparing, preparing, preparing, false, false, false}, want: phases{prepared, prepared, prepared, prepared, false, false, false},
		},
		"prepared stays": {
			before: phases{prepared, prepared, prepared, prepared, false, false, false}, want: phases{prepared, prepared, prepared, prepared, false, false, false},
		},
		"completing": {
			before: phases{completing, completing, completing, completing, false, false, false}, want: phases{completed, completed, completed, completed, false, false, false},
		},
		"the encryption key goes on by itself": {
			before: phases{EncryptionKey: preparing, AutoComplete: true}, want: phases{EncryptionKey: completing, AutoComplete: true}, continues: true,
		},
		"the encryption key is done": {before: phases{EncryptionKey: completing, AutoComplete: true}, want: phases{EncryptionKey: completed}},
		"observability":              {before: phases{ObservabilityBegun: true}, want: phases{ObservabilityBegun: true, ObservabilityDone: true}},
	} {
		t.Run(name, func(t *testing.T) {
			garden := tc.before.garden("")
			finishRotations(garden, metav1.NewTime(now))
			if diff := cmp.Diff(tc.want, phasesOf(garden)); diff != "" {
				t.Errorf("phases (-want +got):\n%s", diff)
			}
			if got := continues(garden); got != tc.continues {
				t.Errorf("continues() = %t, want %t", got, tc.continues)
			}
		})
	}
}

// With several members of etcd, old CAs are removed in two passes, as members must not disagree about which clients they trust.
func TestCAsOfReplicatedEtcdAreRemovedInTwoPasses(t *testing.T) {
	garden := phases{CA: completing}.garden("")
	garden.Spec.VirtualCluster.ControlPlane = &operatorv1alpha1.ControlPlane{HighAvailability: &operatorv1alpha1.HighAvailability{}}
	ca := garden.Status.Credentials.Rotation.CertificateAuthorities
	ca.LastCompletionTriggeredTime = &metav1.Time{Time: yesterday}
	finishRotations(garden, metav1.NewTime(now))
	if ca.Phase != completed || !continues(garden) {
		t.Errorf("after the first pass: phase %q, continues %t; want Completed and another pass", ca.Phase, continues(garden))
	}
	finishRotations(garden, metav1.NewTime(now))
	if ca.Phase != completed || continues(garden) {
		t.Errorf("after the second pass: phase %q, continues %t; want Completed and no other pass", ca.Phase, continues(garden))
	}
}
