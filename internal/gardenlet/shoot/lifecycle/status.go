package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/shoot/observed"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/pkg/flow"
)

// reportTimeout is the end of a write of the status, also after the end of a run.
const reportTimeout = 5 * time.Second

// statusReporter writes the status of one Shoot in one pass. Conditions are written by the care controller.
type statusReporter struct {
	gardenCache client.Client
	recorder    events.EventRecorder
	clock       clock.PassiveClock
	shoot       *corev1beta1.Shoot
	operation   corev1beta1.LastOperationType
	// generation is that of the spec which the pass works on. A change during the pass is for the next one.
	generation int64
	// gardener is the running gardenlet.
	gardener corev1beta1.Gardener
	// retry is for how long an operation may go on failing until it is not retried any more.
	retry time.Duration
}

// begun reports that an operation has begun, and where the control plane is. It returns the operations of the annotation which have begun
// with it: those that the status has now.
func (s *statusReporter) begun(ctx context.Context, o *observed.State, seedName string) (operations []string, err error) {
	before, again := s.shoot.Status.LastOperation, s.again()
	var pendingErr error
	err = s.patch(ctx, func(shoot *corev1beta1.Shoot) {
		status := &shoot.Status
		s.take(status)
		status.SeedName, status.TechnicalID, status.UID = &seedName, o.Namespace, shoot.UID
		status.ClusterIdentity = &o.Identity
		if !s.ends() {
			status.AdvertisedAddresses = o.AdvertisedAddresses()
			operations, _ = beginOperations(shoot, metav1.NewTime(s.clock.Now()))
			restored := s.operation == corev1beta1.LastOperationTypeRestore && !status.Hibernated // a hibernated shoot has no machines
			status.InPlaceUpdates, pendingErr = observed.PendingUpdates(shoot, o.UpdatedPools, restored)
		}
		if n := shoot.Spec.Networking; n != nil {
			status.Networking = observed.NetworkingStatus(n, status.Networking)
		}
		s.set(status, corev1beta1.LastOperationStateProcessing, startProgress(before, again), textOf(s.operation).begun)
	})
	err = errors.Join(err, pendingErr)
	if err == nil && !again {
		t := textOf(s.operation)
		s.event(corev1.EventTypeNormal, t.beginning, t.action, "%s", cmp.Or(t.beginNote, t.begun))
	}
	return operations, err
}

// ends is whether there is no control plane on the seed after the operation.
func (s *statusReporter) ends() bool {
	return s.operation == corev1beta1.LastOperationTypeDelete || s.operation == corev1beta1.LastOperationTypeMigrate
}

// text is what the status and events say about an operation.
type text struct {
	// title is its name in sentences.
	title string
	// begun and succeeded are descriptions of the last operation.
	begun, succeeded string
	// beginNote and endNote are notes of events. Empty means that they are as usual.
	beginNote, endNote string
	// action, beginning, done and failed are the action and the reasons of events.
	action, beginning, done, failed string
}

// textOf returns the texts of an operation. Those of moves to another seed are known to clients.
func textOf(operation corev1beta1.LastOperationType) text {
	t := text{
		title: "Reconciliation", succeeded: "Shoot cluster has been successfully reconciled.",
		action: constants.EventActionReconcile, beginning: constants.EventReconciling, done: constants.EventReconciled, failed: constants.EventReconcileError,
	}
	switch operation {
	case corev1beta1.LastOperationTypeCreate:
		t.title = "Creation"
	case corev1beta1.LastOperationTypeDelete:
		t = text{
			title: "Deletion", succeeded: "Shoot cluster has been successfully deleted.",
			action: constants.EventActionDelete, beginning: constants.EventDeleting, done: constants.EventDeleted, failed: constants.EventDeleteError,
		}
	case corev1beta1.LastOperationTypeMigrate:
		t = text{
			title: "Migration", begun: "Preparation of Shoot cluster for migration initialized.", succeeded: "Shoot cluster has been successfully prepared for migration.",
			action: constants.EventActionMigrate, beginning: constants.EventPrepareMigration, done: constants.EventMigrationPrepared,
			failed: constants.EventMigrationPreparationFailed,
		}
		t.endNote = t.succeeded
	case corev1beta1.LastOperationTypeRestore:
		t.title, t.begun, t.succeeded = "Restoration", "Restoration of Shoot cluster initialized.", "Shoot cluster has been successfully restored."
		t.beginNote, t.endNote = "Restoring Shoot cluster", "Restored Shoot cluster"
	case corev1beta1.LastOperationTypeReconcile, corev1beta1.LastOperationTypeLiveMigrate:
	}
	t.begun = cmp.Or(t.begun, t.title+" of the cluster has begun.")
	return t
}

// again is whether the operation has begun before for the same generation, and continues.
func (s *statusReporter) again() bool {
	last := s.shoot.Status.LastOperation
	return last != nil && last.Type == s.operation && s.shoot.Status.ObservedGeneration >= s.generation &&
		last.State != corev1beta1.LastOperationStateSucceeded && last.State != corev1beta1.LastOperationStateFailed
}

// take records which gardenlet works on which generation. For a new generation, or another gardenlet, the time in which it may fail begins.
func (s *statusReporter) take(status *corev1beta1.ShootStatus) {
	if status.RetryCycleStartTime == nil || !s.again() || status.Gardener.Version != s.gardener.Version {
		status.RetryCycleStartTime = new(metav1.NewTime(s.clock.Now()))
	}
	// The operation itself may have written the networks of the infrastructure into the spec, and observed that.
	status.Gardener, status.ObservedGeneration = s.gardener, max(status.ObservedGeneration, s.generation)
}

// postponed reports that there is something to do, and what it waits for.
func (s *statusReporter) postponed(ctx context.Context, reason string) error {
	return s.patch(ctx, func(shoot *corev1beta1.Shoot) {
		s.set(&shoot.Status, corev1beta1.LastOperationStatePending, startProgress(shoot.Status.LastOperation, s.again()), textOf(s.operation).title+" of the cluster waits: "+reason+".")
	})
}

func startProgress(before *corev1beta1.LastOperation, again bool) int32 {
	if again {
		return min(before.Progress, 99)
	}
	return 0
}

func (s *statusReporter) progress(ctx context.Context, p flow.Progress) {
	if len(p.Running) == 0 {
		return
	}
	err := s.patch(ctx, func(shoot *corev1beta1.Shoot) {
		s.set(&shoot.Status, corev1beta1.LastOperationStateProcessing, p.Percent(), strings.Join(p.Running, ", "))
	})
	if err != nil {
		logf.FromContext(ctx).V(1).Info("Failed reporting progress", "reason", err.Error())
	}
}

// failed reports the error of a run, and returns whether the operation is not retried. If the process stops, the next one continues.
func (s *statusReporter) failed(ctx context.Context, err error) (final bool, reported error) {
	if ctx.Err() != nil {
		return false, nil
	}
	now := metav1.NewTime(s.clock.Now())
	lastErrors := flow.LastErrors(err, now)
	descriptions := make([]string, 0, len(lastErrors))
	for i := range lastErrors {
		lastErrors[i].Description = kube.Shorten(lastErrors[i].Description, kube.MaxMessage)
		descriptions = append(descriptions, lastErrors[i].Description)
	}
	state := corev1beta1.LastOperationStateError
	begun := s.shoot.Status.DeepCopy()
	s.take(begun) // the error may be from before the operation began
	// An operation is not retried if only the owner can fix its error, or if it has failed for too long.
	final = errorcode.NeedsUser(errorcode.Of(err)) || s.clock.Since(begun.RetryCycleStartTime.Time) > s.retry
	if final {
		state = corev1beta1.LastOperationStateFailed
	}
	description := strings.Join(descriptions, "; ")
	reported = s.patch(ctx, func(shoot *corev1beta1.Shoot) {
		s.take(&shoot.Status)
		keepTimes(shoot.Status.LastErrors, lastErrors)
		shoot.Status.LastErrors = lastErrors
		progress := int32(0)
		if last := shoot.Status.LastOperation; last != nil {
			progress = min(last.Progress, 99)
		}
		s.set(&shoot.Status, state, progress, description)
	})
	t := textOf(s.operation)
	s.event(corev1.EventTypeWarning, t.failed, t.action, "%s", kube.Shorten(description, kube.MaxNote))
	return final, reported
}

// keepTimes keeps the time of an error that has not changed.
func keepTimes(before, after []corev1beta1.LastError) {
	for i := range after {
		for _, old := range before {
			if ptr.Deref(old.TaskID, "") == ptr.Deref(after[i].TaskID, "") && old.Description == after[i].Description {
				after[i].LastUpdateTime = old.LastUpdateTime
			}
		}
	}
}

// succeeded reports the end of a run.
func (s *statusReporter) succeeded(ctx context.Context, o *observed.State) error {
	t := textOf(s.operation)
	var options []client.MergeFromOption
	if s.operation == corev1beta1.LastOperationTypeMigrate {
		// If it was bound to another seed meanwhile, that one is responsible, and the next pass sees it.
		options = append(options, client.MergeFromWithOptimisticLock{})
	}
	err := s.patch(ctx, func(shoot *corev1beta1.Shoot) {
		status := &shoot.Status
		status.LastErrors, status.RetryCycleStartTime = nil, nil
		if s.operation == corev1beta1.LastOperationTypeMigrate {
			status.SeedName = shoot.Spec.SeedName // whose gardenlet is responsible from now on
		}
		if !s.ends() {
			status.AdvertisedAddresses = o.AdvertisedAddresses()
			o.RecordEncryption(shoot)
			status.Hibernated = o.Shoot.HibernationWanted()
			finishRotations(shoot, metav1.NewTime(s.clock.Now()))
		}
		s.set(status, corev1beta1.LastOperationStateSucceeded, 100, t.succeeded)
	}, options...)
	if err == nil {
		s.event(corev1.EventTypeNormal, t.done, t.action, "%s", cmp.Or(t.endNote, t.title+" of the cluster is done."))
	}
	return err
}

func (s *statusReporter) set(status *corev1beta1.ShootStatus, state corev1beta1.LastOperationState, progress int32, description string) {
	last := corev1beta1.LastOperation{Type: s.operation, State: state, Progress: progress, Description: kube.Shorten(description, kube.MaxMessage)}
	if before := status.LastOperation; before != nil {
		last.LastUpdateTime = before.LastUpdateTime
		// A success is written even if it was one before: its time says when the shoot was reconciled last.
		if *before == last && state != corev1beta1.LastOperationStateSucceeded {
			return
		}
	}
	last.LastUpdateTime = metav1.NewTime(s.clock.Now())
	status.LastOperation = &last
}

func (s *statusReporter) event(typ, reason, action, note string, args ...any) {
	if s.recorder != nil {
		s.recorder.Eventf(s.shoot, nil, typ, reason, action, note, args...)
	}
}

// patch sends what a change makes different. The write may happen after the end of the pass.
func (s *statusReporter) patch(ctx context.Context, change func(*corev1beta1.Shoot), options ...client.MergeFromOption) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTimeout)
	defer cancel()
	after := s.shoot.DeepCopy()
	change(after)
	if apiequality.Semantic.DeepEqual(s.shoot.Status, after.Status) {
		return nil
	}
	if err := s.gardenCache.Status().Patch(ctx, after, client.StrategicMergeFrom(s.shoot, options...)); err != nil {
		return fmt.Errorf("patch status: %w", err)
	}
	s.shoot = after
	return nil
}
