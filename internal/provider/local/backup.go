package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/extension"
)

const (
	// bucketMode permits etcd to write to a bucket, whatever its user.
	bucketMode = 0o777
	// keyHostPath and keyBucket are the keys of backup Secrets: the directory of buckets on the node, and the name of the bucket.
	keyHostPath = "hostPath"
	keyBucket   = constants.DataKeyBackupBucketName
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
	if err := noConfig(bucket.Spec.ProviderConfig); err != nil {
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

// backupEntries writes the Secrets with which control planes access their part of a bucket, and removes backups.
type backupEntries struct {
	client    client.Client
	directory string
}

// Reconcile writes the Secret for etcd's backups, if the control plane is in this seed.
func (a *backupEntries) Reconcile(ctx context.Context, entry *extensionsv1alpha1.BackupEntry, _ *extension.Cluster) error {
	namespace := &corev1.Namespace{}
	err := a.client.Get(ctx, client.ObjectKey{Name: controlPlaneOf(entry.Name)}, namespace)
	if apierrors.IsNotFound(err) || err == nil && namespace.DeletionTimestamp != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read control plane namespace: %w", err)
	}
	credentials, key := &corev1.Secret{}, client.ObjectKey{Namespace: entry.Spec.SecretRef.Namespace, Name: entry.Spec.SecretRef.Name}
	if err := a.client.Get(ctx, key, credentials); err != nil {
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
	for key, value := range credentials.Data {
		access.Data[key] = value
	}
	return kube.Apply(ctx, a.client, Name, access)
}

// Delete removes all backups of the entry.
func (a *backupEntries) Delete(_ context.Context, entry *extensionsv1alpha1.BackupEntry, _ *extension.Cluster) error {
	bucket, err := inside(a.directory, entry.Spec.BucketName)
	if err != nil {
		return err
	}
	prefix, _ := fromSource(entry.Name)
	objects, err := inside(bucket, prefix)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(objects); err != nil {
		return fmt.Errorf("remove backups: %w", err)
	}
	return nil
}

// Migrate keeps the backups.
func (a *backupEntries) Migrate(context.Context, *extensionsv1alpha1.BackupEntry, *extension.Cluster) error {
	return nil
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

// inside returns the path of a directory in another one. A name that is not a single path element is refused.
func inside(directory, name string) (string, error) {
	if name == "" || name == "." || !filepath.IsLocal(name) || strings.ContainsRune(name, filepath.Separator) {
		return "", errors.New("the name of a bucket or an entry is not a valid directory name")
	}
	return filepath.Join(directory, name), nil
}
