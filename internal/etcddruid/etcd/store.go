package etcd

import (
	"fmt"
	"maps"
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	backuprestoreconfigv1alpha1 "gardener.cloud/gardener/api/config/backuprestore/v1alpha1"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
)

// providers maps providers of object stores to those of etcd-backup-restore. Some have several names.
var providers = map[druidv1alpha1.StorageProvider]string{
	"aws": "S3", "S3": "S3", "stackit": "S3", "azure": "ABS", "ABS": "ABS", "gcp": "GCS", "GCS": "GCS", "openstack": swift, "Swift": swift,
	"alicloud": "OSS", "OSS": "OSS", "dell": "ECS", "ECS": "ECS", "openshift": "OCS", "OCS": "OCS", "local": local, "Local": local,
}

const (
	// local is the provider that keeps backups on the node.
	local = "Local"
	// swift is that of OpenStack.
	swift = "Swift"
)

// IsLocal reports whether a store is a directory on the node.
func IsLocal(store *druidv1alpha1.StoreSpec) bool {
	return providers[ptr.Deref(store.Provider, "")] == local
}

// StoreAccess returns the configuration of a store for etcd-backup-restore, and the volume that its pod needs: the directory for Local, credentials
// otherwise. The suffix distinguishes two stores in one pod.
func StoreAccess(volumeName, suffix string, store *druidv1alpha1.StoreSpec, hostPath string) (*backuprestoreconfigv1alpha1.Store, *corev1.Volume, *corev1.VolumeMount, error) {
	provider, ok := providers[ptr.Deref(store.Provider, "")]
	if !ok {
		return nil, nil, nil, &unsupportedError{fmt.Sprintf("store provider %q is not supported; supported are %v", ptr.Deref(store.Provider, ""), slices.Sorted(maps.Keys(providers)))}
	}
	access := &backuprestoreconfigv1alpha1.Store{
		Provider: provider, Container: ptr.Deref(store.Container, ""), Prefix: store.Prefix, Endpoint: ptr.Deref(store.EndpointOverride, ""),
	}
	switch {
	case provider == local:
		access.Container = storeMount + suffix
		return access, &corev1.Volume{Name: volumeName, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{
			Path: path.Join(hostPath, ptr.Deref(store.Container, "")), Type: new(corev1.HostPathDirectoryOrCreate),
		}}}, &corev1.VolumeMount{Name: volumeName, MountPath: access.Container}, nil
	case provider == swift && access.Endpoint != "":
		return nil, nil, nil, &unsupportedError{fmt.Sprintf("the store of provider %q has its endpoint from Keystone; endpointOverride is not supported", *store.Provider)}
	case store.SecretRef == nil:
		return nil, nil, nil, &unsupportedError{fmt.Sprintf("the store of provider %q needs a secretRef", ptr.Deref(store.Provider, ""))}
	default:
		access.CredentialsDir = storeSecrets + suffix
		return access, &corev1.Volume{Name: volumeName, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: store.SecretRef.Name}}},
			&corev1.VolumeMount{Name: volumeName, MountPath: access.CredentialsDir, ReadOnly: true}, nil
	}
}
