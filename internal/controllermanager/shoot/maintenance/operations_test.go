package maintenance

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

func TestAnnotate(t *testing.T) {
	const operation, later, retry = constants.GardenerOperation, constants.GardenerMaintenanceOperation, constants.FailedShootNeedsRetryOperation
	failed := func(s *corev1beta1.Shoot) { s.Status.LastOperation.State = corev1beta1.LastOperationStateFailed }
	every := func(period time.Duration) *corev1beta1.MaintenanceRotationConfig {
		return &corev1beta1.MaintenanceRotationConfig{RotationPeriod: &metav1.Duration{Duration: period}}
	}
	rotating := func(period time.Duration) func(*corev1beta1.Shoot) {
		return func(s *corev1beta1.Shoot) {
			s.Spec.Maintenance = &corev1beta1.Maintenance{AutoRotation: &corev1beta1.MaintenanceAutoRotation{
				Credentials: &corev1beta1.MaintenanceCredentialsAutoRotation{Observability: every(period), SSHKeypair: every(period), ETCDEncryptionKey: every(period)},
			}}
		}
	}
	type annotated map[string]string
	for name, tc := range map[string]struct {
		annotations annotated
		change      []func(*corev1beta1.Shoot)
		changed     bool
		tasks       []string
		want        annotated
		started     []string
		failures    int
	}{
		"no other operations":               {want: annotated{operation: "reconcile"}},
		"requested by a user":               {annotations: annotated{operation: "maintain"}, want: annotated{operation: "reconcile"}},
		"with tasks":                        {annotations: annotated{constants.ShootTasks: "a,b"}, tasks: []string{"b", "c"}, want: annotated{operation: "reconcile", constants.ShootTasks: "a,b,c"}},
		"with an operation that waited":     {annotations: annotated{operation: "maintain", later: "rotate-ssh-keypair;rollout-workers=a"}, want: annotated{operation: "reconcile;rotate-ssh-keypair;rollout-workers=a"}, started: []string{"rotate-ssh-keypair", "rollout-workers=a"}},
		"with a reconciliation that waited": {annotations: annotated{later: "reconcile"}, want: annotated{operation: "reconcile"}},
		"with an impossible operation":      {annotations: annotated{later: "rotate-ca-complete;rotate-ssh-keypair"}, want: annotated{operation: "reconcile;rotate-ssh-keypair"}, started: []string{"rotate-ssh-keypair"}, failures: 1},
		"with an operation that is for now": {annotations: annotated{later: "maintain"}, want: annotated{operation: "reconcile"}, failures: 1},
		"with an operation of a user":       {annotations: annotated{operation: "rotate-ca-start"}, want: annotated{operation: "reconcile;rotate-ca-start"}},
		"an update in place is under way":   {annotations: annotated{operation: "force-in-place-update", later: "rotate-ssh-keypair"}, want: annotated{operation: "force-in-place-update", later: "rotate-ssh-keypair"}},
		"not created yet":                   {annotations: annotated{operation: "maintain", later: "rotate-ssh-keypair"}, change: []func(*corev1beta1.Shoot){func(s *corev1beta1.Shoot) { s.Status.LastOperation = nil }}, want: annotated{later: "rotate-ssh-keypair"}},
		"failed":                            {annotations: annotated{operation: "maintain", later: "rotate-ssh-keypair"}, change: []func(*corev1beta1.Shoot){failed}, want: annotated{later: "rotate-ssh-keypair"}},
		"failed, and to be retried":         {annotations: annotated{retry: "true"}, change: []func(*corev1beta1.Shoot){failed}, want: annotated{operation: "retry"}, started: []string{"retry"}},
		"failed, and changed":               {change: []func(*corev1beta1.Shoot){failed}, changed: true, want: annotated{operation: "retry"}, started: []string{"retry"}},
		"to be retried, but it works":       {annotations: annotated{retry: "true"}, want: annotated{operation: "reconcile"}},
		"credentials are old":               {change: []func(*corev1beta1.Shoot){rotating(time.Hour)}, want: annotated{operation: "reconcile;rotate-observability-credentials;rotate-ssh-keypair;rotate-etcd-encryption-key"}, started: []string{"rotate-observability-credentials", "rotate-ssh-keypair", "rotate-etcd-encryption-key"}},
		"credentials are not old yet":       {change: []func(*corev1beta1.Shoot){rotating(11 * time.Hour)}, want: annotated{operation: "reconcile"}},
		"credentials are never rotated":     {change: []func(*corev1beta1.Shoot){rotating(0)}, want: annotated{operation: "reconcile"}},
		"a rotation is requested already":   {annotations: annotated{operation: "rotate-ssh-keypair", later: "rotate-observability-credentials"}, change: []func(*corev1beta1.Shoot){rotating(time.Hour)}, want: annotated{operation: "reconcile;rotate-ssh-keypair;rotate-observability-credentials;rotate-etcd-encryption-key"}, started: []string{"rotate-observability-credentials", "rotate-etcd-encryption-key"}},
		"no SSH access; hibernated": {change: []func(*corev1beta1.Shoot){rotating(time.Hour), func(s *corev1beta1.Shoot) {
			s.Spec.Provider.WorkersSettings = &corev1beta1.WorkersSettings{SSHAccess: &corev1beta1.SSHAccess{}}
			s.Status.Hibernated = true
		}}, want: annotated{operation: "reconcile;rotate-observability-credentials"}, started: []string{"rotate-observability-credentials"}},
		"rotated lately": {change: []func(*corev1beta1.Shoot){rotating(time.Hour), func(s *corev1beta1.Shoot) {
			lately := new(metav1.NewTime(now.Add(-time.Minute)))
			s.Status.Credentials = &corev1beta1.ShootCredentials{Rotation: &corev1beta1.ShootCredentialsRotation{
				Observability:     &corev1beta1.ObservabilityRotation{LastInitiationTime: lately},
				SSHKeypair:        &corev1beta1.ShootSSHKeypairRotation{LastInitiationTime: lately},
				ETCDEncryptionKey: &corev1beta1.ETCDEncryptionKeyRotation{LastInitiationTime: lately},
			}}
		}}, want: annotated{operation: "reconcile"}},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := &corev1beta1.Shoot{
				ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations, CreationTimestamp: metav1.NewTime(now.Add(-10 * time.Hour))},
				Spec: corev1beta1.ShootSpec{
					Kubernetes: corev1beta1.Kubernetes{Version: "1.36.1"}, Provider: corev1beta1.Provider{Workers: []corev1beta1.Worker{{Name: "a"}}},
				},
				Status: corev1beta1.ShootStatus{LastOperation: &corev1beta1.LastOperation{
					Type: corev1beta1.LastOperationTypeReconcile, State: corev1beta1.LastOperationStateSucceeded,
				}},
			}
			for _, c := range tc.change {
				c(shoot)
			}
			started, failures := annotate(shoot, tc.changed, tc.tasks, now)
			if diff := cmp.Diff(tc.want, annotated(shoot.Annotations), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.started, started, cmpopts.EquateEmpty()); diff != "" || len(failures) != tc.failures {
				t.Errorf("failures %q, started operations (-want +got):\n%s", failures, diff)
			}
		})
	}
}

// What has changed in the infrastructure or at the DNS provider would stay so, and new versions of extensions would not change what they should.
func TestMaintenanceReconcilesInfrastructureAndDNSRecords(t *testing.T) {
	const always = "deployInfrastructure,deployDNSRecordInternal,deployDNSRecordExternal,deployDNSRecordIngress"
	for want, v := range map[string]Values{
		always: {},
		always + ",restartControlPlanePods,restartCoreAddons": {RestartControlPlane: true, RestartCoreAddons: true},
	} {
		if got := strings.Join(tasks(v), ","); got != want {
			t.Errorf("tasks(%+v) = %s, want %s", v, got, want)
		}
	}
}
