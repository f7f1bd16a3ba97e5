package shootquotavalidator

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	clocktesting "k8s.io/utils/clock/testing"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/apiserver/admission/admissiontest"
)

func TestQuota(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	const namespace = "garden-dev"
	shoot := func(name, binding string, maximum int32, change ...func(*corev1beta1.Shoot)) *corev1beta1.Shoot {
		s := &corev1beta1.Shoot{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec: corev1beta1.ShootSpec{
				CloudProfile: &corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "cloud"}, CredentialsBindingName: &binding,
				Provider: corev1beta1.Provider{Workers: []corev1beta1.Worker{{
					Name: "pool", Maximum: maximum, Machine: corev1beta1.Machine{Type: "small"}, Volume: &corev1beta1.Volume{
						Type:       new("ssd"),
						VolumeSize: "50Gi",
					},
				}}},
			},
		}
		for _, c := range change {
			c(s)
		}
		return s
	}
	binding := func(name, quota string) *securityv1alpha1.CredentialsBinding {
		b := &securityv1alpha1.CredentialsBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		if quota != "" {
			b.Quotas = []corev1.ObjectReference{{Namespace: namespace, Name: quota}}
		}
		b.CredentialsRef = corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: name}
		return b
	}
	quota := func(name, scope string, metrics corev1.ResourceList) *corev1beta1.Quota {
		return &corev1beta1.Quota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1beta1.QuotaSpec{
			Scope: corev1.ObjectReference{Kind: scope}, Metrics: metrics, ClusterLifetimeDays: new(int32(7)),
		}}
	}
	cpu := corev1.ResourceList{"cpu": resource.MustParse("10")}
	own := &corev1beta1.NamespacedCloudProfile{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "own"}}
	own.Spec.Parent = corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "cloud"}
	own.Status.CloudProfileSpec = &corev1beta1.CloudProfileSpec{
		Type:         "cloud",
		MachineTypes: []corev1beta1.MachineType{{Name: "small", CPU: resource.MustParse("2")}, {Name: "free", CPU: resource.MustParse("0")}},
		VolumeTypes:  []corev1beta1.VolumeType{{Name: "ssd", Class: "premium"}, {Name: "free", Class: "standard"}},
	}
	ofOwn := func(machine, volume string) func(*corev1beta1.Shoot) {
		return func(s *corev1beta1.Shoot) {
			s.Spec.CloudProfile = &corev1beta1.CloudProfileReference{Kind: "NamespacedCloudProfile", Name: "own"}
			s.Spec.Provider.Workers[0].Machine.Type, s.Spec.Provider.Workers[0].Volume.Type = machine, &volume
		}
	}
	garden := admissiontest.Reader(t,
		&corev1beta1.CloudProfile{ObjectMeta: metav1.ObjectMeta{Name: "cloud"}, Spec: corev1beta1.CloudProfileSpec{
			MachineTypes: []corev1beta1.MachineType{{Name: "small", CPU: resource.MustParse("2"), Memory: resource.MustParse("8Gi")}},
			VolumeTypes:  []corev1beta1.VolumeType{{Name: "ssd", Class: "premium"}},
		}},
		own,
		binding("balancers", "balancers"), quota("balancers", "Secret", corev1.ResourceList{"loadbalancer": resource.MustParse("10")}),
		binding("free", ""), binding("project", "project"), binding("project-too", "project"), binding("disk", "disk"),
		quota("project", "Project", cpu), quota("disk", "Secret", corev1.ResourceList{"storage.premium": resource.MustParse("100Gi")}),
		shoot("other", "project-too", 2), shoot("elsewhere", "free", 100),
	)
	expires := func(at string) func(*corev1beta1.Shoot) {
		return func(s *corev1beta1.Shoot) { s.Annotations = map[string]string{constants.ShootExpirationTimestamp: at} }
	}
	noVolume := func(s *corev1beta1.Shoot) { s.Spec.Provider.Workers[0].Volume = nil }
	for name, tc := range map[string]struct {
		shoot, old *corev1beta1.Shoot
		want       metav1.StatusReason
	}{
		"no quota":                           {shoot: shoot("new", "free", 100)},
		"what is left":                       {shoot: shoot("new", "project", 3)},
		"more than is left, with the others": {shoot: shoot("new", "project", 4), want: metav1.StatusReasonForbidden},
		"more disks than there are":          {shoot: shoot("new", "disk", 3), want: metav1.StatusReasonForbidden},
		"a machine type of the CloudProfile": {shoot: shoot("new", "project", 3, ofOwn("small", "ssd"))},
		"a machine type of the project":      {shoot: shoot("new", "project", 3, ofOwn("free", "ssd")), want: metav1.StatusReasonForbidden},
		"a volume type of the project":       {shoot: shoot("new", "disk", 1, ofOwn("small", "free")), want: metav1.StatusReasonForbidden},
		"one that is not counted":            {shoot: shoot("new", "balancers", 3, ofOwn("free", "free"))},
		"as many as before":                  {shoot: shoot("new", "project", 100), old: shoot("new", "project", 100)},
		"more than before": {
			shoot: shoot("new", "project", 101), old: shoot("new", "project", 100),
			want: metav1.StatusReasonForbidden,
		},
		"less than before, and still too many": {shoot: shoot("new", "project", 50), old: shoot("new", "project", 100)},
		"an unknown class of volumes":          {shoot: shoot("new", "disk", 1, noVolume), want: metav1.StatusReasonInternalError},
		"a life of a week":                     {shoot: shoot("new", "disk", 1, expires("2026-11-28T12:00:00Z")), old: shoot("new", "disk", 1)},
		"a longer life": {shoot: shoot("new", "disk", 1, expires("2026-11-28T12:00:01Z")), old: shoot("new", "disk",
			1), want: metav1.StatusReasonForbidden},
		"a life of a week from the start": {shoot: shoot("new", "disk", 1, expires("2026-11-28T12:00:00Z"))},
		"a longer life from the start":    {shoot: shoot("new", "disk", 1, expires("2026-11-28T12:00:01Z")), want: metav1.StatusReasonForbidden},
		"a life that is no time":          {shoot: shoot("new", "disk", 1, expires("never")), want: metav1.StatusReasonForbidden},
		"a longer life without quota":     {shoot: shoot("new", "free", 1, expires("2036-11-28T12:00:00Z"))},
		"a longer life, from another quota": {
			shoot: shoot("new", "disk", 1, expires("2026-11-28T12:00:01Z")), old: shoot("new", "free", 1, expires("2026-11-28T12:00:01Z")),
			want: metav1.StatusReasonForbidden,
		},
		"a longer life that is kept": {
			shoot: shoot("new", "disk", 1, expires("2026-11-28T12:00:01Z")), old: shoot("new", "disk", 1, expires("2026-11-28T12:00:01Z")),
		},
		"the same end with another quota": {
			shoot: shoot("new", "disk", 1, expires("2026-11-28T12:00:00Z")), old: shoot("new", "free", 1, expires("2026-11-28T12:00:00Z")),
		},
		"a life without end": {shoot: shoot("new", "disk", 1), old: shoot("new", "disk", 1,
			expires("2026-11-28T12:00:00Z")), want: metav1.StatusReasonForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update), clock: clocktesting.NewFakePassiveClock(now)}
			p.GardenCache = garden
			request := admissiontest.Request{Object: tc.shoot, Resource: "shoots"}
			if tc.old != nil {
				request.Old = tc.old
			}
			err := p.Validate(t.Context(), request.Attributes(), nil)
			if got := admissiontest.Reason(err); got != tc.want {
				t.Errorf("Validate() = %v, reason %q, want %q", err, got, tc.want)
			}
		})
	}
}
