// Package backuprestore is etcd-backup-restore, which runs beside each member of an etcd cluster. Before etcd starts, it ensures that there
// is valid data or a cluster to join ("initialize"). While etcd runs, it takes snapshots, deletes old ones, defragments, and reports
// ("server"). It also copies backups ("copy").
//
// It reads and writes the data directory of its member, the store with the snapshots, etcd itself, and the Leases that
// etcd-druid creates for it.
package backuprestore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	backuprestoreconfigv1alpha1 "gardener.cloud/gardener/api/config/backuprestore/v1alpha1"
	"gardener.cloud/gardener/internal/backuprestore/snapstore"
	"gardener.cloud/gardener/internal/configfile"
	"gardener.cloud/gardener/internal/process"
	configvalidation "gardener.cloud/gardener/internal/validation/config"
)

// Name is the name of the command.
const Name = "etcd-backup-restore"

// Config is how the configuration file is read.
var Config = configfile.Kind[backuprestoreconfigv1alpha1.BackupRestoreConfiguration]{
	AddToScheme: backuprestoreconfigv1alpha1.AddToScheme,
	Validate:    configvalidation.ValidateBackupRestore,
}

// NewCommand returns the command with its subcommands.
func NewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     Name,
		Short:   "Back up an etcd, and restore it",
		Version: process.Version(),
	}
	cmd.AddCommand(
		memberCommand("initialize", "Ensure that etcd finds valid data, then end", Initialize),
		memberCommand("server", "Back up and maintain a running etcd", Serve),
		copyCommand(),
	)
	return cmd
}

func memberCommand(name, short string, run func(context.Context, *backuprestoreconfigv1alpha1.BackupRestoreConfiguration, string) error) *cobra.Command {
	var file, member string
	cmd := &cobra.Command{
		Use:          name,
		Short:        short,
		Example:      fmt.Sprintf("  %s %s --config=config.yaml --member=etcd-main-0", Name, name),
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := Config.Read(file)
			if err != nil {
				return err
			}
			log := process.NewLogger(cmd.ErrOrStderr(), "info", "json").WithValues("member", member)
			return run(logr.NewContext(cmd.Context(), log), config, member)
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "path of the configuration file")
	cmd.Flags().StringVar(&member, "member", "", "name of the member")
	return cmd
}

// Initialize returns when etcd may start.
func Initialize(ctx context.Context, config *backuprestoreconfigv1alpha1.BackupRestoreConfiguration, member string) error {
	e, err := newEnvironment(ctx, config, member)
	if err != nil {
		return err
	}
	defer e.close()
	_, err = e.startup().Run(ctx)
	return err
}

func copyCommand() *cobra.Command {
	var (
		source, target backuprestoreconfigv1alpha1.Store
		options        snapstore.CopyOptions
		maxAge         int
		resultFile     string
	)
	cmd := &cobra.Command{
		Use:   "copy",
		Short: "Copy backups to another store",
		Example: "  " + Name + " copy --source-provider=Local --source-container=/backups/old --source-prefix=etcd-main \\\n" +
			"    --provider=Local --container=/backups/new --prefix=etcd-main",
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			options.MaxAge = time.Duration(maxAge) * 24 * time.Hour
			ctx := logr.NewContext(cmd.Context(), process.NewLogger(cmd.ErrOrStderr(), "info", "json"))
			from, err := snapstore.Open(ctx, &source)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, from.Close()) }()
			to, err := snapstore.Open(ctx, &target)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, to.Close()) }()
			latest, err := snapstore.Copy(ctx, from, to, options, clock.RealClock{})
			if err != nil || resultFile == "" {
				return err
			}
			if err := os.WriteFile(resultFile, []byte(latest.CreatedOn.Format(time.RFC3339)), 0o644); err != nil { //nolint:gosec // it is no secret
				return fmt.Errorf("write result: %w", err)
			}
			return nil
		},
	}
	flags := cmd.Flags()
	for prefix, store := range map[string]*backuprestoreconfigv1alpha1.Store{"source-": &source, "": &target} {
		flags.StringVar(&store.Provider, prefix+"provider", "", "kind of object store: "+strings.Join(backuprestoreconfigv1alpha1.StoreProviders, ", "))
		flags.StringVar(&store.Container, prefix+"container", "", "name of the bucket; for Local, the path of a directory")
		flags.StringVar(&store.Prefix, prefix+"prefix", "", "path in the bucket")
		flags.StringVar(&store.CredentialsDir, prefix+"credentials-dir", "", "directory with the credentials")
		flags.StringVar(&store.Endpoint, prefix+"endpoint", "", "URL of the object store, if it is not the default one")
	}
	flags.IntVar(&maxAge, "max-backup-age", 0, "age in days up to which full snapshots are copied; 0 copies all")
	flags.IntVar(&options.MaxFull, "max-backups", 0, "number of full snapshots to copy, the latest first; 0 copies all")
	flags.BoolVar(&options.WaitForFinal, "wait-for-final-snapshot", false, "wait until the source has a final snapshot")
	flags.DurationVar(&options.WaitTimeout, "wait-for-final-snapshot-timeout", 0, "how long to wait for the final snapshot before copying the existing ones; 0 waits without limit")
	flags.StringVar(&resultFile, "result-file", "", "file to write the time to (RFC 3339) of the snapshot that a restore from the copies ends with")
	return cmd
}
