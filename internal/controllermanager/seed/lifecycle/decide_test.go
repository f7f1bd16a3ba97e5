package lifecycle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

func TestDecide(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	v := Values{MonitorPeriod: 40 * time.Second, ShootMonitorPeriod: 200 * time.Second, SyncPeriod: 10 * time.Second}
	ago := func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }
	renewed := func(d time.Duration) *coordinationv1.Lease {
		return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: new(metav1.NewMicroTime(now.Add(-d)))}}
	}
	ready := func(status corev1beta1.ConditionStatus, changed, updated time.Duration) *corev1beta1.Condition {
		return &corev1beta1.Condition{Type: corev1beta1.SeedGardenletReady, Status: status, LastTransitionTime: ago(changed), LastUpdateTime: ago(updated)}
	}
	for name, tc := range map[string]struct {
		lease  *coordinationv1.Lease
		ready  *corev1beta1.Condition
		expiry *metav1.Time
		want   verdict
	}{
		"renewed 10s ago: check again when it expires": {lease: renewed(10 * time.Second), want: verdict{recheckIn: 30*time.Second + time.Millisecond}},
		"renewed just in time":                         {lease: renewed(40 * time.Second), want: verdict{recheckIn: time.Millisecond}},
		"renewed in the future, by another clock":      {lease: renewed(-time.Hour), want: verdict{recheckIn: 40 * time.Second}},
		"renewed too long ago":                         {lease: renewed(41 * time.Second), want: verdict{seedUnknown: true, recheckIn: 10 * time.Second}},
		"renewed much too long ago":                    {lease: renewed(201 * time.Second), want: verdict{seedUnknown: true, shootsUnknown: true, recheckIn: 10 * time.Second}},
		"a certificate that has expired": {
			lease: renewed(41 * time.Second), expiry: new(ago(time.Second)),
			want: verdict{seedUnknown: true, certificateExpired: true, recheckIn: 10 * time.Second},
		},
		"a certificate that is valid": {
			lease: renewed(41 * time.Second), expiry: new(ago(-time.Second)), want: verdict{seedUnknown: true, recheckIn: 10 * time.Second},
		},
		"an expired certificate of a gardenlet that renews its Lease": {
			lease: renewed(0), expiry: new(ago(time.Second)), want: verdict{recheckIn: 40 * time.Second},
		},
		"not started yet":                 {want: verdict{recheckIn: 10 * time.Second}},
		"a lease that was never renewed":  {lease: &coordinationv1.Lease{}, want: verdict{recheckIn: 10 * time.Second}},
		"no lease, condition fresh":       {ready: ready(corev1beta1.ConditionTrue, time.Hour, 10*time.Second), want: verdict{recheckIn: 30*time.Second + time.Millisecond}},
		"no lease, condition old":         {ready: ready(corev1beta1.ConditionTrue, time.Hour, 41*time.Second), want: verdict{seedUnknown: true, recheckIn: 10 * time.Second}},
		"no lease, unknown for a minute":  {ready: ready(corev1beta1.ConditionUnknown, time.Minute, time.Minute), want: verdict{seedUnknown: true, recheckIn: 10 * time.Second}},
		"no lease, unknown for 5 minutes": {ready: ready(corev1beta1.ConditionUnknown, 5*time.Minute, 0), want: verdict{seedUnknown: true, shootsUnknown: true, recheckIn: 10 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			seed := &corev1beta1.Seed{Status: corev1beta1.SeedStatus{ClientCertificateExpirationTimestamp: tc.expiry}}
			if tc.ready != nil {
				seed.Status.Conditions = []corev1beta1.Condition{*tc.ready}
			}
			if diff := cmp.Diff(tc.want, decide(seed, tc.lease, now, v), cmp.AllowUnexported(verdict{})); diff != "" {
				t.Errorf("decide() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnknown(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	was := metav1.NewTime(now.Add(-time.Hour))
	condition := func(typ corev1beta1.ConditionType, status corev1beta1.ConditionStatus) corev1beta1.Condition {
		return corev1beta1.Condition{Type: typ, Status: status, LastTransitionTime: was, LastUpdateTime: was, Reason: "Own"}
	}
	conditions := []corev1beta1.Condition{
		condition("A", corev1beta1.ConditionTrue), condition("B", corev1beta1.ConditionUnknown),
		condition(corev1beta1.SeedExtensionsReady, corev1beta1.ConditionTrue), condition(corev1beta1.ShootReadyForMigration, corev1beta1.ConditionFalse),
	}
	turned := func(typ corev1beta1.ConditionType) corev1beta1.Condition {
		return corev1beta1.Condition{
			Type: typ, Status: corev1beta1.ConditionUnknown, LastTransitionTime: metav1.NewTime(now), LastUpdateTime: metav1.NewTime(now),
			Reason: reasonShootUnknown, Message: messageShootUnknown,
		}
	}
	selfHosted := &corev1beta1.Shoot{}
	selfHosted.Spec.Provider.Workers = []corev1beta1.Worker{{ControlPlane: &corev1beta1.WorkerControlPlane{}}}
	for name, tc := range map[string]struct {
		shoot *corev1beta1.Shoot
		want  []corev1beta1.Condition
	}{
		"those that other controllers write stay": {&corev1beta1.Shoot{}, append([]corev1beta1.Condition{turned("A")}, conditions[1:]...)},
		"the gardenlet of a self-hosted shoot writes more": {
			selfHosted, []corev1beta1.Condition{turned("A"), conditions[1], turned(corev1beta1.SeedExtensionsReady), conditions[3]},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, changed := unknown(tc.shoot, conditions, now)
			if diff := cmp.Diff(tc.want, got); diff != "" || !changed || conditions[0].Status != corev1beta1.ConditionTrue {
				t.Errorf("unknown() changed %t (-want +got):\n%s", changed, diff)
			}
			if _, changed := unknown(tc.shoot, got, now.Add(time.Minute)); changed {
				t.Error("unknown() reports a change for its own result")
			}
		})
	}
}
