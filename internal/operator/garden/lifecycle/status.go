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
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/operator/garden/values"
	"gardener.cloud/gardener/pkg/flow"
)

// reportTimeout is the end of a write of the status, also after the end of a pass.
const reportTimeout = 5 * time.Second

// statusReporter writes the status of the Garden in one pass. Conditions are written by the care controller.
type statusReporter struct {
	runtimeCache client.Client
	recorder     events.EventRecorder
	clock        clock.PassiveClock
	// garden is the latest version of the Garden.
	garden    *operatorv1alpha1.Garden
	gardener  corev1beta1.Gardener
	operation corev1beta1.LastOperationType
}

// begun reports that an operation has begun. It returns the operations of the annotation which have begun with it: those that the status has now.
func (s *statusReporter) begun(ctx context.Context) (operations []string, err error) {
	generation := s.garden.Generation
	err = s.patch(ctx, func(garden *operatorv1alpha1.Garden) {
		status := &garden.Status
		status.Gardener, status.ObservedGeneration = &s.gardener, generation
		if s.operation == corev1beta1.LastOperationTypeReconcile {
			operations = beginOperations(garden, metav1.NewTime(s.clock.Now()))
		}
		progress := int32(0)
		if last := status.LastOperation; last != nil && last.Type == s.operation && last.State != corev1beta1.LastOperationStateSucceeded {
			progress = min(last.Progress, 99)
		}
		s.set(status, corev1beta1.LastOperationStateProcessing, progress, s.title()+" of the Garden has begun.")
	})
	return operations, err
}

func (s *statusReporter) title() string {
	if s.operation == corev1beta1.LastOperationTypeDelete {
		return "Deletion"
	}
	return "Reconciliation"
}

// share is the part of an operation's progress, in percent, that one of its flows makes.
type share struct{ from, to int32 }

// percent is the progress of the operation when a flow has made some percent of its own.
func (s share) percent(ofFlow int32) int32 { return s.from + (s.to-s.from)*ofFlow/100 }

func (s *statusReporter) progress(ctx context.Context, of share, p flow.Progress) {
	if len(p.Running) == 0 {
		return
	}
	if err := s.patch(ctx, func(garden *operatorv1alpha1.Garden) {
		s.set(&garden.Status, corev1beta1.LastOperationStateProcessing, of.percent(p.Percent()), strings.Join(p.Running, ", "))
	}); err != nil {
		logf.FromContext(ctx).V(1).Info("Failed reporting progress", "reason", err.Error())
	}
}

// failed reports the error of a run. If the process stops, nothing is reported: the next leader continues.
func (s *statusReporter) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	var descriptions []string
	for _, last := range flow.LastErrors(err, metav1.NewTime(s.clock.Now())) {
		descriptions = append(descriptions, last.Description)
	}
	description := strings.Join(descriptions, "; ")
	reason, action := constants.EventReconcileError, constants.EventActionReconcile
	if s.operation == corev1beta1.LastOperationTypeDelete {
		reason, action = constants.EventDeleteError, constants.EventActionDelete
	}
	s.recorder.Eventf(s.garden, nil, corev1.EventTypeWarning, reason, action, "%s", kube.Shorten(description, kube.MaxNote))
	return s.patch(ctx, func(garden *operatorv1alpha1.Garden) {
		progress := int32(0)
		if last := garden.Status.LastOperation; last != nil {
			progress = min(last.Progress, 99)
		}
		s.set(&garden.Status, corev1beta1.LastOperationStateError, progress, strings.TrimSuffix(kube.Shorten(description, kube.MaxMessage), ".")+". Operation will be retried.")
	})
}

// succeeded reports the end of a run.
func (s *statusReporter) succeeded(ctx context.Context, source values.Source) error {
	description, reason, action := "Garden cluster has been successfully reconciled.", constants.EventReconciled, constants.EventActionReconcile
	if s.operation == corev1beta1.LastOperationTypeDelete {
		description, reason, action = "Garden cluster has been successfully deleted.", constants.EventDeleted, constants.EventActionDelete
	}
	err := s.patch(ctx, func(garden *operatorv1alpha1.Garden) {
		status := &garden.Status
		if s.operation == corev1beta1.LastOperationTypeReconcile {
			status.AdvertisedAddresses = source.AdvertisedAddresses()
			if status.Credentials == nil {
				status.Credentials = &operatorv1alpha1.Credentials{}
			}
			status.Credentials.EncryptionAtRest = source.EncryptionAtRest()
			finishRotations(garden, metav1.NewTime(s.clock.Now()))
		}
		s.set(status, corev1beta1.LastOperationStateSucceeded, 100, description)
	})
	if err == nil {
		s.recorder.Eventf(s.garden, nil, corev1.EventTypeNormal, reason, action, "%s of the Garden is done.", s.title())
	}
	return err
}

func (s *statusReporter) set(status *operatorv1alpha1.GardenStatus, state corev1beta1.LastOperationState, progress int32, description string) {
	last := corev1beta1.LastOperation{Type: s.operation, State: state, Progress: progress, Description: description}
	if before := status.LastOperation; before != nil {
		last.LastUpdateTime = before.LastUpdateTime
		// A success is written even if it was one before: its time says when the Garden was reconciled last.
		if *before == last && state != corev1beta1.LastOperationStateSucceeded {
			return
		}
	}
	last.LastUpdateTime = metav1.NewTime(s.clock.Now())
	status.LastOperation = &last
}

// patch sends what a change makes different. The write may happen after the end of the pass.
func (s *statusReporter) patch(ctx context.Context, change func(*operatorv1alpha1.Garden)) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTimeout)
	defer cancel()
	after := s.garden.DeepCopy()
	change(after)
	if apiequality.Semantic.DeepEqual(s.garden.Status, after.Status) {
		return nil
	}
	// Conditions have another writer, and a custom resource has no merge by key.
	patch := client.MergeFrom(s.garden)
	after.Status.Conditions = s.garden.Status.Conditions
	if err := s.runtimeCache.Status().Patch(ctx, after, patch); err != nil {
		return fmt.Errorf("patch status of Garden %q: %w", s.garden.Name, err)
	}
	s.garden = after
	return nil
}
