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

// observation is what the status says about a seed besides the operation.
type observation struct {
	gardener              corev1beta1.Gardener
	version, identity     string
	capacity, allocatable corev1.ResourceList
	generation            int64
	expiry                *time.Time
}

// allocatable is what is left of a capacity without what is reserved.
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

// unfinished tells whether this gardenlet has yet to do something for a Seed. If not, a run of the flow is only a look, and of one that
// finds everything in order nobody hears.
func unfinished(seed *corev1beta1.Seed, gardener corev1beta1.Gardener) bool {
	s := seed.Status
	return s.LastOperation == nil || s.LastOperation.State != corev1beta1.LastOperationStateSucceeded || s.ObservedGeneration != seed.Generation ||
		s.Gardener == nil || s.Gardener.Version != gardener.Version
}

// reporter writes the status of one Seed in one pass.
type reporter struct {
	client client.Client
	clock  clock.PassiveClock
	seed   *corev1beta1.Seed
	// loud is whether progress is reported.
	loud bool
	// operation is what is done; empty means to find out from the Seed.
	operation corev1beta1.LastOperationType
}

func (s *reporter) progress(ctx context.Context, p flow.Progress) {
	if !s.loud || len(p.Running) == 0 {
		return
	}
	if err := s.write(ctx, corev1beta1.LastOperationStateProcessing, p.Percent(), strings.Join(p.Running, ", ")); err != nil {
		logf.FromContext(ctx).V(1).Info("Failed reporting progress", "reason", err.Error())
	}
}

// failed reports the error of a run. That the process stops is none: the next one goes on.
func (s *reporter) failed(ctx context.Context, err error) error {
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

// succeeded reports the end of a run, and what was seen.
func (s *reporter) succeeded(ctx context.Context, o *observation) error {
	return s.patch(ctx, func(status *corev1beta1.SeedStatus) {
		status.Gardener, status.KubernetesVersion, status.ObservedGeneration = &o.gardener, &o.version, o.generation
		status.Capacity, status.Allocatable = o.capacity, o.allocatable
		if o.identity != "" {
			status.ClusterIdentity = &o.identity
		}
		if o.expiry != nil {
			status.ClientCertificateExpirationTimestamp = new(metav1.NewTime(*o.expiry))
		}
		if s.loud {
			s.set(status, corev1beta1.LastOperationStateSucceeded, 100, "Seed cluster has been successfully reconciled.")
		}
	})
}

// write reports how the operation stands.
func (s *reporter) write(ctx context.Context, state corev1beta1.LastOperationState, progress int32, description string) error {
	return s.patch(ctx, func(status *corev1beta1.SeedStatus) { s.set(status, state, progress, description) })
}

func (s *reporter) set(status *corev1beta1.SeedStatus, state corev1beta1.LastOperationState, progress int32, description string) {
	operation := s.operation
	if operation == "" {
		operation = corev1beta1.LastOperationTypeReconcile
		if before := status.LastOperation; before == nil || before.Type == corev1beta1.LastOperationTypeCreate && s.loud && status.ObservedGeneration == 0 {
			operation = corev1beta1.LastOperationTypeCreate
		}
	}
	last := corev1beta1.LastOperation{Type: operation, State: state, Progress: progress, Description: description}
	if before := status.LastOperation; before != nil {
		last.LastUpdateTime = before.LastUpdateTime
		if *before == last {
			return // nothing new
		}
	}
	last.LastUpdateTime = metav1.NewTime(s.clock.Now())
	status.LastOperation = &last
}

// patch sends what a change makes different. The write may happen after the end of the pass.
func (s *reporter) patch(ctx context.Context, change func(*corev1beta1.SeedStatus)) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTimeout)
	defer cancel()
	after := s.seed.DeepCopy()
	change(&after.Status)
	if apiequality.Semantic.DeepEqual(s.seed.Status, after.Status) {
		return nil
	}
	if err := s.client.Status().Patch(ctx, after, client.StrategicMergeFrom(s.seed)); err != nil {
		return fmt.Errorf("patch status of Seed %q: %w", s.seed.Name, err)
	}
	s.seed = after
	return nil
}

// patchIfChanged sends what two states of an object differ in.
func patchIfChanged(ctx context.Context, c client.Client, before, after client.Object) error {
	if apiequality.Semantic.DeepEqual(before, after) {
		return nil
	}
	return c.Patch(ctx, after, client.MergeFrom(before))
}
