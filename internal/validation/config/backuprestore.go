package config

import (
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	backuprestoreconfigv1alpha1 "gardener.cloud/gardener/api/config/backuprestore/v1alpha1"
)

// ValidateBackupRestore checks the configuration of etcd-backup-restore.
func ValidateBackupRestore(c *backuprestoreconfigv1alpha1.BackupRestoreConfiguration) field.ErrorList {
	var errs field.ErrorList
	required := func(value string, path *field.Path) {
		if value == "" {
			errs = append(errs, field.Required(path, "must be set"))
		}
	}
	address := func(value string, path *field.Path) {
		required(value, path)
		u, err := url.Parse(strings.ReplaceAll(value, backuprestoreconfigv1alpha1.MemberPlaceholder, "member"))
		if value != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https") {
			errs = append(errs, field.Invalid(path, value, "must be a URL with http or https"))
		}
	}
	schedule := func(value string, path *field.Path) {
		switch s, err := cron.ParseStandard(value); {
		case err != nil:
			errs = append(errs, field.Invalid(path, value, err.Error()))
		case s.Next(time.Unix(0, 0)).IsZero():
			errs = append(errs, field.Invalid(path, value, "must come to a time some day"))
		}
	}
	positive := func(value *metav1.Duration, path *field.Path) {
		if value != nil && value.Duration <= 0 {
			errs = append(errs, field.Invalid(path, value.Duration.String(), "must be above zero"))
		}
	}
	if !filepath.IsAbs(c.DataDir) || filepath.Clean(c.DataDir) == "/" {
		errs = append(errs, field.Invalid(field.NewPath("dataDir"), c.DataDir, "must be an absolute path below the root"))
	}
	path := field.NewPath("etcd")
	required(c.Etcd.ConfigFile, path.Child("configFile"))
	positive(c.Etcd.RequestTimeout, path.Child("requestTimeout"))
	path = field.NewPath("cluster")
	required(c.Cluster.Token, path.Child("token"))
	required(c.Cluster.BootstrapMember, path.Child("bootstrapMember"))
	address(c.Cluster.ClientEndpoint, path.Child("clientEndpoint"))
	address(c.Cluster.PeerURL, path.Child("peerURL"))
	address(c.Cluster.ClientURL, path.Child("clientURL"))
	address(c.Cluster.BackupURL, path.Child("backupURL"))
	errs = append(errs, port(int(c.Server.Port), field.NewPath("server"))...)
	if store := c.Store; store != nil {
		path = field.NewPath("store")
		errs = append(errs, supported(store.Provider, path.Child("provider"), backuprestoreconfigv1alpha1.StoreProviders...)...)
		required(store.Container, path.Child("container"))
		required(store.Prefix, path.Child("prefix"))
	}
	path = field.NewPath("snapshots")
	schedule(c.Snapshots.FullSchedule, path.Child("fullSchedule"))
	positive(c.Snapshots.FullTimeout, path.Child("fullTimeout"))
	errs = append(errs, supported(c.Snapshots.Compression, path.Child("compression"), "", "gzip", "lzw", "zlib", "zstd")...)
	if c.Snapshots.DeltaMemoryLimit < 0 {
		errs = append(errs, field.Invalid(path.Child("deltaMemoryLimit"), c.Snapshots.DeltaMemoryLimit, "must be above zero"))
	}
	path = field.NewPath("garbageCollection")
	positive(c.GarbageCollection.Period, path.Child("period"))
	errs = append(errs, supported(c.GarbageCollection.Policy, path.Child("policy"), "Exponential", "LimitBased")...)
	if c.GarbageCollection.MaxFull < 0 {
		errs = append(errs, field.Invalid(path.Child("maxFull"), c.GarbageCollection.MaxFull, "must be above zero"))
	}
	if defragmentation := c.Defragmentation; defragmentation != nil {
		path = field.NewPath("defragmentation")
		schedule(defragmentation.Schedule, path.Child("schedule"))
		positive(defragmentation.Timeout, path.Child("timeout"))
	}
	path = field.NewPath("leaderElection")
	positive(c.LeaderElection.Period, path.Child("period"))
	positive(c.LeaderElection.Timeout, path.Child("timeout"))
	if leases := c.Leases; leases != nil {
		path = field.NewPath("leases")
		required(leases.Namespace, path.Child("namespace"))
		positive(leases.HeartbeatPeriod, path.Child("heartbeatPeriod"))
		if len(leases.MemberSelector) == 0 {
			errs = append(errs, field.Required(path.Child("memberSelector"), "without it, any Lease would count as a member"))
		}
	}
	return errs
}
