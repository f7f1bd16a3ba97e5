package extensionobject

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/extension"
)

const (
	// NamespacePrefix is the prefix of the namespaces of extension controllers in a seed. The name of the ControllerInstallation follows.
	NamespacePrefix = "extension-"
	// AnnotationCredentials is a checksum on a BackupBucket or BackupEntry. With other credentials in their Secret it changes, so that they are
	// reconciled: etcd uses a copy.
	AnnotationCredentials = "checksum/credentials"
	// controllerGrace is how long a wait goes on before it ends because no controller runs: one that is replaced begins within this time.
	controllerGrace = 30 * time.Second
	// missedHeartbeats is after how many of its periods without a renewal a heartbeat is stale. Another replica leads within one.
	missedHeartbeats = 2
	// defaultHeartbeat is the period of a heartbeat that does not say it.
	defaultHeartbeat = 30 * time.Second
	// unhealthyFor is for how long a controller without a heartbeat has been unhealthy when it counts as one that does not run. Images are pulled before.
	unhealthyFor = 2 * time.Minute
)

// errWatched is why the watch of a heartbeat goes on.
var errWatched = errors.New("the heartbeat is watched until the wait ends")

// Responsible returns the ControllerInstallation on a seed whose controller works on resources of a kind and type. It is nil if that is installed
// without one.
func Responsible(
	kind, typ, seed string, installations []corev1beta1.ControllerInstallation, registrations []corev1beta1.ControllerRegistration,
) *corev1beta1.ControllerInstallation {
	for i := range installations {
		ci := &installations[i]
		if ci.Spec.SeedRef == nil || ci.Spec.SeedRef.Name != seed {
			continue
		}
		index := slices.IndexFunc(registrations, func(reg corev1beta1.ControllerRegistration) bool { return reg.Name == ci.Spec.RegistrationRef.Name })
		if index >= 0 && slices.ContainsFunc(registrations[index].Spec.Resources, func(resource corev1beta1.ControllerResource) bool {
			return resource.Kind == kind && resource.Type == typ && ptr.Deref(resource.Primary, true)
		}) {
			return ci
		}
	}
	return nil
}

// ReadResponsible is Responsible for what is in the cache of a garden.
func ReadResponsible(ctx context.Context, gardenCache client.Reader, kind, typ, seed string) (*corev1beta1.ControllerInstallation, error) {
	installations, registrations := &corev1beta1.ControllerInstallationList{}, &corev1beta1.ControllerRegistrationList{}
	for _, list := range []client.ObjectList{installations, registrations} {
		if err := gardenCache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list %T: %w", list, err)
		}
	}
	return Responsible(kind, typ, seed, installations.Items, registrations.Items), nil
}

// notRunning returns why the controller of a ControllerInstallation does not run, or when to check again if nothing changes before; zero means never.
// What has a heartbeat runs if that is not stale, even if the installation has other problems. What has none, as not all extensions do, runs unless its
// installation is unhealthy and it has not begun what was requested. An extension that has no heartbeat any more may have left its Lease: what it has reported
// since, with its last operation, shows that.
func notRunning(
	lease *coordinationv1.Lease, ci *corev1beta1.ControllerInstallation, begun bool, reported, now time.Time,
) (problem string, after time.Duration) {
	if period := periodOf(lease); period > 0 && !reported.After(lease.Spec.RenewTime.Add(missedHeartbeats*period)) {
		if after = lease.Spec.RenewTime.Add(missedHeartbeats * period).Sub(now); after > 0 {
			return "", after
		}
		return fmt.Sprintf("it has not renewed its heartbeat, Lease %q, since %s", lease.Name, lease.Spec.RenewTime.UTC().Format(time.RFC3339)), 0
	}
	healthy := kube.Condition(ci.Status.Conditions, corev1beta1.ControllerInstallationHealthy)
	if begun || healthy == nil || healthy.Status != corev1beta1.ConditionFalse {
		return "", 0
	}
	if after = healthy.LastTransitionTime.Add(unhealthyFor).Sub(now); after > 0 {
		return "", after
	}
	return fmt.Sprintf("it is unhealthy since %s, and has not begun: %s", healthy.LastTransitionTime.UTC().Format(time.RFC3339), healthy.Message), 0
}

// periodOf is how often a heartbeat is renewed, or zero if it is none.
func periodOf(lease *coordinationv1.Lease) time.Duration {
	if lease == nil || lease.Spec.RenewTime == nil {
		return 0
	}
	if seconds := ptr.Deref(lease.Spec.LeaseDurationSeconds, 0); seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	return defaultHeartbeat
}

// requestedAt is when the last operation on a resource was requested. Zero if that is not known.
func requestedAt(obj extensionsv1alpha1.Object) time.Time {
	requested, err := time.Parse(time.RFC3339Nano, obj.GetAnnotations()[constants.GardenerTimestamp])
	if err != nil {
		return time.Time{}
	}
	return requested
}

// reportedSince is whether a controller has reported the last operation on a resource since a time. Times in a status have seconds.
func reportedSince(obj extensionsv1alpha1.Object, since time.Time) bool {
	return !reportedAt(obj).Before(since.Truncate(time.Second))
}

// reportedAt is when a controller has reported the last operation on a resource. Zero if it has not.
func reportedAt(obj extensionsv1alpha1.Object) time.Time {
	if last := obj.GetExtensionStatus().GetLastOperation(); last != nil {
		return last.LastUpdateTime.Time
	}
	return time.Time{}
}

// begun is whether a controller has seen the operation on a resource that was requested last.
func begun(obj extensionsv1alpha1.Object) bool {
	status := obj.GetExtensionStatus()
	last := status.GetLastOperation()
	if last == nil || obj.GetAnnotations()[constants.GardenerOperation] != "" {
		return false
	}
	if obj.GetDeletionTimestamp() != nil {
		return last.Type == corev1beta1.LastOperationTypeDelete
	}
	return status.GetObservedGeneration() == obj.GetGeneration()
}

// endIfNotRunning ends a wait for an extension controller that does not run, as it would keep a worker from objects of other extensions. Seen has the last
// state of the resource that is waited for. Nothing is read for a wait that is short, and what cannot be read is as if the controller had no heartbeat. The
// returned function ends the watch.
func endIfNotRunning(ctx context.Context, v Values, kind string, seen *atomic.Value, end context.CancelCauseFunc) (stop func()) {
	if v.Controller == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		select {
		case <-time.After(controllerGrace):
		case <-ctx.Done():
			return
		}
		if err := awaitNotRunning(ctx, v, kind, seen); err != nil {
			end(err)
		}
	})
	return func() { cancel(); running.Wait() }
}

// awaitNotRunning checks the controller of a resource now, when its heartbeat changes, and when that would be stale. It returns why the controller does not
// run, or nil if that is not to be expected, or the context has ended.
func awaitNotRunning(ctx context.Context, v Values, kind string, seen *atomic.Value) error {
	obj, ok := seen.Load().(extensionsv1alpha1.Object)
	if !ok {
		return nil // it does not exist
	}
	ci, err := v.Controller(ctx, kind, obj.GetExtensionSpec().GetExtensionType())
	if err != nil || ci == nil {
		return nil //nolint:nilerr // see endIfNotRunning
	}
	namespace := NamespacePrefix + ci.Name
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	leases := make(chan *coordinationv1.Lease)
	go func() {
		_ = kube.Await(ctx, v.Client, &coordinationv1.LeaseList{}, func(found []*coordinationv1.Lease) error {
			select {
			case leases <- append(found, nil)[0]:
			case <-ctx.Done():
			}
			return errWatched
		}, nil, client.InNamespace(namespace), client.MatchingFieldsSelector{Selector: fields.OneTermEqualSelector("metadata.name", extension.HeartbeatLease)})
	}()
	var lease *coordinationv1.Lease
	var again <-chan time.Time
	for {
		select {
		case lease = <-leases:
		case <-again:
		case <-ctx.Done():
			return nil
		}
		if ci, err = v.Controller(ctx, kind, obj.GetExtensionSpec().GetExtensionType()); err != nil || ci == nil {
			return nil //nolint:nilerr // see endIfNotRunning
		}
		obj = seen.Load().(extensionsv1alpha1.Object) //nolint:forcetypeassert // the value has nothing else
		problem, after := notRunning(lease, ci, begun(obj), reportedAt(obj), v.Clock.Now())
		if problem != "" {
			return fmt.Errorf("extension %q does not run: %s: see its pods and their logs in namespace %q of the seed, and ControllerInstallation %q",
				ci.Spec.RegistrationRef.Name, problem, namespace, ci.Name)
		}
		again = nil
		if after > 0 {
			again = time.After(after)
		}
	}
}
