package system

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/pkg/flow"
)

// reportTimeout is the end of a write of the status, which may happen after the end of a pass.
const reportTimeout = 5 * time.Second

// observed is what the status of a Seed has besides the operation.
type observed struct {
	gardener corev1beta1.Gardener
	// version is the Kubernetes version of the seed, identity its cluster identity, which may be empty.
	version, identity     string
	capacity, allocatable corev1.ResourceList
	generation            int64
	// expiry is the end of the gardenlet's client certificate. It may be nil.
	expiry *time.Time
}

// allocatable returns a capacity without the reserved part.
func allocatable(capacity, reserved corev1.ResourceList) corev1.ResourceList {
	out := capacity.DeepCopy()
	for name, quantity := range reserved {
		if left, ok := out[name]; ok {
			left.Sub(quantity)
			out[name] = left
		}
	}
	return out
}

// unfinished is whether this version of the gardenlet has yet to reconcile the current spec of the Seed. If not, a run of the flow only
// corrects drift, and its success is not reported.
func unfinished(seed *corev1beta1.Seed, gardener corev1beta1.Gardener) bool {
	s := seed.Status
	return s.LastOperation == nil || s.LastOperation.State != corev1beta1.LastOperationStateSucceeded || s.ObservedGeneration != seed.Generation ||
		s.Gardener == nil || s.Gardener.Version != gardener.Version
}

// statusReporter writes the status of one Seed in one pass.
type statusReporter struct {
	gardenCache client.Client
	clock       clock.PassiveClock
	// seed is the latest version of the Seed.
	seed *corev1beta1.Seed
	// reportsProgress is whether progress and success are reported in status.lastOperation. Errors always are.
	reportsProgress bool
	// operation is the type of the operation. If it is empty, it is Create until the Seed was reconciled once, and Reconcile then.
	operation corev1beta1.LastOperationType
}

// run runs a flow and reports its progress.
func (s *statusReporter) run(ctx context.Context, f *flow.Flow, metrics *flow.Metrics) error {
	ctx, cancel := context.WithTimeoutCause(ctx, flowTimeout, fmt.Errorf("not done within %s", flowTimeout))
	defer cancel()
	offer, stop := flow.Latest(func(p flow.Progress) { s.progress(ctx, p) })
	_, err := f.Run(ctx, flow.Options{
		Progress: offer, Metrics: metrics, Clock: s.clock, Ended: flow.LogTimings(logf.FromContext(ctx).V(1), f.Name()),
	})
	stop()
	return err
}

func (s *statusReporter) progress(ctx context.Context, p flow.Progress) {
	if !s.reportsProgress || len(p.Running) == 0 {
		return
	}
	if err := s.write(ctx, corev1beta1.LastOperationStateProcessing, p.Percent(), strings.Join(p.Running, ", ")); err != nil {
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
	progress := int32(0)
	if last := s.seed.Status.LastOperation; last != nil {
		progress = min(last.Progress, 99)
	}
	return s.write(ctx, corev1beta1.LastOperationStateError, progress, strings.Join(descriptions, "; "))
}

// succeeded reports the end of a run, and what was observed.
func (s *statusReporter) succeeded(ctx context.Context, o *observed) error {
	return s.patch(ctx, func(status *corev1beta1.SeedStatus) {
		status.Gardener, status.KubernetesVersion, status.ObservedGeneration = &o.gardener, &o.version, o.generation
		status.Capacity, status.Allocatable = o.capacity, o.allocatable
		if o.identity != "" {
			status.ClusterIdentity = &o.identity
		}
		if o.expiry != nil {
			status.ClientCertificateExpirationTimestamp = new(metav1.NewTime(*o.expiry))
		}
		if s.reportsProgress {
			s.set(status, corev1beta1.LastOperationStateSucceeded, 100, "Seed cluster has been successfully reconciled.")
		}
	})
}

// write reports the state of the operation.
func (s *statusReporter) write(ctx context.Context, state corev1beta1.LastOperationState, progress int32, description string) error {
	return s.patch(ctx, func(status *corev1beta1.SeedStatus) { s.set(status, state, progress, description) })
}

func (s *statusReporter) set(status *corev1beta1.SeedStatus, state corev1beta1.LastOperationState, progress int32, description string) {
	operation := s.operation
	if operation == "" {
		operation = corev1beta1.LastOperationTypeReconcile
		if before := status.LastOperation; before == nil || before.Type == corev1beta1.LastOperationTypeCreate && s.reportsProgress && status.ObservedGeneration == 0 {
			operation = corev1beta1.LastOperationTypeCreate
		}
	}
	last := corev1beta1.LastOperation{Type: operation, State: state, Progress: progress, Description: description}
	if before := status.LastOperation; before != nil {
		last.LastUpdateTime = before.LastUpdateTime
		if *before == last {
			return
		}
	}
	last.LastUpdateTime = metav1.NewTime(s.clock.Now())
	status.LastOperation = &last
}

// patch writes a change of the status. It works after the end of the pass too.
func (s *statusReporter) patch(ctx context.Context, change func(*corev1beta1.SeedStatus)) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTimeout)
	defer cancel()
	after := s.seed.DeepCopy()
	change(&after.Status)
	if apiequality.Semantic.DeepEqual(s.seed.Status, after.Status) {
		return nil
	}
	if err := s.gardenCache.Status().Patch(ctx, after, client.StrategicMergeFrom(s.seed)); err != nil {
		return fmt.Errorf("patch status of Seed %q: %w", s.seed.Name, err)
	}
	s.seed = after
	return nil
}
