package operator

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	configvalidation "gardener.cloud/gardener/internal/validation/config"
)

// validate validates the configuration, and refuses settings that nothing would act on, so that an operator does not rely on them.
func validate(c *Config) field.ErrorList {
	errs := configvalidation.ValidateOperator(c)
	etcd, path := c.Controllers.Garden.ETCDConfig, field.NewPath("controllers", "garden", "etcdConfig")
	if etcd == nil {
		return errs
	}
	if compaction := etcd.BackupCompactionController; compaction != nil && ptr.Deref(compaction.EnableBackupCompaction, false) {
		errs = append(errs, field.Forbidden(path.Child("backupCompactionController", "enableBackupCompaction"), "is not supported"))
	}
	if len(etcd.FeatureGates) > 0 {
		errs = append(errs, field.Forbidden(path.Child("featureGates"), "etcd-druid has no feature gates"))
	}
	return errs
}
