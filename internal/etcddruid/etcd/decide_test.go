package etcd

import (
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
)

var (
	now    = time.Date(2026, 11, 18, 12, 30, 0, 0, time.UTC)
	limits = thresholds{unknown: time.Minute, notReady: 5 * time.Minute}
)

func TestMayActOnSpec(t *testing.T) {
	etcd := func(generation, observed int64, state druidv1alpha1.LastOperationState, annotations ...string) *druidv1alpha1.Etcd {
		e := &druidv1alpha1.Etcd{ObjectMeta: metav1.ObjectMeta{Generation: generation, Annotations: map[string]string{}}}
		if observed > 0 {
			e.Status.ObservedGeneration = &observed
			e.Status.LastOperation = &druidv1alpha1.LastOperation{State: state}
		}
		for _, a := range annotations {
			e.Annotations[a] = druidv1alpha1.DruidOperationReconcile
		}
		return e
	}
	const done = druidv1alpha1.LastOperationStateSucceeded
	for name, tc := range map[string]struct {
		etcd *druidv1alpha1.Etcd
		auto bool
		want bool
	}{
		"new":                            {etcd: etcd(1, 0, ""), want: true},
		"unchanged":                      {etcd: etcd(1, 1, done), want: true},
		"changed":                        {etcd: etcd(2, 1, done), want: false},
		"changed, auto reconcile":        {etcd: etcd(2, 1, done), auto: true, want: true},
		"changed, with the annotation":   {etcd: etcd(2, 1, done, druidv1alpha1.DruidOperationAnnotation), want: true},
		"with Gardener's annotation":     {etcd: etcd(2, 1, done, druidv1alpha1.GardenerOperationAnnotation), want: true},
		"begun, annotation removed":      {etcd: etcd(2, 1, druidv1alpha1.LastOperationStateProcessing), want: true},
		"failed, annotation removed":     {etcd: etcd(2, 1, druidv1alpha1.LastOperationStateError), want: true},
		"with the annotation, suspended": {etcd: etcd(2, 1, done, druidv1alpha1.DruidOperationAnnotation, druidv1alpha1.SuspendEtcdSpecReconcileAnnotation), want: false},
		"auto reconcile, suspended":      {etcd: etcd(2, 1, done, druidv1alpha1.SuspendEtcdSpecReconcileAnnotation), auto: true, want: false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := mayActOnSpec(tc.etcd, tc.auto); got != tc.want {
				t.Errorf("mayActOnSpec() = %t", got)
			}
		})
	}
}

// lease is the Lease of a member that was renewed some time ago; a negative age stands for never.
func lease(ordinal int32, holder string, age time.Duration, tls ...bool) coordinationv1.Lease {
	l := coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: memberName("etcd-main", ordinal)}}
	if age >= 0 {
		l.Spec.HolderIdentity, l.Spec.RenewTime = &holder, &metav1.MicroTime{Time: now.Add(-age)}
	}
	for _, enabled := range tls {
		l.Annotations = map[string]string{druidv1alpha1.LeaseAnnotationKeyPeerURLTLSEnabled: strconv.FormatBool(enabled)}
	}
	return l
}

func TestReplicas(t *testing.T) {
	for name, tc := range map[string]struct {
		want    int32
		current int32 // -1 if there is no StatefulSet
		tls     bool
		leases  []coordinationv1.Lease
		expect  int32
	}{
		"new":                          {want: 3, current: -1, tls: true, expect: 3},
		"further members without TLS":  {want: 3, current: 1, expect: 3},
		"further members, not yet TLS": {want: 3, current: 1, tls: true, leases: []coordinationv1.Lease{lease(0, "1:Leader", 0, false)}, expect: 1},
		"further members, with TLS":    {want: 3, current: 1, tls: true, leases: []coordinationv1.Lease{lease(0, "1:Leader", 0, true)}, expect: 3},
		"stopped":                      {want: 0, current: 3, tls: true, expect: 0},
		"started again":                {want: 3, current: 0, tls: true, leases: []coordinationv1.Lease{lease(0, "1:Leader", time.Hour, false)}, expect: 3},
		"only TLS is enabled":          {want: 1, current: 1, tls: true, leases: []coordinationv1.Lease{lease(0, "1:Leader", 0, false)}, expect: 1},
	} {
		t.Run(name, func(t *testing.T) {
			etcd := &druidv1alpha1.Etcd{ObjectMeta: metav1.ObjectMeta{Name: "etcd-main"}, Spec: druidv1alpha1.EtcdSpec{Replicas: tc.want}}
			if tc.tls {
				etcd.Spec.Etcd.PeerURLTLS = &druidv1alpha1.PeerTLSConfig{}
			}
			var statefulSet *appsv1.StatefulSet
			if tc.current >= 0 {
				statefulSet = &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{Replicas: &tc.current}}
			}
			if got := replicas(etcd, statefulSet, tc.leases); got != tc.expect {
				t.Errorf("replicas() = %d, want %d", got, tc.expect)
			}
		})
	}
}

func TestHealth(t *testing.T) {
	const (
		yes     = druidv1alpha1.ConditionTrue
		no      = druidv1alpha1.ConditionFalse
		unknown = druidv1alpha1.ConditionUnknown
	)
	type result struct {
		Ready, All druidv1alpha1.ConditionStatus
		Recheck    time.Duration
	}
	for name, tc := range map[string]struct {
		replicas, ready int32
		leases          []coordinationv1.Lease
		want            result
	}{
		"one":                   {1, 1, []coordinationv1.Lease{lease(0, "1:Leader", 10*time.Second)}, result{yes, yes, 51 * time.Second}},
		"never renewed":         {1, 1, []coordinationv1.Lease{lease(0, "", -1)}, result{no, no, 0}},
		"overdue":               {1, 1, []coordinationv1.Lease{lease(0, "1:Leader", 2*time.Minute)}, result{unknown, no, 3*time.Minute + time.Second}},
		"pod not ready":         {1, 0, []coordinationv1.Lease{lease(0, "1:Leader", 10*time.Second)}, result{no, no, 51 * time.Second}},
		"expired":               {1, 1, []coordinationv1.Lease{lease(0, "1:Leader", time.Hour)}, result{no, no, 0}},
		"three":                 {3, 3, []coordinationv1.Lease{lease(0, "1:Leader", 0), lease(1, "2:Member", 0), lease(2, "3:Member", 0)}, result{yes, yes, 61 * time.Second}},
		"two of three":          {3, 2, []coordinationv1.Lease{lease(0, "1:Leader", 0), lease(1, "2:Member", 0), lease(2, "3:Member", time.Hour)}, result{yes, no, 61 * time.Second}},
		"a learner has no vote": {3, 2, []coordinationv1.Lease{lease(0, "1:Leader", 0), lease(1, "2:Learner", 0), lease(2, "", -1)}, result{no, no, 61 * time.Second}},
		"stopped":               {0, 0, []coordinationv1.Lease{lease(0, "1:Leader", time.Hour)}, result{no, no, 0}},
		"an invalid identity":   {1, 1, []coordinationv1.Lease{lease(0, "nonsense", 0)}, result{yes, yes, 61 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			etcd := &druidv1alpha1.Etcd{ObjectMeta: metav1.ObjectMeta{Name: "etcd-main"}, Spec: druidv1alpha1.EtcdSpec{Replicas: tc.replicas}}
			statefulSet := &appsv1.StatefulSet{Status: appsv1.StatefulSetStatus{ReadyReplicas: tc.ready}}
			members, recheck := memberStatuses(etcd, tc.replicas, tc.leases, limits, now)
			got := result{decideReady(etcd, statefulSet, members).status, decideAllMembersReady(etcd, statefulSet, members).status, recheck}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("health (-want +got):\n%s", diff)
			}
			// The next pass says the same, with the same times.
			etcd.Status.Members = members
			again, _ := memberStatuses(etcd, tc.replicas, tc.leases, limits, now.Add(time.Millisecond))
			if diff := cmp.Diff(members, again); diff != "" {
				t.Errorf("members a moment later (-want +got):\n%s", diff)
			}
		})
	}
}

// With a store to which nothing can be written, an etcd never has a snapshot, and nothing but the condition says so.
func TestSnapshotsNeverWork(t *testing.T) {
	etcd, none := mainEtcd(), &coordinationv1.Lease{}
	r := &reconciler{clock: clocktesting.NewFakePassiveClock(now)}
	for _, tc := range []struct { // one after the other: each is decided on with the condition of before
		at      time.Duration
		full    *coordinationv1.Lease
		want    druidv1alpha1.ConditionStatus
		recheck time.Duration
	}{
		{at: 0, want: druidv1alpha1.ConditionUnknown, recheck: 15 * time.Minute},
		{at: 10 * time.Minute, want: druidv1alpha1.ConditionUnknown, recheck: 5 * time.Minute},
		{at: 15 * time.Minute, want: druidv1alpha1.ConditionFalse},
		{at: 16 * time.Minute, want: druidv1alpha1.ConditionFalse}, // and it stays so
		{
			at: 17 * time.Minute, full: &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: now.Add(17 * time.Minute)}}},
			want: druidv1alpha1.ConditionTrue, recheck: 16*time.Minute + time.Second,
		},
	} {
		full := tc.full
		if full == nil {
			full = none
		}
		verdict, recheck := decideBackupReady(etcd, full, none, now.Add(tc.at))
		if verdict.status != tc.want || recheck != tc.recheck {
			t.Errorf("after %s: %+v, %s; want %s, %s", tc.at, verdict, recheck, tc.want, tc.recheck)
		}
		r.clock = clocktesting.NewFakePassiveClock(now.Add(tc.at))
		r.setCondition(&etcd.Status, druidv1alpha1.ConditionTypeBackupReady, *verdict)
	}
}

func TestDecideBackupReady(t *testing.T) {
	renewed := func(age time.Duration) *coordinationv1.Lease {
		return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: now.Add(-age)}}}
	}
	for name, tc := range map[string]struct {
		full, delta *coordinationv1.Lease
		want        druidv1alpha1.ConditionStatus
		recheck     time.Duration
	}{
		"none yet":                        {&coordinationv1.Lease{}, &coordinationv1.Lease{}, druidv1alpha1.ConditionUnknown, 15 * time.Minute},
		"deltas after a restoration":      {&coordinationv1.Lease{}, renewed(time.Minute), druidv1alpha1.ConditionUnknown, 15*time.Minute + time.Second},
		"no deltas after a restoration":   {&coordinationv1.Lease{}, renewed(20 * time.Minute), druidv1alpha1.ConditionFalse, 0},
		"a full one, just now":            {renewed(time.Minute), nil, druidv1alpha1.ConditionTrue, 15*time.Minute + time.Second},
		"both in time":                    {renewed(10 * time.Hour), renewed(5 * time.Minute), druidv1alpha1.ConditionTrue, 11*time.Minute + time.Second},
		"no delta for long":               {renewed(10 * time.Hour), renewed(20 * time.Minute), druidv1alpha1.ConditionFalse, 0},
		"no full one since the day is on": {renewed(26 * time.Hour), renewed(time.Minute), druidv1alpha1.ConditionFalse, 0},
	} {
		t.Run(name, func(t *testing.T) {
			etcd := mainEtcd() // every day at 1:30, deltas every 5 minutes
			verdict, recheck := decideBackupReady(etcd, tc.full, tc.delta, now)
			if verdict.status != tc.want || recheck != tc.recheck {
				t.Errorf("decideBackupReady() = %+v, %s; want %s, %s", verdict, recheck, tc.want, tc.recheck)
			}
		})
	}
	if verdict, _ := decideBackupReady(eventsEtcd(), nil, nil, now); verdict != nil {
		t.Errorf("an etcd without backups: %+v", verdict)
	}
}
