package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/extension"
	"gardener.cloud/gardener/pkg/extension/generic"
)

const (
	// bucketMode permits etcd to write to a bucket, whatever its user.
	bucketMode = 0o777
	// keyHostPath is the key of backup Secrets for the directory of buckets on the node.
	keyHostPath = "hostPath"
)

// backupBuckets creates a directory on the node for each bucket, for the provider Local of etcd-backup-restore.
type backupBuckets struct {
	client client.Client
	// directory is the directory of buckets in this container, hostPath the one on the node.
	directory, hostPath string
	// namespace is the namespace of the generated Secrets.
	namespace string
}

// Reconcile creates a directory, and a Secret with its path.
func (a *backupBuckets) Reconcile(ctx context.Context, bucket *extensionsv1alpha1.BackupBucket, _ *extension.Cluster) error {
	if err := noConfig(providerConfig, bucket.Spec.ProviderConfig); err != nil {
		return err
	}
	directory, err := inside(a.directory, bucket.Name)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(directory, bucketMode); err != nil {
		return fmt.Errorf("create bucket: %w", err)
	}
	if err := os.Chmod(directory, bucketMode); err != nil { // independent of the umask
		return fmt.Errorf("create bucket: %w", err)
	}
	secret := a.secret(bucket)
	secret.Data = map[string][]byte{keyHostPath: []byte(a.hostPath)}
	if err := kube.Apply(ctx, a.client, Name, secret); err != nil {
		return err
	}
	bucket.Status.GeneratedSecretRef = &corev1.SecretReference{Namespace: secret.Namespace, Name: secret.Name}
	return nil
}

// Delete removes the directory with its backups, and the Secret.
func (a *backupBuckets) Delete(ctx context.Context, bucket *extensionsv1alpha1.BackupBucket, _ *extension.Cluster) error {
	directory, err := inside(a.directory, bucket.Name)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(directory); err != nil {
		return fmt.Errorf("remove bucket: %w", err)
	}
	if err := a.client.Delete(ctx, a.secret(bucket)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete generated Secret: %w", err)
	}
	return nil
}

func (a *backupBuckets) secret(bucket *extensionsv1alpha1.BackupBucket) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: constants.SecretPrefixGeneratedBackupBucket + bucket.Name},
		Type:       corev1.SecretTypeOpaque,
	}
}

// deleteBackups returns what removes all backups of an entry.
func deleteBackups(directory string) func(context.Context, *extensionsv1alpha1.BackupEntry) error {
	return func(_ context.Context, entry *extensionsv1alpha1.BackupEntry) error {
		bucket, err := inside(directory, entry.Spec.BucketName)
		if err != nil {
			return err
		}
		objects, err := inside(bucket, generic.BackupPrefix(entry))
		if err != nil {
			return err
		}
		if err := os.RemoveAll(objects); err != nil {
			return fmt.Errorf("remove backups: %w", err)
		}
		return nil
	}
}

// inside returns the path of a directory in another one. A name that is not a single path element is refused.
func inside(directory, name string) (string, error) {
	if name == "" || name == "." || !filepath.IsLocal(name) || strings.ContainsRune(name, filepath.Separator) {
		return "", errors.New("the name of a bucket or an entry is not a valid directory name")
	}
	return filepath.Join(directory, name), nil
}
