package generic

import (
	"context"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/pkg/extension"
	"gardener.cloud/gardener/pkg/kube"
)

// source begins the name of an entry for the backups of the former seed while a control plane is restored.
const source = constants.BackupSourcePrefix + "-"

// BackupEntry is an extension.Actuator of BackupEntries: it writes the Secret etcd-backup, with which the etcd of a control plane accesses its backups, or
// source-etcd-backup for those of its former seed.
type BackupEntry struct {
	// Client is that of the seed. It reads Namespaces and the Secret with the credentials of the bucket, and writes Secrets.
	Client client.Client
	// Owner is the field manager, which is the name of the extension.
	Owner string
	// Secret changes the data of the Secret, which are the credentials and the name of the bucket. Nil means that nothing else is needed.
	Secret func(ctx context.Context, entry *extensionsv1alpha1.BackupEntry, data map[string][]byte) error
	// DeleteBackups deletes all objects in the entry's bucket whose names begin with a prefix, which is the name of the shoot's entry.
	DeleteBackups func(ctx context.Context, entry *extensionsv1alpha1.BackupEntry, prefix string) error
}

// Reconcile writes the Secret, if the control plane is in this seed.
func (a *BackupEntry) Reconcile(ctx context.Context, entry *extensionsv1alpha1.BackupEntry, _ *extension.Cluster) error {
	namespace := &corev1.Namespace{}
	err := a.Client.Get(ctx, client.ObjectKey{Name: controlPlaneOf(entry.Name)}, namespace)
	if apierrors.IsNotFound(err) || err == nil && namespace.DeletionTimestamp != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read control plane namespace: %w", err)
	}
	credentials, key := &corev1.Secret{}, client.ObjectKey{Namespace: entry.Spec.SecretRef.Namespace, Name: entry.Spec.SecretRef.Name}
	if err := a.Client.Get(ctx, key, credentials); err != nil {
		return fmt.Errorf("read Secret %q: %w", key, err)
	}
	access := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: secretOf(entry.Name)}, Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{constants.DataKeyBackupBucketName: []byte(entry.Spec.BucketName)},
	}
	maps.Copy(access.Data, credentials.Data)
	if a.Secret != nil {
		if err := a.Secret(ctx, entry, access.Data); err != nil {
			return err
		}
	}
	return kube.Apply(ctx, a.Client, a.Owner, access)
}

// Delete deletes all backups of the entry.
func (a *BackupEntry) Delete(ctx context.Context, entry *extensionsv1alpha1.BackupEntry, _ *extension.Cluster) error {
	return a.DeleteBackups(ctx, entry, strings.TrimPrefix(entry.Name, source))
}

// Migrate keeps the backups.
func (a *BackupEntry) Migrate(context.Context, *extensionsv1alpha1.BackupEntry, *extension.Cluster) error {
	return nil
}

// controlPlaneOf returns the namespace of the control plane of an entry. The name of the entry ends in the UID of the shoot.
func controlPlaneOf(entry string) string {
	entry = strings.TrimPrefix(entry, source)
	if end := strings.LastIndex(entry, "--"); end > 0 {
		return entry[:end]
	}
	return entry
}

// secretOf returns the name of the Secret of an entry in the namespace of the control plane.
func secretOf(entry string) string {
	if strings.HasPrefix(entry, source) {
		return source + constants.BackupSecretName
	}
	return constants.BackupSecretName
}
