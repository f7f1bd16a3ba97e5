package managedseedset

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
)

type change func(*replica)

// one returns a replica whose Shoot is reconciled and healthy.
func one(name string, changes ...change) replica {
	r := replica{shoot: &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"shoot.gardener.cloud/status": "healthy"}}}}
	operation(corev1beta1.LastOperationStateSucceeded)(&r)
	for _, c := range changes {
		c(&r)
	}
	return r
}

func operation(state corev1beta1.LastOperationState) change {
	return func(r *replica) { r.shoot.Status.LastOperation = &corev1beta1.LastOperation{State: state} }
}

// lately is after what is retried.
func lately(r *replica) {
	r.shoot.Status.LastOperation.LastUpdateTime = metav1.NewTime(lastSync.Add(time.Minute))
}

func deleted(r *replica)   { r.shoot.DeletionTimestamp = &metav1.Time{} }
func unhealthy(r *replica) { r.shoot.Labels = nil }
func hosting(r *replica)   { r.hosts = true }
func protected(r *replica) {
	r.shoot.Annotations = map[string]string{"seedmanagement.gardener.cloud/protect-from-deletion": "true"}
}

func retried(r *replica) {
	r.shoot.Annotations = map[string]string{"gardener.cloud/operation": "retry"}
}
func preparing(r *replica) { r.managedSeed = &seedmanagementv1alpha1.ManagedSeed{} }
func leaving(r *replica) {
	preparing(r)
	r.managedSeed.DeletionTimestamp = &metav1.Time{}
}

func registered(r *replica) {
	preparing(r)
	r.managedSeed.Status.Conditions = []corev1beta1.Condition{{Type: "SeedRegistered", Status: "True"}}
	r.seed = &corev1beta1.Seed{}
}

func ready(r *replica) {
	registered(r)
	r.seed.Status.Conditions = []corev1beta1.Condition{{Type: "GardenletReady", Status: "True"}, {Type: "SeedSystemComponentsHealthy", Status: "True"}}
}

func noBackups(r *replica) {
	ready(r)
	r.seed.Status.Conditions = append(r.seed.Status.Conditions, corev1beta1.Condition{Type: "BackupBucketsReady", Status: "False"})
}

// lastSync is a syncPeriod ago.
var lastSync = time.Unix(1000, 0)

const failed, processing = corev1beta1.LastOperationStateFailed, corev1beta1.LastOperationStateProcessing

func TestDecide(t *testing.T) {
	pending := func(name string, retries int32) *seedmanagementv1alpha1.PendingReplica {
		return &seedmanagementv1alpha1.PendingReplica{Name: name, Retries: &retries}
	}
	for name, tc := range map[string]struct {
		target   int
		next     int
		replicas []replica
		pending  *seedmanagementv1alpha1.PendingReplica
		want     verdict
		err      error
	}{
		"new":                        {target: 1, want: verdict{Action: createShoot, Name: "s-0"}},
		"another":                    {target: 2, replicas: []replica{one("s-4", ready)}, want: verdict{Action: createShoot, Name: "s-5"}},
		"numbers are not used again": {target: 1, next: 7, want: verdict{Action: createShoot, Name: "s-7"}},
		"its Shoot is created": {
			target: 2, replicas: []replica{one("s-0", operation(processing))}, pending: pending("s-0", 0),
			want: verdict{Action: waitForShootReconciled, Name: "s-0"},
		},
		"its Shoot is reconciled":       {target: 2, replicas: []replica{one("s-0")}, pending: pending("s-0", 0), want: verdict{Action: createManagedSeed, Name: "s-0"}},
		"its ManagedSeed is prepared":   {target: 2, replicas: []replica{one("s-0", preparing)}, pending: pending("s-0", 0), want: verdict{Action: waitForManagedSeedRegistered, Name: "s-0"}},
		"its Seed is not ready":         {target: 2, replicas: []replica{one("s-0", registered)}, pending: pending("s-0", 0), want: verdict{Action: waitForSeedReady, Name: "s-0"}},
		"its Seed has no backups":       {target: 2, replicas: []replica{one("s-0", noBackups)}, pending: pending("s-0", 0), want: verdict{Action: waitForSeedReady, Name: "s-0"}},
		"its Shoot is not healthy":      {target: 2, replicas: []replica{one("s-0", ready, unhealthy)}, pending: pending("s-0", 0), want: verdict{Action: waitForShootHealthy, Name: "s-0"}},
		"it is ready":                   {target: 2, replicas: []replica{one("s-0", ready)}, pending: pending("s-0", 0), want: verdict{Action: createShoot, Name: "s-1"}},
		"all are ready":                 {target: 1, replicas: []replica{one("s-0", ready)}},
		"a ready one becomes unhealthy": {target: 1, replicas: []replica{one("s-0", ready, unhealthy)}},
		"its Shoot failed": {
			target: 1, replicas: []replica{one("s-0", operation(failed))}, pending: pending("s-0", 2),
			want: verdict{Action: retryReconciliation, Name: "s-0", Retries: 3},
		},
		"it is to be retried": {
			target: 1, replicas: []replica{one("s-0", operation(failed), retried)}, pending: pending("s-0", 3),
			want: verdict{Action: waitForShootReconciled, Name: "s-0", Retries: 3},
		},
		"it failed too often": {target: 1, replicas: []replica{one("s-0", operation(failed))}, pending: pending("s-0", 3), want: verdict{GaveUp: "s-0"}},
		"then another is created": {
			target: 2, replicas: []replica{one("s-0", operation(failed))}, pending: pending("s-0", 3),
			want: verdict{Action: createShoot, Name: "s-1", GaveUp: "s-0"},
		},
		"it is retried later": {target: 1, replicas: []replica{one("s-0", operation(failed))}, want: verdict{Action: retryReconciliation, Name: "s-0", Retries: 1}},
		"it is not retried before a period has passed, whatever causes a pass": {target: 1, replicas: []replica{one("s-0", operation(failed), lately)}},
		"others are worked on until then": {
			target: 2, replicas: []replica{one("s-0", operation(failed), lately), one("s-1")}, want: verdict{Action: createManagedSeed, Name: "s-1"},
		},
		"it is pending, and has failed again": {
			target: 1, replicas: []replica{one("s-0", operation(failed), lately)}, pending: pending("s-0", 1),
			want: verdict{Action: retryReconciliation, Name: "s-0", Retries: 2},
		},
		"one too many: a failed one at once":                     {target: 1, replicas: []replica{one("s-0", ready), one("s-1", operation(failed), lately)}, want: verdict{Action: deleteShoot, Name: "s-1"}},
		"its deletion is not retried before a period has passed": {replicas: []replica{one("s-0", operation(failed), deleted, lately)}},
		"its deletion is retried later":                          {replicas: []replica{one("s-0", operation(failed), deleted)}, want: verdict{Action: retryDeletion, Name: "s-0", Retries: 1}},
		"its deletion failed too often, there is no other":       {replicas: []replica{one("s-0", operation(failed), deleted)}, pending: pending("s-0", 3), want: verdict{GaveUp: "s-0"}},
		"its deletion failed":                                    {replicas: []replica{one("s-0", operation(failed), deleted)}, pending: pending("s-0", 0), want: verdict{Action: retryDeletion, Name: "s-0", Retries: 1}},
		"its deletion failed too often": {
			replicas: []replica{one("s-0", operation(failed), deleted), one("s-1", ready)}, pending: pending("s-0", 3),
			want: verdict{Action: deleteManagedSeed, Name: "s-1", GaveUp: "s-0"},
		},
		"its deletion failed too often: no other one is deleted in its place": {
			target: 1, replicas: []replica{one("s-0", operation(failed), deleted, lately), one("s-1", ready)}, pending: pending("s-0", 3), want: verdict{GaveUp: "s-0"},
		},
		"nor before its deletion is retried": {target: 1, replicas: []replica{one("s-0", operation(failed), deleted, lately), one("s-1", ready)}},
		"it is, however, when a period has passed, and before one that failed": {
			target: 1, replicas: []replica{one("s-0", operation(failed)), one("s-1", operation(failed), deleted)}, pending: pending("s-0", 3),
			want: verdict{Action: retryDeletion, Name: "s-1", Retries: 1, GaveUp: "s-0"},
		},
		"a pending one is completed when another one is deleted": {
			target: 1, replicas: []replica{one("s-0", operation(processing), deleted), one("s-1")}, pending: pending("s-1", 0),
			want: verdict{Action: createManagedSeed, Name: "s-1"},
		},
		"one too many: the ManagedSeed":      {replicas: []replica{one("s-0", ready)}, want: verdict{Action: deleteManagedSeed, Name: "s-0"}},
		"one too many: its ManagedSeed ends": {replicas: []replica{one("s-0", leaving)}, pending: pending("s-0", 0), want: verdict{Action: waitForManagedSeedDeleted, Name: "s-0"}},
		"one too many: then the Shoot":       {replicas: []replica{one("s-0")}, pending: pending("s-0", 0), want: verdict{Action: deleteShoot, Name: "s-0"}},
		"one too many: its Shoot ends":       {replicas: []replica{one("s-0", deleted, operation(processing))}, pending: pending("s-0", 0), want: verdict{Action: waitForShootDeleted, Name: "s-0"}},
		"one too many: a failed one":         {target: 1, replicas: []replica{one("s-0", ready), one("s-1", operation(failed))}, want: verdict{Action: deleteShoot, Name: "s-1"}},
		"one too many: not ready":            {target: 1, replicas: []replica{one("s-0", ready), one("s-1", registered)}, want: verdict{Action: deleteManagedSeed, Name: "s-1"}},
		"one too many: not healthy":          {target: 1, replicas: []replica{one("s-0", ready), one("s-1", ready, unhealthy)}, want: verdict{Action: deleteManagedSeed, Name: "s-1"}},
		"one too many: the lower number":     {target: 1, replicas: []replica{one("s-10", ready), one("s-9", ready)}, want: verdict{Action: deleteManagedSeed, Name: "s-9"}},
		"one too many: not one with Shoots":  {target: 1, replicas: []replica{one("s-0", ready, hosting), one("s-1", ready)}, want: verdict{Action: deleteManagedSeed, Name: "s-1"}},
		"one too many, all are protected":    {target: 1, replicas: []replica{one("s-0", ready, protected), one("s-1", ready, hosting)}, err: errNotDeletable},
		"a pending one that is protected":    {replicas: []replica{one("s-0", registered, protected)}, pending: pending("s-0", 0), want: verdict{Action: waitForSeedReady, Name: "s-0"}},
		"a pending one that is gone":         {target: 1, replicas: []replica{one("s-1", ready)}, pending: pending("s-0", 0)},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := decide(observed{Set: "s", Target: tc.target, Next: tc.next, Replicas: tc.replicas, Pending: tc.pending, MaxRetries: 3, RetriedBefore: lastSync})
			if diff := cmp.Diff(tc.want, got); diff != "" || !errors.Is(err, tc.err) {
				t.Errorf("decide() error %v, (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestPending(t *testing.T) {
	now := time.Unix(1000, 0)
	before := &seedmanagementv1alpha1.PendingReplica{Name: "s-0", Reason: seedmanagementv1alpha1.ShootReconcilingReason, Since: metav1.NewTime(now.Add(-time.Hour))}
	for name, tc := range map[string]struct {
		verdict verdict
		want    *seedmanagementv1alpha1.PendingReplica
	}{
		"still": {verdict{Action: waitForShootReconciled, Name: "s-0"}, before},
		"a new state": {
			verdict{Action: createManagedSeed, Name: "s-0"},
			&seedmanagementv1alpha1.PendingReplica{Name: "s-0", Reason: seedmanagementv1alpha1.ManagedSeedPreparingReason, Since: metav1.NewTime(now)},
		},
		"retried": {
			verdict{Action: retryReconciliation, Name: "s-0", Retries: 2},
			&seedmanagementv1alpha1.PendingReplica{Name: "s-0", Reason: seedmanagementv1alpha1.ShootReconcileFailedReason, Since: metav1.NewTime(now), Retries: new(int32(2))},
		},
		"given up": {verdict{Action: giveUpReconciliation, Name: "s-0"}, nil},
		"done":     {verdict{}, nil},
	} {
		if diff := cmp.Diff(tc.want, tc.verdict.pending(before, now)); diff != "" {
			t.Errorf("%s: pending() (-want +got):\n%s", name, diff)
		}
	}
}

// Domains have the name of the replica, and both objects belong to the set.
func TestObjects(t *testing.T) {
	set := &seedmanagementv1alpha1.ManagedSeedSet{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "s", UID: "u"}}
	set.Spec.ShootTemplate.Spec.DNS = &corev1beta1.DNS{Domain: new("replica-name.example.com")}
	set.Spec.ShootTemplate.Labels, set.Spec.Template.Labels = map[string]string{"a": "b"}, map[string]string{"c": "d"}
	set.Spec.Template.Spec.Gardenlet.Config = &runtime.RawExtension{Raw: []byte(`{"seedConfig":{"spec":{"ingress":{"domain":"ingress.replica-name.example.com"}}}}`)}
	shoot := shootOf(set, "s-0")
	managedSeed, err := managedSeedOf(set, "s-0")
	if err != nil {
		t.Fatal(err)
	}
	if *shoot.Spec.DNS.Domain != "s-0.example.com" || *set.Spec.ShootTemplate.Spec.DNS.Domain != "replica-name.example.com" || shoot.Labels["a"] != "b" {
		t.Errorf("the Shoot is %+v", shoot)
	}
	if got := string(managedSeed.Spec.Gardenlet.Config.Raw); got != `{"seedConfig":{"spec":{"ingress":{"domain":"ingress.s-0.example.com"}}}}` || managedSeed.Spec.Shoot.Name != "s-0" {
		t.Errorf("the ManagedSeed is %+v with %s", managedSeed, got)
	}
	for _, object := range []metav1.Object{shoot, managedSeed} {
		if object.GetName() != "s-0" || object.GetNamespace() != "garden" || !metav1.IsControlledBy(object, set) {
			t.Errorf("metadata is %+v", object)
		}
	}
}
