package core

import (
	"slices"
	"strings"
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

func TestDeprecationWarnings(t *testing.T) {
	deprecated := func() *corev1beta1.Shoot {
		s := &corev1beta1.Shoot{}
		s.Spec.SecretBindingName, s.Spec.CloudProfileName = new("b"), new("p")
		s.Spec.DNS = &corev1beta1.DNS{Providers: []corev1beta1.DNSProvider{{SecretName: new("s")}}}
		s.Spec.Addons = &corev1beta1.Addons{NginxIngress: &corev1beta1.NginxIngress{Addon: corev1beta1.Addon{Enabled: true}}}
		s.Spec.Kubernetes.ClusterAutoscaler = &corev1beta1.ClusterAutoscaler{IgnoreTaints: []string{"t"}, MaxEmptyBulkDelete: new(int32(1))}
		s.Spec.Kubernetes.KubeAPIServer = &corev1beta1.KubeAPIServerConfig{
			EnableAnonymousAuthentication: new(true), WatchCacheSizes: &corev1beta1.WatchCacheSizes{Default: new(int32(1))},
		}
		s.Spec.Kubernetes.KubeControllerManager = &corev1beta1.KubeControllerManagerConfig{PodEvictionTimeout: &metav1.Duration{}}
		s.Spec.Kubernetes.KubeScheduler = &corev1beta1.KubeSchedulerConfig{KubeMaxPDVols: new("1")}
		return s
	}
	current := &corev1beta1.Shoot{}
	current.Spec.CredentialsBindingName, current.Spec.CloudProfile = new("b"), &corev1beta1.CloudProfileReference{Name: "p"}
	current.Spec.CloudProfileName = new("p") // kept in step
	for name, tc := range map[string]struct {
		shoot, old *corev1beta1.Shoot
		want       int
	}{
		"a new Shoot with all of them":     {shoot: deprecated(), want: 10},
		"a new Shoot without any":          {shoot: current},
		"a Shoot that gets all of them":    {shoot: deprecated(), old: current, want: 10},
		"a Shoot that has had all of them": {shoot: deprecated(), old: deprecated()},
	} {
		t.Run(name, func(t *testing.T) {
			got := deprecationWarnings(tc.shoot, tc.old)
			if len(got) != tc.want {
				t.Errorf("%d warnings, want %d: %q", len(got), tc.want, got)
			}
			if tc.want > 0 && !slices.Contains(got, "spec.secretBindingName is deprecated: use spec.credentialsBindingName") {
				t.Errorf("warnings are %q", got)
			}
		})
	}
}

// Without a warning, a self-hosted Shoot would stay without a status, and nothing would say why.
func TestSelfHostedWarning(t *testing.T) {
	seeded, selfHosted := &corev1beta1.Shoot{}, &corev1beta1.Shoot{}
	selfHosted.Spec.Provider.Workers = []corev1beta1.Worker{{ControlPlane: &corev1beta1.WorkerControlPlane{}}}
	for name, tc := range map[string]struct {
		shoot, old *corev1beta1.Shoot
		want       int
	}{
		"a new one": {shoot: selfHosted, want: 1}, "an update of one": {shoot: selfHosted, old: selfHosted}, "another": {shoot: seeded},
	} {
		if got := selfHostedWarnings(tc.shoot, tc.old); len(got) != tc.want {
			t.Errorf("%s: warnings are %q, want %d", name, got, tc.want)
		}
	}
}

// Operations that another one includes are removed when the Shoot is stored, and start no generation of their own.
func TestCoveredOperations(t *testing.T) {
	strategy := shoot(Settings{}).Strategies(runtime.NewScheme()).Update
	for name, tc := range map[string]struct {
		stored, request, want string
		generation            int64
	}{
		"the start of all": {
			request: "rotate-ca-start;rotate-credentials-start;rotate-ssh-keypair;reconcile", want: "rotate-credentials-start", generation: 2,
		},
		"the same again": {
			stored: "rotate-credentials-start", request: "rotate-credentials-start;rotate-ca-start", want: "rotate-credentials-start", generation: 1,
		},
		"without rollout": {
			request: "rotate-credentials-start-without-workers-rollout;rotate-serviceaccount-key-start-without-workers-rollout;rotate-observability-credentials",
			want:    "rotate-credentials-start-without-workers-rollout", generation: 2,
		},
		"the completion of all": {
			request: "rotate-credentials-complete;rotate-serviceaccount-key-complete;rollout-workers=a", want: "rotate-credentials-complete;rollout-workers=a", generation: 2,
		},
		"a change that is forced starts a generation by itself": {request: "force-in-place-update", want: "force-in-place-update", generation: 1},
		"nothing in common": {request: "rotate-ca-start;rotate-ssh-keypair", want: "rotate-ca-start;rotate-ssh-keypair", generation: 2},
	} {
		t.Run(name, func(t *testing.T) {
			old := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Generation: 1, Annotations: map[string]string{"gardener.cloud/operation": tc.stored}}}
			old.Status.LastOperation = &corev1beta1.LastOperation{State: corev1beta1.LastOperationStateSucceeded}
			s := old.DeepCopy()
			s.Annotations = map[string]string{"gardener.cloud/operation": tc.request, "maintenance.gardener.cloud/operation": tc.request}
			strategy.PrepareForUpdate(t.Context(), s, old)
			strategy.Canonicalize(s)
			if got := s.Annotations["gardener.cloud/operation"]; got != tc.want || s.Generation != tc.generation {
				t.Errorf("operations %q, generation %d, want %q and %d", got, s.Generation, tc.want, tc.generation)
			}
			if got := s.Annotations["maintenance.gardener.cloud/operation"]; strings.TrimSuffix(got, ";reconcile") != tc.want {
				t.Errorf("operations for the maintenance are %q, want %q", got, tc.want)
			}
		})
	}
}

// The gardenlet gives up the deletion that has failed when another generation is deleted.
func TestGenerationOfForcedDeletion(t *testing.T) {
	strategy := shoot(Settings{}).Strategies(runtime.NewScheme()).Update
	for name, tc := range map[string]struct {
		before, now string
		deleted     bool
		want        int64
	}{
		"confirmed":                   {now: "true", deleted: true, want: 2},
		"confirmed already":           {before: "true", now: "1", deleted: true, want: 1},
		"not confirmed":               {now: "false", deleted: true, want: 1},
		"confirmed before a deletion": {now: "true", want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			old := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Generation: 1}}
			if tc.deleted {
				old.DeletionTimestamp = &metav1.Time{}
			}
			s := old.DeepCopy()
			old.Annotations = map[string]string{"confirmation.gardener.cloud/force-deletion": tc.before}
			s.Annotations = map[string]string{"confirmation.gardener.cloud/force-deletion": tc.now}
			strategy.PrepareForUpdate(t.Context(), s, old)
			if s.Generation != tc.want {
				t.Errorf("generation %d, want %d", s.Generation, tc.want)
			}
		})
	}
}
