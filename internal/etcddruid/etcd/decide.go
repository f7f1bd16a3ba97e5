package etcd

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/robfig/cron/v3"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
)

// unsupportedError is about a field of the spec that is not supported. Only a change of the spec helps.
type unsupportedError struct{ message string }

func (u *unsupportedError) Error() string { return u.message }

// supported returns an error for fields of a spec that are not supported.
func supported(etcd *druidv1alpha1.Etcd) error {
	spec := &etcd.Spec
	switch {
	case spec.MemberNamePrefix != nil:
		return &unsupportedError{"spec.memberNamePrefix is not supported"}
	case len(spec.ExternallyManagedMemberAddresses) > 0:
		return &unsupportedError{"spec.externallyManagedMemberAddresses is not supported"}
	case spec.Etcd.BootstrapWithExistingCluster != nil:
		return &unsupportedError{"spec.etcd.bootstrapWithExistingCluster is not supported"}
	case spec.Etcd.AuthSecretRef != nil:
		return &unsupportedError{"spec.etcd.authSecretRef is not supported"}
	}
	return nil
}

// operation returns the operation annotation of an Etcd, empty if there is none.
func operation(etcd *druidv1alpha1.Etcd) string {
	for _, key := range []string{druidv1alpha1.DruidOperationAnnotation, druidv1alpha1.GardenerOperationAnnotation} {
		if value := etcd.Annotations[key]; value != "" {
			return value
		}
	}
	return ""
}

// mayActOnSpec reports whether the current spec may be acted on.
func mayActOnSpec(etcd *druidv1alpha1.Etcd, auto bool) bool {
	if _, suspended := etcd.Annotations[druidv1alpha1.SuspendEtcdSpecReconcileAnnotation]; suspended {
		return false
	}
	status := &etcd.Status
	return auto || operation(etcd) == druidv1alpha1.DruidOperationReconcile || seen(etcd) || status.ObservedGeneration == nil ||
		// It was begun, and the annotation has been removed since.
		status.LastOperation != nil && status.LastOperation.State != druidv1alpha1.LastOperationStateSucceeded
}

// seen reports whether the current spec was acted on.
func seen(etcd *druidv1alpha1.Etcd) bool {
	return etcd.Status.ObservedGeneration != nil && *etcd.Status.ObservedGeneration == etcd.Generation
}

// mayApply reports whether objects may be applied, also if the current spec was acted on already.
func mayApply(etcd *druidv1alpha1.Etcd) bool {
	_, unprotected := etcd.Annotations[druidv1alpha1.DisableEtcdComponentProtectionAnnotation]
	return !unprotected || !seen(etcd) || operation(etcd) == druidv1alpha1.DruidOperationReconcile
}

// replicas returns the current number of replicas of the StatefulSet. When peer TLS is enabled together with scaling up from one member, that
// member has to be restarted first. Afterwards it could not be: a StatefulSet restarts the first pod last, when all others are ready, and
// they would wait for the first one to use TLS.
func replicas(etcd *druidv1alpha1.Etcd, statefulSet *appsv1.StatefulSet, leases []coordinationv1.Lease) int32 {
	desired := etcd.Spec.Replicas
	if statefulSet == nil || statefulSet.Spec.Replicas == nil || etcd.Spec.Etcd.PeerURLTLS == nil {
		return desired
	}
	current := *statefulSet.Spec.Replicas
	if current == 0 || desired <= current {
		return desired
	}
	if enabled := peerTLS(etcd.Name, current, leases); enabled != nil && !*enabled {
		return current
	}
	return desired
}

// peerTLS reports whether all members use peer TLS, nil if it is unknown for some.
func peerTLS(etcdName string, members int32, leases []coordinationv1.Lease) *bool {
	all := members > 0
	for i := range members {
		at := slices.IndexFunc(leases, func(l coordinationv1.Lease) bool { return l.Name == memberName(etcdName, i) })
		if at < 0 {
			return nil
		}
		enabled, err := strconv.ParseBool(leases[at].Annotations[druidv1alpha1.LeaseAnnotationKeyPeerURLTLSEnabled])
		if err != nil {
			return nil
		}
		all = all && enabled
	}
	return &all
}

// thresholds are the ages of a member's Lease after which the member is unknown or not ready.
type thresholds struct{ unknown, notReady time.Duration }

// Reasons of the status of members.
const (
	reasonRenewed    = "LeaseSucceeded"
	reasonOverdue    = "UnknownGracePeriodExceeded"
	reasonExpired    = "LeaseExpired"
	reasonNotRenewed = "LeaseNotRenewed"
)

// memberStatuses returns the statuses of members by their Leases, and the delay until one of them may change, 0 if none may.
func memberStatuses(etcd *druidv1alpha1.Etcd, members int32, leases []coordinationv1.Lease, limits thresholds, now time.Time) ([]druidv1alpha1.EtcdMemberStatus, time.Duration) {
	var (
		out     []druidv1alpha1.EtcdMemberStatus
		recheck time.Duration
	)
	for i := range members {
		name := memberName(etcd.Name, i)
		at := slices.IndexFunc(leases, func(l coordinationv1.Lease) bool { return l.Name == name })
		if at < 0 {
			continue
		}
		lease := &leases[at]
		status := druidv1alpha1.EtcdMemberStatus{Name: name, Status: druidv1alpha1.EtcdMemberStatusUnknown, Reason: reasonNotRenewed}
		if holder := lease.Spec.HolderIdentity; holder != nil && lease.Spec.RenewTime != nil {
			if id, role, err := druidv1alpha1.ParseMemberIdentity(*holder); err == nil {
				status.ID, status.Role = &id, &role
			}
			age := now.Sub(lease.Spec.RenewTime.Time)
			var next time.Duration
			switch {
			case age <= limits.unknown:
				status.Status, status.Reason = druidv1alpha1.EtcdMemberStatusReady, reasonRenewed
				next = limits.unknown - age
			case age <= limits.notReady:
				status.Reason = reasonOverdue
				next = limits.notReady - age
			default:
				status.Status, status.Reason = druidv1alpha1.EtcdMemberStatusNotReady, reasonExpired
			}
			if next > 0 && (recheck == 0 || next < recheck) {
				recheck = next
			}
		}
		status.LastTransitionTime = metav1.NewTime(now)
		if before := slices.IndexFunc(etcd.Status.Members, func(m druidv1alpha1.EtcdMemberStatus) bool { return m.Name == name }); before >= 0 && etcd.Status.Members[before].Status == status.Status {
			status.LastTransitionTime = etcd.Status.Members[before].LastTransitionTime
		}
		out = append(out, status)
	}
	if recheck > 0 {
		recheck += time.Second // so that the threshold has passed
	}
	return out, recheck
}

// verdict is a condition without its times.
type verdict struct {
	status  druidv1alpha1.ConditionStatus
	reason  string
	message string
}

// decideReady reports whether there is a quorum.
func decideReady(etcd *druidv1alpha1.Etcd, statefulSet *appsv1.StatefulSet, members []druidv1alpha1.EtcdMemberStatus) verdict {
	replicas := etcd.Spec.Replicas
	if replicas == 0 {
		return verdict{druidv1alpha1.ConditionFalse, "Stopped", "spec.replicas is 0"}
	}
	voters, overdue := 0, 0
	for _, member := range members {
		switch {
		case member.Role != nil && *member.Role == druidv1alpha1.EtcdRoleLearner:
		case member.Status == druidv1alpha1.EtcdMemberStatusReady:
			voters++
		case member.Status == druidv1alpha1.EtcdMemberStatusUnknown && member.Reason == reasonOverdue:
			overdue++
		}
	}
	ready := int(readyReplicas(statefulSet))
	quorum := int(replicas)/2 + 1
	message := fmt.Sprintf("%d of %d pods are ready, %d members with a vote renew their Leases; %d are needed", ready, replicas, voters, quorum)
	switch {
	case ready >= quorum && voters >= quorum:
		return verdict{druidv1alpha1.ConditionTrue, "Quorate", "A quorum of the members is ready"}
	case ready >= quorum && voters+overdue >= quorum:
		return verdict{druidv1alpha1.ConditionUnknown, "MembersSilent", message}
	}
	return verdict{druidv1alpha1.ConditionFalse, "QuorumLost", message}
}

func readyReplicas(statefulSet *appsv1.StatefulSet) int32 {
	if statefulSet == nil {
		return 0
	}
	return statefulSet.Status.ReadyReplicas
}

// decideAllMembersReady reports whether all members are ready.
func decideAllMembersReady(etcd *druidv1alpha1.Etcd, statefulSet *appsv1.StatefulSet, members []druidv1alpha1.EtcdMemberStatus) verdict {
	replicas := etcd.Spec.Replicas
	if replicas == 0 {
		return verdict{druidv1alpha1.ConditionFalse, "Stopped", "spec.replicas is 0"}
	}
	readyMembers := map[string]bool{}
	for _, member := range members {
		readyMembers[member.Name] = votes(member)
	}
	for i := range replicas {
		if name := memberName(etcd.Name, i); !readyMembers[name] {
			return verdict{druidv1alpha1.ConditionFalse, "NotAllMembersReady", fmt.Sprintf("Member %q is not ready", name)}
		}
	}
	if ready := readyReplicas(statefulSet); ready < replicas {
		return verdict{druidv1alpha1.ConditionFalse, "NotAllMembersReady", fmt.Sprintf("%d of %d pods are ready", ready, replicas)}
	}
	return verdict{druidv1alpha1.ConditionTrue, "AllMembersReady", "All members are ready"}
}

// decideAllMembersUpdated reports whether all pods have the spec that was acted on last. moving says which member moves to another zone, if one does.
func decideAllMembersUpdated(statefulSet *appsv1.StatefulSet, moving string) verdict {
	switch {
	case statefulSet == nil:
		return verdict{druidv1alpha1.ConditionUnknown, "NoStatefulSet", "There is no StatefulSet"}
	case moving != "":
		return verdict{druidv1alpha1.ConditionFalse, reasonMoving, moving}
	}
	replicas, status := ptr.Deref(statefulSet.Spec.Replicas, 1), statefulSet.Status
	switch {
	case status.ObservedGeneration < statefulSet.Generation:
		return verdict{druidv1alpha1.ConditionFalse, "NotAllMembersUpdated", "The last change of the StatefulSet is not observed by its controller yet"}
	case status.UpdatedReplicas < replicas || status.CurrentRevision != status.UpdateRevision:
		return verdict{druidv1alpha1.ConditionFalse, "NotAllMembersUpdated", fmt.Sprintf("%d of %d pods are updated", status.UpdatedReplicas, replicas)}
	}
	return verdict{druidv1alpha1.ConditionTrue, "AllMembersUpdated", "All members are updated"}
}

const (
	// fullGrace is how long after its schedule a full snapshot is overdue, deltaPeriods after how many periods a delta snapshot is.
	fullGrace    = time.Hour
	deltaPeriods = 3
	// defaultDeltaPeriod is that of etcd-backup-restore.
	defaultDeltaPeriod = 20 * time.Second
	// deltaGrace is added to the periods, for the case that they are short.
	deltaGrace = time.Minute
	// firstWithin is how long the first snapshot may take. It is taken as soon as a member leads.
	firstWithin = 15 * time.Minute
)

// decideBackupReady reports whether backups are as recent as configured. It returns nil if no backups are configured.
func decideBackupReady(etcd *druidv1alpha1.Etcd, full, delta *coordinationv1.Lease, now time.Time) (*verdict, time.Duration) {
	backup := &etcd.Spec.Backup
	if backup.Store == nil || etcd.Spec.Replicas == 0 {
		return nil, 0
	}
	schedule, err := cron.ParseStandard(ptr.Deref(backup.FullSnapshotSchedule, "0 0 * * *"))
	if err != nil {
		return &verdict{druidv1alpha1.ConditionFalse, "InvalidSchedule", fmt.Sprintf("spec.backup.fullSnapshotSchedule: %v", err)}, 0
	}
	fullAt, deltaAt := renewTime(full), renewTime(delta)
	if fullAt.IsZero() && deltaAt.IsZero() {
		return decideFirstSnapshot(etcd, now)
	}
	ready, recheck := &verdict{druidv1alpha1.ConditionTrue, "BackupSucceeded", "Snapshots are as recent as configured"}, time.Duration(math.MaxInt64)
	if fullAt.IsZero() { // the deltas are of the full snapshot of another cluster, which this one was restored from
		ready = &verdict{druidv1alpha1.ConditionUnknown, "NoFullSnapshot", "No full snapshot was taken yet"}
	} else {
		due := schedule.Next(fullAt.UTC()).Add(fullGrace)
		if now.After(due) {
			return &verdict{druidv1alpha1.ConditionFalse, "BackupFailed", fmt.Sprintf("No full snapshot since %s", fullAt.UTC().Format(time.RFC3339))}, 0
		}
		recheck = due.Sub(now)
	}
	period := defaultDeltaPeriod
	if backup.DeltaSnapshotPeriod != nil {
		period = backup.DeltaSnapshotPeriod.Duration
	}
	if period >= time.Second {
		last := fullAt
		if deltaAt.After(last) {
			last = deltaAt
		}
		due := last.Add(deltaPeriods*period + deltaGrace)
		if now.After(due) {
			return &verdict{druidv1alpha1.ConditionFalse, "BackupFailed", fmt.Sprintf("No delta snapshot since %s", last.UTC().Format(time.RFC3339))}, 0
		}
		recheck = min(recheck, due.Sub(now))
	}
	if recheck == math.MaxInt64 {
		return ready, 0
	}
	return ready, recheck + time.Second
}

// renewTime returns when a Lease was renewed, or the zero time without one.
func renewTime(lease *coordinationv1.Lease) time.Time {
	if lease == nil || lease.Spec.RenewTime == nil {
		return time.Time{}
	}
	return lease.Spec.RenewTime.Time
}

// decideFirstSnapshot reports whether the first snapshot is overdue, as when nothing can be written to the store: then there never is a Lease that gets old.
func decideFirstSnapshot(etcd *druidv1alpha1.Etcd, now time.Time) (*verdict, time.Duration) {
	left := firstWithin
	at := slices.IndexFunc(etcd.Status.Conditions, func(c druidv1alpha1.Condition) bool { return c.Type == druidv1alpha1.ConditionTypeBackupReady })
	if at >= 0 && etcd.Status.Conditions[at].Status != druidv1alpha1.ConditionTrue {
		// Until there is one, the condition is Unknown, and then it stays False.
		before := etcd.Status.Conditions[at]
		if left = before.LastTransitionTime.Add(firstWithin).Sub(now); left <= 0 || before.Status == druidv1alpha1.ConditionFalse {
			return &verdict{druidv1alpha1.ConditionFalse, "BackupFailed", "No snapshot was ever taken; the log of the container backup-restore says why"}, 0
		}
	}
	return &verdict{druidv1alpha1.ConditionUnknown, "NoFullSnapshot", "No full snapshot was taken yet"}, left
}
