// Package membership changes who is a member of an etcd cluster, and as what.
package membership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Join makes a member without data one of a running cluster, as a learner. What the cluster knows of it from before is
// removed first, because a member that forgot what it voted for must not vote again. It returns the initial-cluster
// setting that etcd needs to start.
func Join(ctx context.Context, cluster *clientv3.Client, name string, peerURLs []string) (string, error) {
	list, err := cluster.MemberList(ctx)
	if err != nil {
		return "", fmt.Errorf("list members: %w", err)
	}
	for _, member := range list.Members {
		// One that never started has no name yet.
		if member.Name != name && !(member.Name == "" && overlap(member.PeerURLs, peerURLs)) {
			continue
		}
		if _, err := cluster.MemberRemove(ctx, member.ID); err != nil && !errors.Is(err, rpctypes.ErrMemberNotFound) {
			return "", fmt.Errorf("remove member %q: %w", name, err)
		}
	}
	added, err := cluster.MemberAddAsLearner(ctx, peerURLs)
	if err != nil {
		return "", fmt.Errorf("add member %q: %w", name, err)
	}
	var initial []string
	for _, member := range added.Members {
		memberName := member.Name
		if member.ID == added.Member.ID {
			memberName = name
		}
		for _, url := range member.PeerURLs {
			initial = append(initial, memberName+"="+url)
		}
	}
	slices.Sort(initial)
	return strings.Join(initial, ","), nil
}

// Promote gives a learner its vote. It fails until the learner has caught up.
func Promote(ctx context.Context, cluster *clientv3.Client, id uint64) error {
	_, err := cluster.MemberPromote(ctx, id)
	if errors.Is(err, rpctypes.ErrMemberNotLearner) {
		return nil
	}
	return err
}

// UpdatePeerURLs makes the cluster know a member by its URLs, which change when TLS among members is switched on.
func UpdatePeerURLs(ctx context.Context, cluster *clientv3.Client, id uint64, peerURLs []string) error {
	list, err := cluster.MemberList(ctx)
	if err != nil {
		return fmt.Errorf("list members: %w", err)
	}
	for _, member := range list.Members {
		if member.ID == id && !same(member.PeerURLs, peerURLs) {
			if _, err := cluster.MemberUpdate(ctx, id, peerURLs); err != nil {
				return fmt.Errorf("update peer URLs of member %x: %w", id, err)
			}
		}
	}
	return nil
}

// Followers returns the members in the order in which to disturb them: the leader is last, so that it changes once at most.
func Followers(members []*etcdserverpb.Member, leader uint64) []*etcdserverpb.Member {
	sorted := slices.Clone(members)
	slices.SortStableFunc(sorted, func(a, b *etcdserverpb.Member) int {
		switch {
		case a.ID == leader:
			return 1
		case b.ID == leader:
			return -1
		}
		return strings.Compare(a.Name, b.Name)
	})
	return sorted
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}

func same(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}
