package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func addDefaultingFuncs(scheme *runtime.Scheme) error {
	scheme.AddTypeDefaultingFunc(&BackupRestoreConfiguration{}, func(obj any) {
		SetDefaults_BackupRestoreConfiguration(obj.(*BackupRestoreConfiguration)) //nolint:forcetypeassert // registered for this type
	})
	return nil
}

// SetDefaults_BackupRestoreConfiguration sets what is left out.
func SetDefaults_BackupRestoreConfiguration(c *BackupRestoreConfiguration) {
	duration := func(d **metav1.Duration, value time.Duration) {
		if *d == nil {
			*d = &metav1.Duration{Duration: value}
		}
	}
	text := func(s *string, value string) {
		if *s == "" {
			*s = value
		}
	}
	duration(&c.Etcd.RequestTimeout, 10*time.Second)
	if c.Server.Port == 0 {
		c.Server.Port = 8080
	}
	text(&c.Snapshots.FullSchedule, "0 0 * * *")
	duration(&c.Snapshots.FullTimeout, 15*time.Minute)
	duration(&c.Snapshots.DeltaPeriod, 20*time.Second)
	if c.Snapshots.DeltaMemoryLimit == 0 {
		c.Snapshots.DeltaMemoryLimit = 10 << 20
	}
	duration(&c.GarbageCollection.Period, 12*time.Hour)
	text(&c.GarbageCollection.Policy, "Exponential")
	if c.GarbageCollection.MaxFull == 0 {
		c.GarbageCollection.MaxFull = 7
	}
	duration(&c.GarbageCollection.DeltaRetention, 0)
	if c.Defragmentation != nil {
		duration(&c.Defragmentation.Timeout, 15*time.Minute)
	}
	duration(&c.LeaderElection.Period, 5*time.Second)
	duration(&c.LeaderElection.Timeout, 5*time.Second)
	if c.Leases != nil {
		duration(&c.Leases.HeartbeatPeriod, 10*time.Second)
	}
}
