package backuprestore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	backuprestoreconfigv1alpha1 "gardener.cloud/gardener/api/config/backuprestore/v1alpha1"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	"gardener.cloud/gardener/test/env"
)

// TestThreeMembers scales a cluster from one member to three, removes the data of one, and then that of all.
func TestThreeMembers(t *testing.T) {
	t.Parallel()
	step := env.Story(t)
	garden := env.Start(t)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := garden.WriteKubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	c := newCluster(t)
	c.leases = &backuprestoreconfigv1alpha1.Leases{
		Kubeconfig: kubeconfig, Namespace: "garden", MemberSelector: map[string]string{"part-of": "etcd-main"},
		HeartbeatPeriod: &metav1.Duration{Duration: time.Second}, FullSnapshot: "etcd-main-full-snap", DeltaSnapshot: "etcd-main-delta-snap",
	}
	var members []*member
	for i := range 3 {
		members = append(members, c.member(i))
	}
	lease := func(name string) *coordinationv1.Lease {
		l := &coordinationv1.Lease{}
		if err := garden.Client.Get(t.Context(), client.ObjectKey{Namespace: "garden", Name: name}, l); err != nil {
			t.Fatal(err)
		}
		return l
	}
	for _, l := range []struct {
		name   string
		labels map[string]string
	}{
		{members[0].name, c.leases.MemberSelector},
		{members[1].name, c.leases.MemberSelector},
		{members[2].name, c.leases.MemberSelector},
		{c.leases.FullSnapshot, nil},
		{c.leases.DeltaSnapshot, nil},
	} {
		if err := garden.Client.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: l.name, Labels: l.labels}}); err != nil {
			t.Fatal(err)
		}
	}
	voters := func(want int) {
		t.Helper()
		url := fmt.Sprintf("http://%s:%d", members[0].name, c.clientPort)
		etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{url}, Logger: zap.NewNop()})
		if err != nil {
			t.Fatal(err)
		}
		defer etcd.Close() //nolint:errcheck // nothing is pending
		c.eventually(fmt.Sprintf("there are %d members with a vote", want), func(ctx context.Context) error {
			list, err := etcd.MemberList(ctx)
			if err != nil {
				return err
			}
			voters := 0
			for _, member := range list.Members {
				if !member.IsLearner && member.Name != "" {
					voters++
				}
			}
			if voters != want || len(list.Members) != want {
				return fmt.Errorf("%d members, %d with a vote", len(list.Members), voters)
			}
			return nil
		})
	}

	step("the first member forms a cluster")
	members[0].run()
	c.setReady(members[0].name)
	voters(1)

	step("two members join while there are writes; none that was acknowledged may be lost")
	writer := startWriter(t, c)
	members[1].run()
	voters(2)
	c.setReady(members[0].name, members[1].name)
	members[2].run()
	voters(3)
	c.setReady(members[0].name, members[1].name, members[2].name)

	leader := members[0].observedLeader()
	for _, m := range members {
		_, role, err := druidv1alpha1.ParseMemberIdentity(*lease(m.name).Spec.HolderIdentity)
		if err != nil {
			t.Error(err)
		}
		if role == druidv1alpha1.EtcdRoleLearner {
			c.eventually("the Lease shows the vote", func(context.Context) error {
				if _, role, _ := druidv1alpha1.ParseMemberIdentity(*lease(m.name).Spec.HolderIdentity); role != druidv1alpha1.EtcdRoleMember {
					return fmt.Errorf("%s is %s", m.name, role)
				}
				return nil
			})
		}
	}

	// A follower first, then the first leader.
	for _, lost := range []*member{other(members, leader), members[0]} {
		step(lost.name + " loses its data")
		var ready []string
		for _, m := range members {
			if m != lost {
				ready = append(ready, m.name)
			}
		}
		c.setReady(ready...)
		lost.kill()
		if err := os.RemoveAll(lost.config.DataDir); err != nil {
			t.Fatal(err)
		}
		lost.run()
		voters(3)
		c.setReady(members[0].name, members[1].name, members[2].name)
	}

	step("the acknowledged writes are there")
	t.Logf("%d writes were acknowledged", len(writer.stop()))
	for _, m := range members {
		got := content(t, m.client())
		for _, key := range writer.acknowledged {
			if _, ok := got[key]; !ok {
				t.Fatalf("%s: key %s was acknowledged and is missing", m.name, key)
			}
		}
	}

	step("each member takes requests for snapshots; one that does not lead forwards them")
	want := content(t, members[0].client())
	for _, m := range members {
		m.post("/snapshot/delta")
	}
	if revision := lease(c.leases.FullSnapshot).Spec.HolderIdentity; revision == nil {
		t.Error("the Lease of full snapshots has no revision")
	}

	step("all members lose their data, and the backup is restored")
	c.setReady()
	for _, m := range members {
		m.kill()
		if err := os.RemoveAll(m.config.DataDir); err != nil {
			t.Fatal(err)
		}
	}
	initialized := make(chan *member, len(members))
	var initializing sync.WaitGroup
	t.Cleanup(initializing.Wait) // they log to the test
	for _, m := range members {
		initializing.Go(func() {
			if err := m.initialize(); err != nil {
				t.Errorf("initialize %s: %v", m.name, err)
			}
			initialized <- m
		})
		// The Leases of later members still show data, so the first member does not form a cluster at once.
		c.eventually("its Lease shows that it has no data", func(context.Context) error {
			if lease(m.name).Spec.HolderIdentity != nil {
				return fmt.Errorf("%s has a holder", m.name)
			}
			return nil
		})
	}
	for i := range members { // the first restores the backup, then the others join one after the other
		m := <-initialized
		m.start()
		m.serve()
		voters(1 + i)
		if i == 0 {
			c.setReady(m.name)
		}
	}
	if diff := cmp.Diff(want, content(t, members[0].client())); diff != "" {
		t.Errorf("restored content (-want +got):\n%s", diff)
	}
}

// observedLeader waits until etcd has a leader, and returns its name.
func (m *member) observedLeader() string {
	m.t.Helper()
	var leader string
	etcd := m.client()
	m.eventually("there is a leader", func(ctx context.Context) error {
		status, err := etcd.Status(ctx, etcd.Endpoints()[0])
		if err != nil {
			return err
		}
		list, err := etcd.MemberList(ctx)
		if err != nil {
			return err
		}
		for _, member := range list.Members {
			if member.ID == status.Leader {
				leader = member.Name
				return nil
			}
		}
		return errors.New("no leader")
	})
	return leader
}

func other(members []*member, leader string) *member {
	for _, m := range members[1:] {
		if m.name != leader {
			return m
		}
	}
	panic("there is no follower")
}

// writer writes keys one after the other.
type writer struct {
	acknowledged []string
	cancel       context.CancelFunc
	done         chan struct{}
}

func startWriter(t *testing.T, c *cluster) *writer {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &writer{cancel: cancel, done: make(chan struct{})}
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{c.endpoint}, Logger: zap.NewNop(), DialKeepAliveTime: time.Second, DialKeepAliveTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { etcd.Close() }) //nolint:errcheck // the test is over
	// Often enough to notice a lost write, without slowing down the members.
	ticker := time.NewTicker(5 * time.Millisecond)
	go func() {
		defer close(w.done)
		defer ticker.Stop()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			key := fmt.Sprintf("writer/%06d", i)
			attempt, cancel := context.WithTimeout(ctx, 2*time.Second)
			if _, err := etcd.Put(attempt, key, "value"); err == nil {
				w.acknowledged = append(w.acknowledged, key)
			}
			cancel()
		}
	}()
	return w
}

// stop ends the writes and returns the acknowledged keys.
func (w *writer) stop() []string {
	w.cancel()
	<-w.done
	return w.acknowledged
}
