// Package startup ensures that etcd finds valid data, or a cluster to join, before it starts.
package startup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-logr/logr"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	backuprestoreconfigv1alpha1 "gardener.cloud/gardener/api/config/backuprestore/v1alpha1"
	"gardener.cloud/gardener/internal/backuprestore/datadir"
	"gardener.cloud/gardener/internal/backuprestore/membership"
	"gardener.cloud/gardener/internal/backuprestore/snapshot"
	"gardener.cloud/gardener/internal/backuprestore/snapstore"
)

// Registry has for each member whether it has data. It must be available when etcd is not.
type Registry interface {
	// ReportNoData reports that this member has no data.
	ReportNoData(ctx context.Context) error
	// OthersHaveData reports whether another member has data.
	OthersHaveData(ctx context.Context) (bool, error)
	// AwaitOthers returns when another member has data.
	AwaitOthers(ctx context.Context) error
	// KnownBackup returns the Lease with which a full snapshot was reported, or "" if none was.
	KnownBackup(ctx context.Context) (string, error)
}

// Alone is the registry of a cluster of one member.
type Alone struct{}

// ReportNoData does nothing.
func (Alone) ReportNoData(context.Context) error { return nil }

// OthersHaveData returns false.
func (Alone) OthersHaveData(context.Context) (bool, error) { return false, nil }

// AwaitOthers fails at once.
func (Alone) AwaitOthers(context.Context) error {
	return errors.New("there is no member to wait for: only the bootstrap member may have no leases configured")
}

// KnownBackup returns none.
func (Alone) KnownBackup(context.Context) (string, error) { return "", nil }

// joinBackoff is how often joining is retried: the cluster may not be reachable for a while, and has one learner at a time.
var joinBackoff = wait.Backoff{Duration: 500 * time.Millisecond, Factor: 1.5, Jitter: 0.2, Steps: 1000, Cap: 10 * time.Second}

// Startup prepares the data and the configuration file of a member before etcd starts.
type Startup struct {
	Config *backuprestoreconfigv1alpha1.BackupRestoreConfiguration
	Member string
	// Store may be nil.
	Store    *snapstore.Store
	Registry Registry
	// Dial returns a client of etcd.
	Dial  func(endpoint string) (*clientv3.Client, error)
	Clock clock.Clock
}

// Run returns when etcd may start.
func (s *Startup) Run(ctx context.Context) (Action, error) {
	log := logr.FromContextOrDiscard(ctx)
	for {
		facts, reason, err := s.facts(ctx)
		if err != nil {
			return "", err
		}
		action := Decide(facts)
		log.Info("Decided on action before etcd starts", "action", action, "data", facts.Data, "reason", reason, "revision", facts.Revision,
			"backupRevision", facts.BackupRevision, "othersHaveData", facts.OthersHaveData)
		if action == Wait {
			if err := s.Registry.AwaitOthers(ctx); err != nil {
				return "", fmt.Errorf("wait for a member with data: %w", err)
			}
			continue
		}
		if err := s.act(ctx, action, facts); !errors.Is(err, errNoMemberHasData) {
			return action, err
		}
	}
}

func (s *Startup) facts(ctx context.Context) (Facts, string, error) {
	check, err := datadir.Validate(ctx, s.Config.DataDir)
	if err != nil {
		return Facts{}, "", fmt.Errorf("validate data directory: %w", err)
	}
	facts := Facts{Data: check.State, Revision: check.Revision, Members: check.Members, Bootstrap: s.Member == s.Config.Cluster.BootstrapMember}
	if check.State != datadir.Valid {
		if err := s.Registry.ReportNoData(ctx); err != nil {
			return Facts{}, "", fmt.Errorf("report that there is no data: %w", err)
		}
	}
	if facts.OthersHaveData, err = s.Registry.OthersHaveData(ctx); err != nil {
		return Facts{}, "", fmt.Errorf("read whether other members have data: %w", err)
	}
	if s.Store != nil && !facts.OthersHaveData {
		snapshots, err := s.Store.List(ctx)
		switch {
		case err == nil:
			if chains := snapshot.Chains(snapshots); len(chains) > 0 {
				facts.BackupRevision = chains[0].LastRevision()
			}
		case check.State == datadir.Valid:
			// An etcd with valid data starts even if the store is not available.
			logr.FromContextOrDiscard(ctx).Error(err, "Cannot compare data with the backup")
		default:
			return Facts{}, "", err
		}
	}
	if s.Store != nil && Decide(facts) == New {
		if err := s.checkNoBackup(ctx); err != nil {
			return Facts{}, "", err
		}
	}
	return facts, check.Reason, nil
}

// checkNoBackup fails if there was a backup: a store without it is another one than before, or is not mounted, and etcd must not begin without data.
func (s *Startup) checkNoBackup(ctx context.Context) error {
	lease, err := s.Registry.KnownBackup(ctx)
	if err != nil {
		return fmt.Errorf("read whether there was a backup: %w", err)
	}
	if lease != "" {
		return fmt.Errorf("the store has no full snapshot, but Lease %q says that there was one: check bucket, prefix and endpoint of the store; "+
			"to begin without data, remove spec.holderIdentity of the Lease", lease)
	}
	return nil
}

func (s *Startup) act(ctx context.Context, action Action, facts Facts) error {
	state, initialCluster := existing, s.alone()
	switch action {
	case Restore:
		restore := datadir.Restore{
			Store: s.Store, DataDir: s.Config.DataDir, Revision: facts.Revision,
			Member: s.Member, PeerURLs: s.PeerURLs(), InitialCluster: s.alone(), Token: s.Config.Cluster.Token,
		}
		switch _, err := restore.Run(ctx, logr.FromContextOrDiscard(ctx)); {
		case errors.Is(err, datadir.ErrNoBackup) && facts.Data == datadir.Valid:
			logr.FromContextOrDiscard(ctx).Error(err, "Keeping the current data, as the backup is damaged and reaches no further")
		case err != nil:
			return fmt.Errorf("restore: %w", err)
		}
	case New:
		// Damaged data without a backup is kept. Where there is no data, etcd may just have begun to write some.
		if facts.Data == datadir.Corrupt {
			if err := datadir.SetAside(s.Config.DataDir); err != nil {
				return err
			}
		}
		state = "new"
	case Join:
		if err := os.RemoveAll(s.Config.DataDir); err != nil {
			return err
		}
		var err error
		if initialCluster, err = s.join(ctx); err != nil {
			return err
		}
	}
	return s.writeConfig(state, initialCluster)
}

// errNoMemberHasData is returned if the members that were to be joined have no data either.
var errNoMemberHasData = errors.New("no member has data any more")

func (s *Startup) join(ctx context.Context) (initialCluster string, err error) {
	log := logr.FromContextOrDiscard(ctx)
	cluster, err := s.Dial(s.Config.Cluster.ClientEndpoint)
	if err != nil {
		return "", err
	}
	defer cluster.Close() //nolint:errcheck // nothing is pending
	backoff := joinBackoff
	for {
		attempt, cancel := context.WithTimeout(ctx, s.Config.Etcd.RequestTimeout.Duration)
		initialCluster, err = membership.Join(attempt, cluster, s.Member, s.PeerURLs())
		cancel()
		if err == nil {
			return initialCluster, nil
		}
		log.V(1).Info("Cannot join the cluster yet", "reason", err.Error())
		// They start at the same time as this member, and may have validated their data only now.
		if others, listErr := s.Registry.OthersHaveData(ctx); listErr == nil && !others {
			return "", errNoMemberHasData
		}
		select {
		case <-s.Clock.After(backoff.Step()):
		case <-ctx.Done():
			return "", errors.Join(err, ctx.Err())
		}
	}
}

// PeerURLs are the URLs of the member for its peers.
func (s *Startup) PeerURLs() []string {
	cluster := s.Config.Cluster
	return append([]string{MemberURL(cluster.PeerURL, s.Member)}, cluster.AdditionalPeerURLs[s.Member]...)
}

// MemberURL puts the name of a member in a URL.
func MemberURL(url, member string) string {
	return strings.ReplaceAll(url, backuprestoreconfigv1alpha1.MemberPlaceholder, member)
}

// existing is the state with which an etcd without data joins other members instead of forming a new cluster.
const existing = "existing"

// alone is the initial-cluster setting of a cluster of this member.
func (s *Startup) alone() string {
	var initial []string
	for _, url := range s.PeerURLs() {
		initial = append(initial, s.Member+"="+url)
	}
	return strings.Join(initial, ",")
}

// Formed is called when etcd runs. From then on it must not form a new cluster, even if its data is lost and it restarts before Run is called
// again.
func (s *Startup) Formed() error { return s.writeConfig(existing, s.alone()) }

// writeConfig writes the configuration file of etcd.
func (s *Startup) writeConfig(state, initialCluster string) error {
	config := map[string]any{}
	if raw := s.Config.Etcd.Config; raw != nil {
		if err := yaml.Unmarshal(raw.Raw, &config); err != nil {
			return fmt.Errorf("read etcd.config: %w", err)
		}
	}
	config["name"] = s.Member
	config["data-dir"] = s.Config.DataDir
	config["initial-advertise-peer-urls"] = strings.Join(s.PeerURLs(), ",")
	config["advertise-client-urls"] = MemberURL(s.Config.Cluster.ClientURL, s.Member)
	config["initial-cluster"] = initialCluster
	config["initial-cluster-state"] = state
	config["initial-cluster-token"] = s.Config.Cluster.Token
	content, err := yaml.Marshal(config)
	if err != nil {
		return err
	}
	file := s.Config.Etcd.ConfigFile
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	// The file is replaced atomically, as etcd must not read a part of it.
	if err := os.WriteFile(file+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}
