package extensionobject

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
)

func TestResponsible(t *testing.T) {
	registration := corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1beta1.ControllerRegistrationSpec{
		Resources: []corev1beta1.ControllerResource{{Kind: "Worker", Type: "local"}, {Kind: "DNSRecord", Type: "local", Primary: new(false)}},
	}}
	installation := corev1beta1.ControllerInstallation{ObjectMeta: metav1.ObjectMeta{Name: "p-1"}, Spec: corev1beta1.ControllerInstallationSpec{
		SeedRef: &corev1.ObjectReference{Name: "s"}, RegistrationRef: corev1.ObjectReference{Name: "p"},
	}}
	garden := corev1beta1.ControllerInstallation{ObjectMeta: metav1.ObjectMeta{Name: "p-0"}, Spec: corev1beta1.ControllerInstallationSpec{
		RegistrationRef: corev1.ObjectReference{Name: "p"},
	}}
	for name, tc := range map[string]struct {
		kind, typ, seed, want string
	}{
		"responsible":      {"Worker", "local", "s", "p-1"},
		"not primary":      {"DNSRecord", "local", "s", ""},
		"of another kind":  {"Network", "local", "s", ""},
		"of another type":  {"Worker", "other", "s", ""},
		"on another seed":  {"Worker", "local", "other", ""},
		"not installed":    {"Worker", "local", "", ""},
		"nothing is known": {},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if ci := Responsible(tc.kind, tc.typ, tc.seed, []corev1beta1.ControllerInstallation{garden, installation}, []corev1beta1.ControllerRegistration{registration}); ci != nil {
				got = ci.Name
			}
			if got != tc.want {
				t.Errorf("Responsible() = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestNotRunning(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const yes, no, unknown = corev1beta1.ConditionTrue, corev1beta1.ConditionFalse, corev1beta1.ConditionUnknown
	for name, tc := range map[string]struct {
		// renewed is how long ago the heartbeat was; nil means that there is none. Period is that of the heartbeat.
		renewed *time.Duration
		period  int32
		healthy corev1beta1.ConditionStatus
		// since is for how long the installation is healthy or not.
		since time.Duration
		begun bool
		// reported is how long ago the controller has reported an operation. Zero means that it has not.
		reported time.Duration
		want     string
		after    time.Duration
	}{
		"it runs":                         {renewed: new(10 * time.Second), healthy: yes, after: 50 * time.Second},
		"it has missed one heartbeat":     {renewed: new(59 * time.Second), healthy: yes, after: time.Second},
		"stale":                           {renewed: new(time.Minute), healthy: yes, want: `it has not renewed its heartbeat, Lease "gardener-extension-heartbeat", since 2026-01-02T03:03:05Z`},
		"stale in the middle of its work": {renewed: new(time.Hour), healthy: yes, begun: true, want: `it has not renewed its heartbeat, Lease "gardener-extension-heartbeat", since 2026-01-02T02:04:05Z`},
		"stale, and last reported before": {
			renewed: new(time.Hour), healthy: yes, begun: true, reported: time.Hour - time.Minute,
			want: `it has not renewed its heartbeat, Lease "gardener-extension-heartbeat", since 2026-01-02T02:04:05Z`,
		},
		"the Lease is left of a version with a heartbeat": {renewed: new(time.Hour), healthy: yes, begun: true, reported: time.Second},
		"the Lease is left, unhealthy": {
			renewed: new(time.Hour), healthy: no, since: time.Hour, reported: time.Second, want: "it is unhealthy since 2026-01-02T02:04:05Z, and has not begun: no pods",
		},
		"with a period of its own":               {renewed: new(time.Minute), period: 60, healthy: yes, after: time.Minute},
		"its clock is ahead":                     {renewed: new(-time.Minute), healthy: yes, after: 2 * time.Minute},
		"it runs, and one of two pods does not":  {renewed: new(10 * time.Second), healthy: no, since: time.Hour, after: 50 * time.Second},
		"without a heartbeat":                    {healthy: yes, since: time.Hour},
		"without a heartbeat, nothing reported":  {},
		"without a heartbeat, unknown":           {healthy: unknown, since: time.Hour},
		"without a heartbeat, unhealthy":         {healthy: no, since: time.Hour, want: "it is unhealthy since 2026-01-02T02:04:05Z, and has not begun: no pods"},
		"without a heartbeat, being installed":   {healthy: no, since: 30 * time.Second, after: 90 * time.Second},
		"without a heartbeat, but it has begun":  {healthy: no, since: time.Hour, begun: true},
		"the Lease was never renewed, unhealthy": {renewed: new(time.Duration(-1)), healthy: no, since: time.Hour, want: "it is unhealthy since 2026-01-02T02:04:05Z, and has not begun: no pods"},
	} {
		t.Run(name, func(t *testing.T) {
			var lease *coordinationv1.Lease
			if tc.renewed != nil {
				lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "gardener-extension-heartbeat"}}
				if *tc.renewed != -1 {
					lease.Spec.RenewTime = new(metav1.NewMicroTime(now.Add(-*tc.renewed)))
				}
				if tc.period > 0 {
					lease.Spec.LeaseDurationSeconds = &tc.period
				}
			}
			ci := &corev1beta1.ControllerInstallation{}
			if tc.healthy != "" {
				ci.Status.Conditions = []corev1beta1.Condition{{
					Type: corev1beta1.ControllerInstallationHealthy, Status: tc.healthy, Message: "no pods", LastTransitionTime: metav1.NewTime(now.Add(-tc.since)),
				}}
			}
			var reported time.Time
			if tc.reported > 0 {
				reported = now.Add(-tc.reported)
			}
			if got, after := notRunning(lease, ci, tc.begun, reported, now); got != tc.want || after != tc.after {
				t.Errorf("notRunning() = %q, %s, want %q, %s", got, after, tc.want, tc.after)
			}
		})
	}
}

func TestBegun(t *testing.T) {
	for name, tc := range map[string]struct {
		operation string
		last      *corev1beta1.LastOperation
		observed  int64
		deleted   bool
		want      bool
	}{
		"new":                           {},
		"requested":                     {operation: "reconcile", last: &corev1beta1.LastOperation{}, observed: 2},
		"it has seen an older spec":     {last: &corev1beta1.LastOperation{}, observed: 1},
		"it works":                      {last: &corev1beta1.LastOperation{}, observed: 2, want: true},
		"deleted, and not seen":         {last: &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeReconcile}, observed: 2, deleted: true},
		"being deleted":                 {last: &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeDelete}, observed: 1, deleted: true, want: true},
		"being deleted, and once again": {operation: "reconcile", last: &corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeDelete}, deleted: true},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &extensionsv1alpha1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
			if tc.operation != "" {
				obj.Annotations = map[string]string{constants.GardenerOperation: tc.operation}
			}
			if tc.deleted {
				obj.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
			}
			obj.Status.LastOperation, obj.Status.ObservedGeneration = tc.last, tc.observed
			if got := begun(obj); got != tc.want {
				t.Errorf("begun() = %v", got)
			}
		})
	}
}
