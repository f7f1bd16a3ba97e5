package lifecycle

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/pkg/flow"
)

// reportTimeout is what a write of the status may take, also after the end of a run.
const reportTimeout = 5 * time.Second

// reporter writes the status of one Shoot in one pass. It is the only one that writes what it writes; conditions are for the care.
type reporter struct {
	client    client.Client
	recorder  events.EventRecorder
	clock     clock.PassiveClock
	shoot     *corev1beta1.Shoot
	operation corev1beta1.LastOperationType
	// generation is that of the spec which the pass works on. A change during the pass is for the next one.
	generation int64
	// gardener is the gardenlet that does it.
	gardener corev1beta1.Gardener
	// retry is for how long an operation may go on failing until it counts as failed for good.
	retry time.Duration
}

// begun reports that an operation has begun, and where the control plane is.
func (s *reporter) begun(ctx context.Context, w *world, seedName string) error {
	before, again := s.shoot.Status.LastOperation, s.again()
	err := s.patch(ctx, func(shoot *corev1beta1.Shoot) {
		status := &shoot.Status
		s.take(status)
		status.SeedName, status.TechnicalID, status.UID = &seedName, w.namespace, shoot.UID
		status.ClusterIdentity = &w.identity
		if s.operation != corev1beta1.LastOperationTypeDelete {
			status.AdvertisedAddresses = addresses(w)
			order(shoot, metav1.NewTime(s.clock.Now()))
		}
		if n := shoot.Spec.Networking; n != nil {
			status.Networking = networking(n, status.Networking)
		}
		s.set(status, corev1beta1.LastOperationStateProcessing, startProgress(before, again), title(s.operation)+" of the cluster has begun.")
	})
	if err == nil && !again {
		reason, action := constants.EventReconciling, constants.EventActionReconcile
		if s.operation == corev1beta1.LastOperationTypeDelete {
			reason, action = constants.EventDeleting, constants.EventActionDelete
		}
		s.event(corev1.EventTypeNormal, reason, action, "%s of the cluster has begun.", title(s.operation))
	}
	return err
}

// again is whether the operation was begun before for what is wanted now, and goes on.
func (s *reporter) again() bool {
	last := s.shoot.Status.LastOperation
	return last != nil && last.Type == s.operation && s.shoot.Status.ObservedGeneration == s.generation &&
		last.State != corev1beta1.LastOperationStateSucceeded && last.State != corev1beta1.LastOperationStateFailed
}

// take notes who works on what. Something new, or another gardenlet, may fail for as long as it takes from now on.
func (s *reporter) take(status *corev1beta1.ShootStatus) {
	if status.RetryCycleStartTime == nil || !s.again() || status.Gardener.Version != s.gardener.Version {
		status.RetryCycleStartTime = new(metav1.NewTime(s.clock.Now()))
	}
	status.Gardener, status.ObservedGeneration = s.gardener, s.generation
}

// postponed reports that there is something to do, and what it waits for.
func (s *reporter) postponed(ctx context.Context, reason string) error {
	return s.patch(ctx, func(shoot *corev1beta1.Shoot) {
		s.set(&shoot.Status, corev1beta1.LastOperationStatePending, startProgress(shoot.Status.LastOperation, s.again()), title(s.operation)+" of the cluster waits: "+reason+".")
	})
}

func startProgress(before *corev1beta1.LastOperation, again bool) int32 {
	if again {
		return min(before.Progress, 99)
	}
	return 0
}

func title(operation corev1beta1.LastOperationType) string {
	switch operation {
	case corev1beta1.LastOperationTypeCreate:
		return "Creation"
	case corev1beta1.LastOperationTypeDelete:
		return "Deletion"
	case corev1beta1.LastOperationTypeRestore:
		return "Restoration"
	case corev1beta1.LastOperationTypeMigrate, corev1beta1.LastOperationTypeLiveMigrate, corev1beta1.LastOperationTypeReconcile:
	}
	return "Reconciliation"
}

func (s *reporter) progress(ctx context.Context, p flow.Progress) {
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

// failed reports the error of a run, and whether it is for good. That the process stops is no error: the next one goes on.
func (s *reporter) failed(ctx context.Context, err error) (final bool, reported error) {
	if ctx.Err() != nil {
		return false, nil
	}
	now := metav1.NewTime(s.clock.Now())
	lastErrors := flow.LastErrors(err, now)
	descriptions := make([]string, 0, len(lastErrors))
	for _, last := range lastErrors {
		descriptions = append(descriptions, last.Description)
	}
	state := corev1beta1.LastOperationStateError
	begun := s.shoot.Status.DeepCopy()
	s.take(begun) // the error may be from before the operation began
	// What only the owner can mend is not tried again and again, and neither is what has failed for too long.
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
	reason, action := constants.EventReconcileError, constants.EventActionReconcile
	if s.operation == corev1beta1.LastOperationTypeDelete {
		reason, action = constants.EventDeleteError, constants.EventActionDelete
	}
	s.event(corev1.EventTypeWarning, reason, action, "%s", description)
	return final, reported
}

// keepTimes leaves an error its time if it says nothing new.
func keepTimes(before, after []corev1beta1.LastError) {
	for i := range after {
		for _, old := range before {
			if deref(old.TaskID) == deref(after[i].TaskID) && old.Description == after[i].Description {
				after[i].LastUpdateTime = old.LastUpdateTime
			}
		}
	}
}

// succeeded reports the end of a run.
func (s *reporter) succeeded(ctx context.Context, w *world) error {
	description, reason, action := "Shoot cluster has been successfully reconciled.", constants.EventReconciled, constants.EventActionReconcile
	if s.operation == corev1beta1.LastOperationTypeDelete {
		description, reason, action = "Shoot cluster has been successfully deleted.", constants.EventDeleted, constants.EventActionDelete
	}
	err := s.patch(ctx, func(shoot *corev1beta1.Shoot) {
		status := &shoot.Status
		status.LastErrors, status.RetryCycleStartTime = nil, nil
		if s.operation != corev1beta1.LastOperationTypeDelete {
			recordEncryption(shoot, w)
			status.Hibernated = w.hibernated()
			finish(shoot, metav1.NewTime(s.clock.Now()))
		}
		s.set(status, corev1beta1.LastOperationStateSucceeded, 100, description)
	})
	if err == nil {
		s.event(corev1.EventTypeNormal, reason, action, "%s of the cluster is done.", title(s.operation))
	}
	return err
}

// addresses are those that people and programs reach the API server by.
func addresses(w *world) []corev1beta1.ShootAdvertisedAddress {
	var list []corev1beta1.ShootAdvertisedAddress
	add := func(name, url string) {
		list = append(list, corev1beta1.ShootAdvertisedAddress{Name: name, URL: url})
	}
	issuer := w.issuer
	if w.external != nil && w.external.provider != constants.DNSProviderUnmanaged {
		add(constants.AdvertisedAddressExternal, "https://"+w.external.host(constants.APIServerFQDNPrefix))
	}
	if w.internal != nil {
		add(constants.AdvertisedAddressInternal, "https://"+w.internal.host(constants.APIServerFQDNPrefix))
	}
	if w.external != nil && w.external.provider == constants.DNSProviderUnmanaged {
		add(constants.AdvertisedAddressUnmanaged, "https://"+w.external.host(constants.APIServerFQDNPrefix))
	}
	if issuer == "" {
		issuer = defaultIssuer(w)
	}
	if issuer != "" {
		add(constants.AdvertisedAddressServiceAccountIssuer, issuer)
	}
	return list
}

// defaultIssuer is who issues the tokens of service accounts if the owner says nothing else: the API server itself.
func defaultIssuer(w *world) string {
	if config := w.shoot.Spec.Kubernetes.KubeAPIServer; config != nil && config.ServiceAccountConfig != nil && config.ServiceAccountConfig.Issuer != nil {
		return *config.ServiceAccountConfig.Issuer
	}
	switch {
	case w.internal != nil:
		return "https://" + w.internal.host(constants.APIServerFQDNPrefix)
	case w.external != nil:
		return "https://" + w.external.host(constants.APIServerFQDNPrefix)
	}
	return ""
}

// networking is what ranges a cluster has. An infrastructure may have chosen others, which stay.
func networking(spec *corev1beta1.Networking, before *corev1beta1.NetworkingStatus) *corev1beta1.NetworkingStatus {
	after := &corev1beta1.NetworkingStatus{}
	if before != nil {
		after = before.DeepCopy()
	}
	fill := func(list *[]string, value *string) {
		if value != nil && len(*list) == 0 {
			*list = []string{*value}
		}
	}
	fill(&after.Pods, spec.Pods)
	fill(&after.Nodes, spec.Nodes)
	fill(&after.Services, spec.Services)
	return after
}

func (s *reporter) set(status *corev1beta1.ShootStatus, state corev1beta1.LastOperationState, progress int32, description string) {
	last := corev1beta1.LastOperation{Type: s.operation, State: state, Progress: progress, Description: description}
	if before := status.LastOperation; before != nil {
		last.LastUpdateTime = before.LastUpdateTime
		// That all is well is news even if it was before: it says when the shoot was looked at last.
		if *before == last && state != corev1beta1.LastOperationStateSucceeded {
			return
		}
	}
	last.LastUpdateTime = metav1.NewTime(s.clock.Now())
	status.LastOperation = &last
}

func (s *reporter) event(typ, reason, action, note string, args ...any) {
	if s.recorder != nil {
		s.recorder.Eventf(s.shoot, nil, typ, reason, action, note, args...)
	}
}

// patch sends what a change makes different. The write may happen after the end of the pass.
func (s *reporter) patch(ctx context.Context, change func(*corev1beta1.Shoot)) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTimeout)
	defer cancel()
	after := s.shoot.DeepCopy()
	change(after)
	if apiequality.Semantic.DeepEqual(s.shoot.Status, after.Status) {
		return nil
	}
	if err := s.client.Status().Patch(ctx, after, client.StrategicMergeFrom(s.shoot)); err != nil {
		return fmt.Errorf("patch status: %w", err)
	}
	s.shoot = after
	return nil
}
