package values

import (
	corev1 "k8s.io/api/core/v1"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/etcd"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/internal/shoot/observed"
	"gardener.cloud/gardener/internal/stage/credentials"
)

// Etcd returns the values of an Etcd with a number of members.
func (s Source) Etcd(role etcd.Role, replicas int32) (etcd.Values, error) {
	set, err := s.Credentials.OfEtcd()
	if err != nil {
		return etcd.Values{}, err
	}
	v := etcd.Values{
		Namespace: s.Namespace, Role: role, Replicas: replicas, Spread: s.Spread(), TrafficDistribution: s.TrafficDistribution(),
		Secrets: etcd.Secrets{
			CA: set.BundleName(constants.SecretNameCAETCD), PeerCA: set.BundleName(constants.SecretNameCAETCDPeer),
			Server: set.Name(credentials.EtcdServer), Client: set.Name(credentials.EtcdClient), PeerServer: set.Name(credentials.EtcdPeerServer),
		},
		MinAllowed: etcdMinimum(s.State, role), DefragmentationSchedule: s.DefragmentationSchedule(string(role)),
	}
	if volume := s.Seed.Spec.Volume; volume != nil {
		for _, provider := range volume.Providers {
			if provider.Purpose == "etcd-"+string(role) {
				v.StorageClass = provider.Name
			}
		}
		v.MinimumStorage = volume.MinimumSize
	}
	if workload.Autoscaled(s.Seed) {
		autoscaling := cautious(s.State)
		v.Autoscaling = &autoscaling
	}
	if backup := s.Seed.Spec.Backup; backup != nil && role == etcd.Main {
		v.Backup = &etcd.Backup{
			Provider: backup.Provider, Container: string(s.Seed.UID), Prefix: s.BackupEntryName(), SecretName: constants.BackupSecretName,
			FullSnapshotSchedule: s.SnapshotSchedule(),
		}
		if c := s.ETCD; c != nil {
			v.Backup.DeltaSnapshotRetentionPeriod = c.DeltaSnapshotRetentionPeriod
			if election := c.BackupLeaderElection; election != nil {
				v.Backup.ReelectionPeriod, v.Backup.ConnectionTimeout = election.ReelectionPeriod, election.ETCDConnectionTimeout
			}
		}
	}
	return v, nil
}

// etcdMinimum returns the minimum of the requests of an etcd, as the Shoot has it, up to the maximum of the seed.
func etcdMinimum(s *observed.State, role etcd.Role) corev1.ResourceList {
	config := s.Shoot.Spec.Kubernetes.ETCD
	if config == nil {
		return nil
	}
	of := config.Main
	if role == etcd.Events {
		of = config.Events
	}
	if of == nil || of.Autoscaling == nil {
		return nil
	}
	return bounded(s, of.Autoscaling).MinAllowed
}
