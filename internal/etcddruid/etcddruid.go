// Package etcddruid is etcd-druid, which runs the etcd clusters of Etcd resources, and copies backups.
package etcddruid

import (
	"context"
	"errors"

	batchv1 "k8s.io/api/batch/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	etcddruidconfigv1alpha1 "gardener.cloud/gardener/api/config/etcddruid/v1alpha1"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	"gardener.cloud/gardener/internal/configfile"
	"gardener.cloud/gardener/internal/etcddruid/copybackupstask"
	"gardener.cloud/gardener/internal/etcddruid/etcd"
	"gardener.cloud/gardener/internal/process"
	configvalidation "gardener.cloud/gardener/internal/validation/config"
)

// Name is the name of the command.
const Name = "etcd-druid"

// Component describes etcd-druid.
func Component() process.Component[etcddruidconfigv1alpha1.EtcdDruidConfiguration] {
	return process.Component[etcddruidconfigv1alpha1.EtcdDruidConfiguration]{
		Name:  Name,
		Short: "Run the etcd clusters of Etcd resources",
		Config: configfile.Kind[etcddruidconfigv1alpha1.EtcdDruidConfiguration]{
			AddToScheme: etcddruidconfigv1alpha1.AddToScheme, Validate: configvalidation.ValidateEtcdDruid,
		},
		Settings: func(c *etcddruidconfigv1alpha1.EtcdDruidConfiguration) process.Settings {
			return process.Settings{
				Client: *c.ClientConnection, LeaderElection: c.LeaderElection, LogLevel: c.LogLevel, LogFormat: c.LogFormat,
				Health: (*process.Server)(c.Server.HealthProbes), Metrics: (*process.Server)(c.Server.Metrics), Debugging: c.Debugging,
			}
		},
		Kinds: []process.AddToScheme{druidv1alpha1.AddToScheme},
		Options: func(_ *etcddruidconfigv1alpha1.EtcdDruidConfiguration, o *manager.Options) {
			o.Cache.ByObject = etcd.CacheByObject()
			o.Cache.ByObject[&batchv1.Job{}] = cache.ByObject{
				Label: k8slabels.SelectorFromSet(k8slabels.Set{druidv1alpha1.LabelManagedByKey: druidv1alpha1.LabelManagedByValue}),
			}
		},
		Wire: func(_ context.Context, p *process.Process, c *etcddruidconfigv1alpha1.EtcdDruidConfiguration) error {
			return errors.Join(
				etcd.Add(p.Manager, etcd.Values{Config: c.Controllers.Etcd, Images: c.Images, Clock: clock.RealClock{}}),
				copybackupstask.Add(p.Manager, copybackupstask.Values{
					Config: c.Controllers.EtcdCopyBackupsTask, Image: c.Images.BackupRestore, Clock: clock.RealClock{},
				}),
			)
		},
	}
}
