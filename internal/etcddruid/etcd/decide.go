package etcd

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/robfig/cron/v3"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
)

// unsupportedError is about a spec that only an edit can help.
type unsupportedError struct{ message string }

func (u *unsupportedError) Error() string { return u.message }

// supported returns an error for what a spec asks for and is not there yet.
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

// operation returns the operation that an Etcd asks for, "" if none.
func operation(etcd *druidv1alpha1.Etcd) string {
	for _, key := range []string{druidv1alpha1.DruidOperationAnnotation, druidv1alpha1.GardenerOperationAnnotation} {
		if value := etcd.Annotations[key]; value != "" {
			return value
		}
	}
	return ""
}

// mayActOnSpec tells whether the spec may be acted on as it is now.
func mayActOnSpec(etcd *druidv1alpha1.Etcd, auto bool) bool {
	if _, suspended := etcd.Annotations[druidv1alpha1.SuspendEtcdSpecReconcileAnnotation]; suspended {
		return false
	}
	status := &etcd.Status
	return auto || operation(etcd) == druidv1alpha1.DruidOperationReconcile || seen(etcd) || status.ObservedGeneration == nil ||
		// It was begun, and the annotation is gone since.
		status.LastOperation != nil && status.LastOperation.State != druidv1alpha1.LastOperationStateSucceeded
}

// seen tells whether the spec was acted on as it is.
func seen(etcd *druidv1alpha1.Etcd) bool {
	return etcd.Status.ObservedGeneration != nil && *etcd.Status.ObservedGeneration == etcd.Generation
}

// mayApply tells whether objects may be written although the spec was acted on already.
func mayApply(etcd *druidv1alpha1.Etcd) bool {
	_, unprotected := etcd.Annotations[druidv1alpha1.DisableEtcdComponentProtectionAnnotation]
	return !unprotected || !seen(etcd) || operation(etcd) == druidv1alpha1.DruidOperationReconcile
}

// replicas returns how many members there shall be now. When TLS among members is switched on together with the first
// further member, the one that is there has to be restarted first. It could not be later: a StatefulSet restarts the first
// pod last, when all others are ready, and they would wait for the first to talk TLS.
func replicas(etcd *druidv1alpha1.Etcd, statefulSet *appsv1.StatefulSet, leases []coordinationv1.Lease) int32 {
	want := etcd.Spec.Replicas
	if statefulSet == nil || statefulSet.Spec.Replicas == nil || etcd.Spec.Etcd.PeerURLTLS == nil {
		return want
	}
	current := *statefulSet.Spec.Replicas
	if current == 0 || want <= current {
		return want
	}
	if enabled := peerTLS(etcd.Name, current, leases); enabled != nil && !*enabled {
		return current
	}
	return want
}

// peerTLS tells whether all members talk TLS among themselves; nil if some have not said so.
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

// thresholds are how long a member may be silent.
type thresholds struct{ unknown, notReady time.Duration }

// Reasons of the status of members.
const (
	reasonHeard      = "LeaseSucceeded"
	reasonSilent     = "UnknownGracePeriodExceeded"
	reasonLongSilent = "LeaseExpired"
	reasonNeverHeard = "LeaseNotRenewed"
)

// memberStatuses describes members by what their Leases say, and tells when to look again; 0 if there is nothing to wait for.
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
		status := druidv1alpha1.EtcdMemberStatus{Name: name, Status: druidv1alpha1.EtcdMemberStatusUnknown, Reason: reasonNeverHeard}
		if holder := lease.Spec.HolderIdentity; holder != nil && lease.Spec.RenewTime != nil {
			if id, role, err := druidv1alpha1.ParseMemberIdentity(*holder); err == nil {
				status.ID, status.Role = &id, &role
			}
			silence := now.Sub(lease.Spec.RenewTime.Time)
			var next time.Duration
			switch {
			case silence <= limits.unknown:
				status.Status, status.Reason = druidv1alpha1.EtcdMemberStatusReady, reasonHeard
				next = limits.unknown - silence
			case silence <= limits.notReady:
				status.Reason = reasonSilent
				next = limits.notReady - silence
			default:
				status.Status, status.Reason = druidv1alpha1.EtcdMemberStatusNotReady, reasonLongSilent
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
		recheck += time.Second // so that the limit is over when it comes to it
	}
	return out, recheck
}

// verdict is a condition without its times.
type verdict struct {
	status  druidv1alpha1.ConditionStatus
	reason  string
	message string
}

// decideReady tells whether there is a quorum.
func decideReady(etcd *druidv1alpha1.Etcd, statefulSet *appsv1.StatefulSet, members []druidv1alpha1.EtcdMemberStatus) verdict {
	want := etcd.Spec.Replicas
	if want == 0 {
		return verdict{druidv1alpha1.ConditionFalse, "Stopped", "spec.replicas is 0"}
	}
	voters, silent := 0, 0
	for _, member := range members {
		switch {
		case member.Role != nil && *member.Role == druidv1alpha1.EtcdRoleLearner:
		case member.Status == druidv1alpha1.EtcdMemberStatusReady:
			voters++
		case member.Status == druidv1alpha1.EtcdMemberStatusUnknown && member.Reason == reasonSilent:
			silent++
		}
	}
	ready := int(readyReplicas(statefulSet))
	quorum := int(want)/2 + 1
	message := fmt.Sprintf("%d of %d pods are ready, %d members with a vote were heard of; %d are needed", ready, want, voters, quorum)
	switch {
	case ready >= quorum && voters >= quorum:
		return verdict{druidv1alpha1.ConditionTrue, "Quorate", "A quorum of the members is ready"}
	case ready >= quorum && voters+silent >= quorum:
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

// decideAllMembersReady tells whether nobody is missing.
func decideAllMembersReady(etcd *druidv1alpha1.Etcd, statefulSet *appsv1.StatefulSet, members []druidv1alpha1.EtcdMemberStatus) verdict {
	want := etcd.Spec.Replicas
	if want == 0 {
		return verdict{druidv1alpha1.ConditionFalse, "Stopped", "spec.replicas is 0"}
	}
	heard := map[string]bool{}
	for _, member := range members {
		heard[member.Name] = member.Status == druidv1alpha1.EtcdMemberStatusReady && (member.Role == nil || *member.Role != druidv1alpha1.EtcdRoleLearner)
	}
	for i := range want {
		if name := memberName(etcd.Name, i); !heard[name] {
			return verdict{druidv1alpha1.ConditionFalse, "NotAllMembersReady", fmt.Sprintf("Member %q is not ready", name)}
		}
	}
	if ready := readyReplicas(statefulSet); ready < want {
		return verdict{druidv1alpha1.ConditionFalse, "NotAllMembersReady", fmt.Sprintf("%d of %d pods are ready", ready, want)}
	}
	return verdict{druidv1alpha1.ConditionTrue, "AllMembersReady", "All members are ready"}
}

// decideAllMembersUpdated tells whether all pods are as the spec that was acted on has them.
func decideAllMembersUpdated(statefulSet *appsv1.StatefulSet) verdict {
	if statefulSet == nil {
		return verdict{druidv1alpha1.ConditionUnknown, "NoStatefulSet", "There is no StatefulSet"}
	}
	want, status := or(statefulSet.Spec.Replicas, 1), statefulSet.Status
	switch {
	case status.ObservedGeneration < statefulSet.Generation:
		return verdict{druidv1alpha1.ConditionFalse, "NotAllMembersUpdated", "The last change of the StatefulSet has not been seen by its controller"}
	case status.UpdatedReplicas < want || status.CurrentRevision != status.UpdateRevision:
		return verdict{druidv1alpha1.ConditionFalse, "NotAllMembersUpdated", fmt.Sprintf("%d of %d pods are updated", status.UpdatedReplicas, want)}
	}
	return verdict{druidv1alpha1.ConditionTrue, "AllMembersUpdated", "All members are updated"}
}

const (
	// fullGrace is how long a full snapshot may take until it is missed; deltaPeriods is how many periods a delta one may.
	fullGrace    = time.Hour
	deltaPeriods = 3
	// defaultDeltaPeriod is that of etcd-backup-restore.
	defaultDeltaPeriod = 20 * time.Second
	// deltaGrace is for short periods.
	deltaGrace = time.Minute
)

// decideBackupReady tells whether backups are as recent as they are meant to be. It returns nil if there are none to be made.
func decideBackupReady(etcd *druidv1alpha1.Etcd, full, delta *coordinationv1.Lease, now time.Time) (*verdict, time.Duration) {
	backup := &etcd.Spec.Backup
	if backup.Store == nil || etcd.Spec.Replicas == 0 {
		return nil, 0
	}
	schedule, err := cron.ParseStandard(or(backup.FullSnapshotSchedule, "0 0 * * *"))
	if err != nil {
		return &verdict{druidv1alpha1.ConditionFalse, "InvalidSchedule", fmt.Sprintf("spec.backup.fullSnapshotSchedule: %v", err)}, 0
	}
	if full == nil || full.Spec.RenewTime == nil {
		return &verdict{druidv1alpha1.ConditionUnknown, "NoFullSnapshot", "No full snapshot was made yet"}, 0
	}
	fullDue := schedule.Next(full.Spec.RenewTime.UTC()).Add(fullGrace)
	if now.After(fullDue) {
		return &verdict{druidv1alpha1.ConditionFalse, "BackupFailed", fmt.Sprintf("No full snapshot since %s", full.Spec.RenewTime.UTC().Format(time.RFC3339))}, 0
	}
	recheck := fullDue.Sub(now)
	period := defaultDeltaPeriod
	if backup.DeltaSnapshotPeriod != nil {
		period = backup.DeltaSnapshotPeriod.Duration
	}
	if period >= time.Second {
		last := full.Spec.RenewTime.Time
		if delta != nil && delta.Spec.RenewTime != nil && delta.Spec.RenewTime.After(last) {
			last = delta.Spec.RenewTime.Time
		}
		deltaDue := last.Add(deltaPeriods*period + deltaGrace)
		if now.After(deltaDue) {
			return &verdict{druidv1alpha1.ConditionFalse, "BackupFailed", fmt.Sprintf("No delta snapshot since %s", last.UTC().Format(time.RFC3339))}, 0
		}
		recheck = min(recheck, deltaDue.Sub(now))
	}
	return &verdict{druidv1alpha1.ConditionTrue, "BackupSucceeded", "Snapshots are as recent as they are meant to be"}, recheck + time.Second
}
