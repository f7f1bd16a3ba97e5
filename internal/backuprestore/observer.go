package backuprestore

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/utils/clock"

	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	"gardener.cloud/gardener/internal/backuprestore/datadir"
	"gardener.cloud/gardener/internal/backuprestore/leases"
	"gardener.cloud/gardener/internal/backuprestore/membership"
	"gardener.cloud/gardener/internal/backuprestore/startup"
)

// mendAfter is after how many failures in a row the data of an etcd that does not answer is looked at, the first time. After
// each look the number doubles, because reading a large database takes a while and disturbs.
const mendAfter = 3

// observer follows its member: whether it runs, leads, has a vote. etcd has nothing to watch for that, so it asks.
type observer struct {
	startup *startup.Startup
	leases  *leases.Leases // nil if there are none
	own     *clientv3.Client
	cluster *clientv3.Client
	clock   clock.WithTicker
	metrics *metrics
	// lead is called when the member leads; its context ends with that.
	lead func(ctx context.Context)

	mutex  sync.Mutex
	leader string // the name of the member that leads, if it is known

	heartbeat time.Time // of the last one that succeeded
	role      druidv1alpha1.EtcdRole
	formed    bool
	failures  int
	lookAfter int
	stopLead  func()
}

// Leader returns the name of the member that leads, "" if it is not known.
func (o *observer) Leader() string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.leader
}

func (o *observer) setLeader(name string) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.leader = name
}

// Run observes until the context ends.
func (o *observer) Run(ctx context.Context) {
	log := logr.FromContextOrDiscard(ctx)
	o.lookAfter = mendAfter
	period := o.startup.Config.LeaderElection.Period.Duration
	if o.leases != nil {
		period = min(period, o.leases.Config.HeartbeatPeriod.Duration)
	}
	ticker := o.clock.NewTicker(period)
	defer ticker.Stop()
	defer o.resign()
	for {
		if err := o.observe(ctx); err != nil && ctx.Err() == nil {
			o.failures++
			log.Info("Cannot observe etcd", "reason", err.Error(), "failures", o.failures)
			o.resign()
			o.mend(ctx)
		}
		select {
		case <-ticker.C():
		case <-ctx.Done():
			return
		}
	}
}

func (o *observer) observe(ctx context.Context) error {
	config := o.startup.Config
	ask, cancel := context.WithTimeout(ctx, config.LeaderElection.Timeout.Duration)
	defer cancel()
	status, err := o.own.Status(ask, o.own.Endpoints()[0])
	if err != nil {
		return err
	}
	o.failures, o.lookAfter = 0, mendAfter
	id := status.Header.MemberId
	if !o.formed {
		if err := o.startup.Formed(); err != nil {
			return err
		}
		o.formed = true
	}
	role := druidv1alpha1.EtcdRoleMember
	switch {
	case status.IsLearner:
		role = druidv1alpha1.EtcdRoleLearner
	case status.Leader == id:
		role = druidv1alpha1.EtcdRoleLeader
	}
	if role != druidv1alpha1.EtcdRoleLeader {
		o.resign()
	}
	if err := o.renew(ctx, id, role); err != nil {
		// Before it has said that it has data, a member must not vote: others would form a cluster without it.
		logr.FromContextOrDiscard(ctx).Error(err, "Cannot renew the Lease of the member")
		if role == druidv1alpha1.EtcdRoleLearner {
			return nil
		}
	}
	if role == druidv1alpha1.EtcdRoleLearner {
		return o.promote(ctx, id)
	}
	members, err := o.own.MemberList(ask)
	if err != nil {
		return err
	}
	o.metrics.clusterSize.Set(float64(len(members.Members)))
	for _, member := range members.Members {
		if member.ID == status.Leader {
			o.setLeader(member.Name)
		}
	}
	if err := membership.UpdatePeerURLs(ask, o.own, id, o.startup.PeerURLs()); err != nil {
		return err
	}
	if role == druidv1alpha1.EtcdRoleLeader && o.stopLead == nil {
		o.startLead(ctx)
	}
	return nil
}

// renew says that the member is alive, if it is time to or if its role is another.
func (o *observer) renew(ctx context.Context, id uint64, role druidv1alpha1.EtcdRole) error {
	if o.leases == nil || role == o.role && o.clock.Since(o.heartbeat) < o.leases.Config.HeartbeatPeriod.Duration {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, o.startup.Config.Etcd.RequestTimeout.Duration)
	defer cancel()
	peerTLS := strings.HasPrefix(o.startup.PeerURLs()[0], "https:")
	if err := o.leases.RenewMember(ctx, id, role, peerTLS); err != nil {
		return err
	}
	o.heartbeat, o.role = o.clock.Now(), role
	return nil
}

func (o *observer) promote(ctx context.Context, id uint64) error {
	ctx, cancel := context.WithTimeout(ctx, o.startup.Config.Etcd.RequestTimeout.Duration)
	defer cancel()
	if err := membership.Promote(ctx, o.cluster, id); err != nil {
		// It is still catching up, or members are away; the next round tries again.
		logr.FromContextOrDiscard(ctx).V(1).Info("The learner cannot get its vote yet", "reason", err.Error())
		return nil
	}
	logr.FromContextOrDiscard(ctx).Info("The learner has got its vote")
	return nil
}

func (o *observer) startLead(ctx context.Context) {
	logr.FromContextOrDiscard(ctx).Info("The member leads")
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		o.lead(ctx)
	}()
	o.stopLead = func() {
		cancel()
		<-done
	}
}

// resign ends what only the leader does, and waits for that.
func (o *observer) resign() {
	o.setLeader("")
	if o.stopLead != nil {
		o.stopLead()
		o.stopLead = nil
	}
}

// mend looks at the data of an etcd that does not answer, and does what is done before a start if the data is no good: the
// container of etcd restarts by itself, without "initialize" being run again.
func (o *observer) mend(ctx context.Context) {
	log := logr.FromContextOrDiscard(ctx)
	if o.failures < o.lookAfter {
		return
	}
	o.lookAfter *= 2
	check, err := datadir.Validate(ctx, o.startup.Config.DataDir)
	if errors.Is(err, datadir.ErrInUse) || err == nil && check.State == datadir.Valid {
		return
	}
	if err == nil {
		log.Info("Mending data of an etcd that does not run", "data", check.State, "reason", check.Reason)
		_, err = o.startup.Run(ctx)
	}
	if err != nil {
		log.Error(err, "Mending the data failed")
		return
	}
	o.formed = false
	o.heartbeat = time.Time{}
}
