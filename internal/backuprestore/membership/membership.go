// Package membership adds, promotes and updates the members of an etcd cluster.
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

// Join adds a member without data to a running cluster, as a learner. A former member of the same name is removed first, because a member
// that lost its log must not vote again. It returns the initial-cluster setting that etcd needs to start.
func Join(ctx context.Context, cluster *clientv3.Client, name string, peerURLs []string) (string, error) {
	list, err := cluster.MemberList(ctx)
	if err != nil {
		return "", fmt.Errorf("list members: %w", err)
	}
	for _, member := range list.Members {
		// A member that has never started has no name.
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

// Promote makes a learner a member with a vote. It fails until the learner has caught up.
func Promote(ctx context.Context, cluster *clientv3.Client, id uint64) error {
	_, err := cluster.MemberPromote(ctx, id)
	if errors.Is(err, rpctypes.ErrMemberNotLearner) {
		return nil
	}
	return err
}

// UpdatePeerURLs updates the peer URLs of a member in the cluster. They change when peer TLS is enabled.
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

// Followers returns the members with the leader at the end, so that disturbing one after the other changes the leader once at most.
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
