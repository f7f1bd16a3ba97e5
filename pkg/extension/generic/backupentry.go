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

// keyBucket is the key of the name of the bucket in the Secret for etcd-backup-restore.
const keyBucket = "bucketName"

// BackupEntry is an extension.Actuator of BackupEntries: it writes the Secret etcd-backup (source-etcd-backup for the bucket of the former
// seed), with which the etcd of a control plane accesses its backups.
type BackupEntry struct {
	// Client is that of the seed. It reads Namespaces and the Secret with the credentials of the bucket, and writes Secrets.
	Client client.Client
	// Owner is the field manager, which is the name of the extension.
	Owner string
	// Secret changes the data of the Secret, which are the credentials and the name of the bucket. Nil means that nothing else is needed.
	Secret func(ctx context.Context, entry *extensionsv1alpha1.BackupEntry, data map[string][]byte) error
	// DeleteBackups deletes all objects of the entry in the bucket, whose names begin with BackupPrefix.
	DeleteBackups func(ctx context.Context, entry *extensionsv1alpha1.BackupEntry) error
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
	name := constants.BackupSecretName
	if _, ofSource := fromSource(entry.Name); ofSource {
		name = constants.BackupSourcePrefix + "-" + name // beside the one for the bucket of this seed
	}
	access := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: name}, Type: corev1.SecretTypeOpaque,
		Data: map[string][]byte{keyBucket: []byte(entry.Spec.BucketName)},
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
	return a.DeleteBackups(ctx, entry)
}

// Migrate keeps the backups.
func (a *BackupEntry) Migrate(context.Context, *extensionsv1alpha1.BackupEntry, *extension.Cluster) error {
	return nil
}

// BackupPrefix is what the names of all objects of an entry in its bucket begin with.
func BackupPrefix(entry *extensionsv1alpha1.BackupEntry) string {
	prefix, _ := fromSource(entry.Name)
	return prefix
}

// fromSource returns the prefix of the backups of an entry, and whether it is the entry of the former seed of a control plane that has moved here. Its
// backups have the same prefix there.
func fromSource(entry string) (prefix string, ofSource bool) {
	return strings.CutPrefix(entry, constants.BackupSourcePrefix+"-")
}

// controlPlaneOf returns the namespace of the control plane of an entry. The name of the entry ends in the UID of the shoot.
func controlPlaneOf(entry string) string {
	entry, _ = fromSource(entry)
	if end := strings.LastIndex(entry, "--"); end > 0 {
		return entry[:end]
	}
	return entry
}
