package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
)

// Codes of status.lastErrors.
const (
	// errUnsupported is for a spec that is not supported.
	errUnsupported druidv1alpha1.ErrorCode = "ERR_UNSUPPORTED_SPEC"
	// errReconcile is for all other errors, which are retried.
	errReconcile druidv1alpha1.ErrorCode = "ERR_RECONCILE"
)

// reportBegin reports in the status that an operation has begun.
func (r *reconciler) reportBegin(ctx context.Context, s *scope) error {
	etcd := s.etcd
	kind := druidv1alpha1.LastOperationTypeReconcile
	switch {
	case etcd.DeletionTimestamp != nil:
		kind = druidv1alpha1.LastOperationTypeDelete
	case etcd.Status.ObservedGeneration == nil:
		kind = druidv1alpha1.LastOperationTypeCreate
	}
	if last := etcd.Status.LastOperation; last != nil && last.Type == kind && last.State != druidv1alpha1.LastOperationStateSucceeded {
		return nil // it is continued
	}
	etcd.Status.LastOperation = &druidv1alpha1.LastOperation{
		Type: kind, State: druidv1alpha1.LastOperationStateProcessing, Description: "In progress", RunID: string(uuid.NewUUID()),
		LastUpdateTime: metav1.NewTime(r.clock.Now()),
	}
	if err := r.client.Status().Patch(ctx, etcd, client.MergeFrom(s.before)); err != nil {
		return fmt.Errorf("report the begin: %w", err)
	}
	s.before = etcd.DeepCopy()
	return nil
}

// report writes the status if it differs, and returns after how long it may change without an event.
func (r *reconciler) report(ctx context.Context, s *scope, err error) (time.Duration, error) {
	etcd, now := s.etcd, r.clock.Now()
	status := &etcd.Status
	r.reportOperation(s, err)

	members := etcd.Spec.Replicas
	if s.statefulSet != nil {
		members = min(members, ptr.Deref(s.statefulSet.Spec.Replicas, 1))
		status.Replicas, status.CurrentReplicas = ptr.Deref(s.statefulSet.Spec.Replicas, 1), s.statefulSet.Status.CurrentReplicas
		status.Etcd = &autoscalingv1.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: s.statefulSet.Name}
	}
	status.ReadyReplicas = readyReplicas(s.statefulSet)
	status.Selector = new(k8slabels.SelectorFromSet(podLabels(etcd.Name)).String())
	memberStatus, recheck := memberStatuses(etcd, members, s.leases, r.thresholds, now)
	status.Members = memberStatus
	if etcd.Spec.Etcd.PeerURLTLS != nil || status.PeerURLTLSEnabled != nil {
		if enabled := peerTLS(etcd.Name, members, s.leases); enabled != nil {
			status.PeerURLTLSEnabled = enabled
		}
	}

	ready := decideReady(etcd, s.statefulSet, memberStatus)
	r.setCondition(status, druidv1alpha1.ConditionTypeReady, ready)
	r.setCondition(status, druidv1alpha1.ConditionTypeAllMembersReady, decideAllMembersReady(etcd, s.statefulSet, memberStatus))
	r.setCondition(status, druidv1alpha1.ConditionTypeAllMembersUpdated, decideAllMembersUpdated(s.statefulSet, s.moving))
	backup, backupRecheck := decideBackupReady(etcd, s.lease(fullSnapshotLease(etcd.Name)), s.lease(deltaSnapshotLease(etcd.Name)), now)
	if backup != nil {
		r.setCondition(status, druidv1alpha1.ConditionTypeBackupReady, *backup)
	} else {
		status.Conditions = slices.DeleteFunc(status.Conditions, func(c druidv1alpha1.Condition) bool { return c.Type == druidv1alpha1.ConditionTypeBackupReady })
	}
	status.Ready = new(ready.status == druidv1alpha1.ConditionTrue) // an etcd whose backups fail serves its clients all the same
	if recheck == 0 || backupRecheck > 0 && backupRecheck < recheck {
		recheck = backupRecheck
	}

	if apiequality.Semantic.DeepEqual(s.before.Status, etcd.Status) {
		return recheck, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTimeout)
	defer cancel()
	if err := r.client.Status().Patch(ctx, etcd, client.MergeFrom(s.before)); client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("write status: %w", err)
	}
	return recheck, nil
}

func (r *reconciler) reportOperation(s *scope, err error) {
	status, now := &s.etcd.Status, metav1.NewTime(r.clock.Now())
	last := status.LastOperation
	set := func(state druidv1alpha1.LastOperationState, description string) {
		if last != nil && (last.State != state || last.Description != description) {
			last.State, last.Description, last.LastUpdateTime = state, description, now
		}
	}
	switch {
	case err != nil:
		code := errReconcile
		var unsupported *unsupportedError
		if errors.As(err, &unsupported) {
			code = errUnsupported
		}
		if len(status.LastErrors) != 1 || status.LastErrors[0].Code != code || status.LastErrors[0].Description != err.Error() {
			status.LastErrors = []druidv1alpha1.LastError{{Code: code, Description: err.Error(), ObservedAt: now}}
		}
		set(druidv1alpha1.LastOperationStateError, "Failed, see lastErrors")
	case s.acted:
		status.LastErrors = nil
		status.ObservedGeneration = new(s.etcd.Generation)
		set(druidv1alpha1.LastOperationStateSucceeded, "Done")
	case s.began:
		status.LastErrors = nil
		set(druidv1alpha1.LastOperationStateProcessing, "Waiting until the current member uses peer TLS")
	}
}

// setCondition is the only place that writes conditions.
func (r *reconciler) setCondition(status *druidv1alpha1.EtcdStatus, kind druidv1alpha1.ConditionType, v verdict) {
	now := metav1.NewTime(r.clock.Now())
	at := slices.IndexFunc(status.Conditions, func(c druidv1alpha1.Condition) bool { return c.Type == kind })
	if at < 0 {
		status.Conditions = append(status.Conditions, druidv1alpha1.Condition{
			Type: kind, Status: v.status, Reason: v.reason, Message: v.message, LastTransitionTime: now, LastUpdateTime: now,
		})
		return
	}
	c := &status.Conditions[at]
	if c.Status == v.status && c.Reason == v.reason && c.Message == v.message {
		return
	}
	if c.Status != v.status {
		c.LastTransitionTime = now
	}
	c.Status, c.Reason, c.Message, c.LastUpdateTime = v.status, v.reason, v.message, now
}

// lease returns the Lease with a name, nil if there is none.
func (s *scope) lease(name string) *coordinationv1.Lease {
	for i := range s.leases {
		if s.leases[i].Name == name {
			return &s.leases[i]
		}
	}
	return nil
}
