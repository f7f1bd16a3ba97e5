// +k8s:deepcopy-gen=package
// +groupName=backuprestore.config.gardener.cloud

// Package v1alpha1 is the configuration file of etcd-backup-restore. etcd-druid writes it, one for all members of a cluster.
package v1alpha1
