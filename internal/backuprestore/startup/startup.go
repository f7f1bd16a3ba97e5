// Package startup makes sure that etcd finds good data, or a cluster to join, before it starts.
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

// Registry is where the members tell each other whether they have data. It must be there when etcd is not.
type Registry interface {
	// Forget says that this member has no data.
	Forget(ctx context.Context) error
	// OthersHaveData tells whether another member has.
	OthersHaveData(ctx context.Context) (bool, error)
	// AwaitOthers returns when another member has data.
	AwaitOthers(ctx context.Context) error
}

// Alone is the registry of a cluster of one member.
type Alone struct{}

// Forget has nobody to tell.
func (Alone) Forget(context.Context) error { return nil }

// OthersHaveData is never so.
func (Alone) OthersHaveData(context.Context) (bool, error) { return false, nil }

// AwaitOthers fails at once.
func (Alone) AwaitOthers(context.Context) error {
	return errors.New("there is no member to wait for: only the bootstrap member can do without leases")
}

// joinBackoff is how often joining is tried: the cluster may not be reachable for a while, and takes one learner at a time.
var joinBackoff = wait.Backoff{Duration: 500 * time.Millisecond, Factor: 1.5, Jitter: 0.2, Steps: 1000, Cap: 10 * time.Second}

// Startup is what is needed before etcd starts.
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
		log.Info("Looked at data", "action", action, "data", facts.Data, "reason", reason, "revision", facts.Revision,
			"backupRevision", facts.BackupRevision, "othersHaveData", facts.OthersHaveData)
		if action == Wait {
			if err := s.Registry.AwaitOthers(ctx); err != nil {
				return "", fmt.Errorf("wait for a member with data: %w", err)
			}
			continue
		}
		if err := s.act(ctx, action, facts); !errors.Is(err, errNobodyHasData) {
			return action, err
		}
	}
}

func (s *Startup) facts(ctx context.Context) (Facts, string, error) {
	check, err := datadir.Validate(ctx, s.Config.DataDir)
	if err != nil {
		return Facts{}, "", fmt.Errorf("look at data directory: %w", err)
	}
	facts := Facts{Data: check.State, Revision: check.Revision, Bootstrap: s.Member == s.Config.Cluster.BootstrapMember}
	if check.State != datadir.Valid {
		if err := s.Registry.Forget(ctx); err != nil {
			return Facts{}, "", fmt.Errorf("tell that there is no data: %w", err)
		}
	}
	if facts.OthersHaveData, err = s.Registry.OthersHaveData(ctx); err != nil {
		return Facts{}, "", fmt.Errorf("ask whether others have data: %w", err)
	}
	if s.Store != nil && !facts.OthersHaveData {
		snapshots, err := s.Store.List(ctx)
		switch {
		case err == nil:
			if chains := snapshot.Chains(snapshots); len(chains) > 0 {
				facts.BackupRevision = chains[0].LastRevision()
			}
		case check.State == datadir.Valid:
			// A store that is away is no reason to keep a good etcd from running.
			logr.FromContextOrDiscard(ctx).Error(err, "Cannot compare data with the backup")
		default:
			return Facts{}, "", err
		}
	}
	return facts, check.Reason, nil
}

func (s *Startup) act(ctx context.Context, action Action, facts Facts) error {
	state, initialCluster := existing, s.alone()
	switch action {
	case Restore:
		restore := datadir.Restore{
			Store: s.Store, DataDir: s.Config.DataDir, Revision: facts.Revision, Member: s.Member, PeerURLs: s.PeerURLs(), Token: s.Config.Cluster.Token,
		}
		switch _, err := restore.Run(ctx, logr.FromContextOrDiscard(ctx)); {
		case errors.Is(err, datadir.ErrNoBackup) && facts.Data == datadir.Valid:
			logr.FromContextOrDiscard(ctx).Error(err, "The backup is damaged, and the data that is there is the best there is")
		case err != nil:
			return fmt.Errorf("restore: %w", err)
		}
	case New:
		// There may be damaged data of which there is no backup.
		if err := datadir.SetAside(s.Config.DataDir); err != nil {
			return err
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

// errNobodyHasData says that the members that were to be joined have found that their data is lost, too.
var errNobodyHasData = errors.New("no member has data any more")

func (s *Startup) join(ctx context.Context) (initialCluster string, err error) {
	log := logr.FromContextOrDiscard(ctx)
	cluster, err := s.Dial(s.Config.Cluster.ClientEndpoint)
	if err != nil {
		return "", err
	}
	defer cluster.Close() //nolint:errcheck // nothing is lost
	backoff := joinBackoff
	for {
		attempt, cancel := context.WithTimeout(ctx, s.Config.Etcd.RequestTimeout.Duration)
		initialCluster, err = membership.Join(attempt, cluster, s.Member, s.PeerURLs())
		cancel()
		if err == nil {
			return initialCluster, nil
		}
		log.V(1).Info("Joining the cluster is not possible yet", "reason", err.Error())
		// They start at the same time as this one, and may not have looked before.
		if others, askErr := s.Registry.OthersHaveData(ctx); askErr == nil && !others {
			return "", errNobodyHasData
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

// existing makes an etcd that finds no data ask others instead of forming a cluster of its own.
const existing = "existing"

// alone is the initial-cluster setting of a cluster of this member.
func (s *Startup) alone() string {
	var initial []string
	for _, url := range s.PeerURLs() {
		initial = append(initial, s.Member+"="+url)
	}
	return strings.Join(initial, ",")
}

// Formed is called when etcd runs. From now on it must not form a new cluster, should it be started without its data
// before this package had a look at it.
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
	// etcd must not read half of it.
	if err := os.WriteFile(file+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}
