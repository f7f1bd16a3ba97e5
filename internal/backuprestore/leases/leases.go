// Package leases writes and reads the Leases in which members report the state of their data and backups to each other and to etcd-druid.
//
// The Lease of a member has "<id>:<role>" as its holder if the member has data, and none if it does not. The Lease for a
// kind of snapshot has the revision that the snapshots reach. etcd-druid creates them all and reads them.
package leases

import (
	"context"
	"fmt"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	backuprestoreconfigv1alpha1 "gardener.cloud/gardener/api/config/backuprestore/v1alpha1"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	"gardener.cloud/gardener/internal/backuprestore/snapshot"
	"gardener.cloud/gardener/internal/kube"
)

// requestTimeout is how long a request may take.
const requestTimeout = 30 * time.Second

// Leases are those of one member.
type Leases struct {
	Client client.WithWatch
	Config *backuprestoreconfigv1alpha1.Leases
	Member string
	Clock  clock.PassiveClock
}

// ReportNoData reports that this member has no data.
func (l *Leases) ReportNoData(ctx context.Context) error {
	lease, err := l.get(ctx, l.Member)
	if err != nil || holder(lease) == "" {
		return err
	}
	return l.patch(ctx, lease, func() { lease.Spec.HolderIdentity = nil })
}

// OthersHaveData reports whether another member has data.
func (l *Leases) OthersHaveData(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	leases := &coordinationv1.LeaseList{}
	if err := l.Client.List(ctx, leases, l.members()...); err != nil {
		return false, fmt.Errorf("list Leases of members: %w", err)
	}
	for i := range leases.Items {
		if lease := &leases.Items[i]; lease.Name != l.Member && holder(lease) != "" {
			return true, nil
		}
	}
	return false, nil
}

// AwaitOthers returns when another member has data.
func (l *Leases) AwaitOthers(ctx context.Context) error {
	return kube.Await(ctx, l.Client, &coordinationv1.LeaseList{}, func(leases []*coordinationv1.Lease) error {
		for _, lease := range leases {
			if lease.Name != l.Member && holder(lease) != "" {
				return nil
			}
		}
		return fmt.Errorf("none of %d Leases has a holder", len(leases))
	}, nil, l.members()...)
}

// KnownBackup returns the Lease with which a full snapshot was reported, or "" if none was.
func (l *Leases) KnownBackup(ctx context.Context) (string, error) {
	name := l.Config.FullSnapshot
	if name == "" {
		return "", nil
	}
	lease, err := l.get(ctx, name)
	if err != nil || holder(lease) == "" {
		return "", err
	}
	return name, nil
}

func (l *Leases) members() []client.ListOption {
	return []client.ListOption{client.InNamespace(l.Config.Namespace), client.MatchingLabels(l.Config.MemberSelector)}
}

// RenewMember reports that this member has data, its identity, and whether it uses TLS for its peers.
func (l *Leases) RenewMember(ctx context.Context, id uint64, role druidv1alpha1.EtcdRole, peerTLS bool) error {
	lease, err := l.get(ctx, l.Member)
	if err != nil {
		return err
	}
	return l.patch(ctx, lease, func() {
		metav1.SetMetaDataAnnotation(&lease.ObjectMeta, druidv1alpha1.LeaseAnnotationKeyPeerURLTLSEnabled, strconv.FormatBool(peerTLS))
		lease.Spec.HolderIdentity = new(druidv1alpha1.FormatMemberIdentity(id, role))
		lease.Spec.RenewTime = &metav1.MicroTime{Time: l.Clock.Now()}
	})
}

// RenewSnapshot reports the revision that the snapshots of a kind reach.
func (l *Leases) RenewSnapshot(ctx context.Context, kind snapshot.Kind, revision int64) error {
	name := l.Config.DeltaSnapshot
	if kind == snapshot.Full {
		name = l.Config.FullSnapshot
	}
	if name == "" {
		return nil
	}
	lease, err := l.get(ctx, name)
	if err != nil {
		return err
	}
	return l.patch(ctx, lease, func() {
		lease.Spec.HolderIdentity = new(strconv.FormatInt(revision, 10))
		lease.Spec.RenewTime = &metav1.MicroTime{Time: l.Clock.Now()}
	})
}

func (l *Leases) get(ctx context.Context, name string) (*coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	lease := &coordinationv1.Lease{}
	if err := l.Client.Get(ctx, client.ObjectKey{Namespace: l.Config.Namespace, Name: name}, lease); err != nil {
		return nil, fmt.Errorf("read Lease %q: %w", name, err)
	}
	return lease, nil
}

func (l *Leases) patch(ctx context.Context, lease *coordinationv1.Lease, change func()) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	before := lease.DeepCopy()
	change()
	if err := l.Client.Patch(ctx, lease, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("write Lease %q: %w", lease.Name, err)
	}
	return nil
}

func holder(lease *coordinationv1.Lease) string { return ptr.Deref(lease.Spec.HolderIdentity, "") }
