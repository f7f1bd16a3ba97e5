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

// repairAfter is the number of failures in a row after which the data of an etcd that does not respond is validated for the first time.
// The number doubles after each validation, because reading a large database takes a while and disturbs etcd.
const repairAfter = 3

// observer observes whether its member runs, leads, and has a vote. etcd has no watch for that, so its status is polled.
type observer struct {
	startup *startup.Startup
	leases  *leases.Leases // nil if none are configured
	own     *clientv3.Client
	cluster *clientv3.Client
	clock   clock.WithTicker
	metrics *metrics
	// lead is called when the member starts to lead; its context ends when the member leads no longer.
	lead func(ctx context.Context)

	mutex  sync.Mutex
	leader string // the name of the member that leads, empty if it is unknown

	heartbeat time.Time // when the Lease was renewed last
	role      druidv1alpha1.EtcdRole
	formed    bool
	failures  int
	// repairAt is the number of failures in a row after which the data is validated.
	repairAt int
	stopLead func()
}

// Leader returns the name of the member that leads, empty if it is unknown.
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
	o.repairAt = repairAfter
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
			o.repair(ctx)
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
	statusCtx, cancel := context.WithTimeout(ctx, config.LeaderElection.Timeout.Duration)
	defer cancel()
	status, err := o.own.Status(statusCtx, o.own.Endpoints()[0])
	if err != nil {
		return err
	}
	o.failures, o.repairAt = 0, repairAfter
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
		// A member must not get a vote before its Lease shows that it has data: others would form a cluster without it.
		logr.FromContextOrDiscard(ctx).Error(err, "Cannot renew the Lease of the member")
		if role == druidv1alpha1.EtcdRoleLearner {
			return nil
		}
	}
	if role == druidv1alpha1.EtcdRoleLearner {
		return o.promote(ctx, id)
	}
	members, err := o.own.MemberList(statusCtx)
	if err != nil {
		return err
	}
	o.metrics.clusterSize.Set(float64(len(members.Members)))
	for _, member := range members.Members {
		if member.ID == status.Leader {
			o.setLeader(member.Name)
		}
	}
	if err := membership.UpdatePeerURLs(statusCtx, o.own, id, o.startup.PeerURLs()); err != nil {
		return err
	}
	if role == druidv1alpha1.EtcdRoleLeader && o.stopLead == nil {
		o.startLead(ctx)
	}
	return nil
}

// renew renews the Lease of the member, if that is due or if its role changed.
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
		// It is still catching up, or other members are not available; the next observation retries.
		logr.FromContextOrDiscard(ctx).V(1).Info("Cannot promote the learner yet", "reason", err.Error())
		return nil
	}
	logr.FromContextOrDiscard(ctx).Info("Promoted the learner")
	return nil
}

func (o *observer) startLead(ctx context.Context) {
	logr.FromContextOrDiscard(ctx).Info("Starting to lead")
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

// resign ends the tasks of the leader, and waits until they have ended.
func (o *observer) resign() {
	o.setLeader("")
	if o.stopLead != nil {
		o.stopLead()
		o.stopLead = nil
	}
}

// repair validates the data of an etcd that does not respond and, if it is not valid, does the same as before a start: when the container of
// etcd restarts, "initialize" is not run again.
func (o *observer) repair(ctx context.Context) {
	log := logr.FromContextOrDiscard(ctx)
	if o.failures < o.repairAt {
		return
	}
	o.repairAt *= 2
	check, err := datadir.Validate(ctx, o.startup.Config.DataDir)
	if errors.Is(err, datadir.ErrInUse) || err == nil && check.State == datadir.Valid {
		return
	}
	if err == nil {
		log.Info("Repairing data of an etcd that does not run", "data", check.State, "reason", check.Reason)
		_, err = o.startup.Run(ctx)
	}
	if err != nil {
		log.Error(err, "Cannot repair the data")
		return
	}
	o.formed = false
	o.heartbeat = time.Time{}
}
