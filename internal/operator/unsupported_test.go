package operator

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	operatorconfigv1alpha1 "gardener.cloud/gardener/api/config/operator/v1alpha1"
)

// Settings without effect are refused, and those that are accepted by default are not.
func TestUnsupported(t *testing.T) {
	compaction := func(enabled bool) *gardenletconfigv1alpha1.BackupCompactionController {
		return &gardenletconfigv1alpha1.BackupCompactionController{EnableBackupCompaction: &enabled, EventsThreshold: new(int64(1000000))}
	}
	for name, tc := range map[string]struct {
		config *gardenletconfigv1alpha1.ETCDConfig
		want   []string
	}{
		"nothing": {},
		"what has an effect, or is off": {config: &gardenletconfigv1alpha1.ETCDConfig{
			ETCDController: &gardenletconfigv1alpha1.ETCDController{Workers: new(int64(3))}, BackupCompactionController: compaction(false),
			BackupLeaderElection: &gardenletconfigv1alpha1.ETCDBackupLeaderElection{},
		}},
		"compaction and feature gates": {config: &gardenletconfigv1alpha1.ETCDConfig{
			BackupCompactionController: compaction(true), FeatureGates: map[string]bool{"UseEtcdWrapper": true},
		}, want: []string{"controllers.garden.etcdConfig.backupCompactionController.enableBackupCompaction", "controllers.garden.etcdConfig.featureGates"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := &Config{}
			operatorconfigv1alpha1.SetDefaults(c)
			c.Controllers.Garden.ETCDConfig = tc.config
			var got []string
			for _, err := range validate(c) {
				got = append(got, err.Field)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
		})
	}
}
