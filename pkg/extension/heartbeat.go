package extension

import (
	"cmp"
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// HeartbeatLease is the name of the Lease that shows gardenlet that an extension is running. It is in the extension's namespace.
const HeartbeatLease = "gardener-extension-heartbeat"

// defaultHeartbeat is Heartbeat.Interval if it is not set.
const defaultHeartbeat = 30 * time.Second

// Heartbeat renews the Lease of an extension while it leads.
type Heartbeat struct {
	// Name is the name of the extension.
	Name string
	// Namespace is the namespace it runs in.
	Namespace string
	// Client writes the Lease. Reader reads it from the API server, so that no cache has to hold Leases.
	Client client.Client
	Reader client.Reader
	// Clock is the source of renewTime and of the ticks.
	Clock clock.WithTicker
	// Interval is how often the Lease is renewed, and its duration. Zero means 30 seconds.
	Interval time.Duration
}

// AddHeartbeat adds the heartbeat to a manager, whose cluster is the seed.
func AddHeartbeat(mgr manager.Manager, name, namespace string) error {
	return mgr.Add(&Heartbeat{Name: name, Namespace: namespace, Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Clock: clock.RealClock{}})
}

// Start renews the Lease until the context ends.
func (h *Heartbeat) Start(ctx context.Context) error {
	ticker := h.Clock.NewTicker(h.interval())
	defer ticker.Stop()
	for {
		if err := h.renew(ctx); err != nil && ctx.Err() == nil {
			logf.FromContext(ctx).Error(err, "Renewing heartbeat")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

func (h *Heartbeat) interval() time.Duration { return cmp.Or(h.Interval, defaultHeartbeat) }

func (h *Heartbeat) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, h.interval()/2)
	defer cancel()
	lease := &coordinationv1.Lease{}
	err := h.Reader.Get(ctx, client.ObjectKey{Namespace: h.Namespace, Name: HeartbeatLease}, lease)
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return fmt.Errorf("read Lease %q: %w", HeartbeatLease, err)
	}
	before := lease.DeepCopy()
	seconds, now := int32(h.interval().Seconds()), metav1.NewMicroTime(h.Clock.Now())
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = &h.Name, &seconds, &now
	if missing {
		lease.Namespace, lease.Name = h.Namespace, HeartbeatLease
		err = h.Client.Create(ctx, lease)
	} else {
		err = h.Client.Patch(ctx, lease, client.MergeFrom(before))
	}
	if err != nil {
		return fmt.Errorf("renew Lease %q: %w", HeartbeatLease, err)
	}
	return nil
}
