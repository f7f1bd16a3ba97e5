package apiserver

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	"gardener.cloud/gardener/internal/component/encryption"
	"gardener.cloud/gardener/internal/component/etcd"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/stage"
	etcdstage "gardener.cloud/gardener/internal/stage/etcd"
	"gardener.cloud/gardener/pkg/flow"
)

const (
	// knownEncryptionKey is the annotation of the Deployment that says what all its pods can read: the mark of an encryption.
	knownEncryptionKey = "credentials.gardener.cloud/known-encryption-key"
	// snapshotTimeout is for how long a requested snapshot may take.
	snapshotTimeout = time.Minute
)

// Encryption is how the encryption of data at rest changes in a run.
type Encryption struct {
	// Desired is the one of the end of the run.
	Desired func() (encryption.Values, error)
	// Former writes as before the run, and reads what is written after it. It is set if the run encrypts data that pods of before cannot
	// read: all pods can read it before one of them writes it.
	Former func() (encryption.Values, error)
	// Mark names the desired encryption. The same resources may be added, removed and added again: each time is another one.
	Mark func() (string, error)
	// Rewrite is whether stored data is rewritten, as its encryption changes.
	Rewrite bool
	// Backup is whether a backup is waited for that has all data encrypted with the new key, and BackupSince when all data was. The
	// backup is requested, but not waited for, if that is nil.
	Backup      bool
	BackupSince *metav1.Time
}

// EncryptionTasks returns the tasks that have the kube-apiserver rewrite what it encrypts, while the rotation of its key is prepared, or
// when the owner has changed what is encrypted. Afterwards no stored data needs the old key, or the key of what is no longer encrypted.
// The old key is removed when no restore of etcd could need it. Hibernated clusters have none of them.
func EncryptionTasks(in Inputs) []flow.Task {
	var tasks []flow.Task
	e := in.Encryption
	if e.Backup {
		tasks = append(tasks, flow.Await(stage.ExtensionTimeout, "encryption-key-backup", "Waiting until etcd has a backup without the old encryption key",
			in.backUp, "etcd-main-ready"))
	}
	if !e.Rewrite {
		return tasks
	}
	rewrite := flow.Await(stage.PodsTimeout, "reencrypt", "Rewriting data at rest with the new encryption", in.rewrite, "tokens", "old-kube-apiserver-gone")
	if e.Former == nil { // data in plain text is readable anyway
		return append(tasks, rewrite)
	}
	rewrite.After = append(rewrite.After, "encryption-key-used")
	return append(tasks,
		flow.Do("encryption-key", "Deploying kube-apiserver with the new encryption", in.useEncryption, "old-kube-apiserver-gone"),
		flow.Await(stage.PodsTimeout, "encryption-key-used", "Waiting until kube-apiserver with the new encryption is ready", func(ctx context.Context) error {
			if err := in.ready(ctx); err != nil {
				return err
			}
			return in.oldPodsGone(ctx)
		}, "encryption-key"),
		rewrite,
	)
}

// backUp waits until a snapshot has all data as it was encrypted with the new key. One is taken every few minutes, and at once if etcd
// answers the request for one.
func (in Inputs) backUp(ctx context.Context) error {
	requesting, cancel := context.WithTimeout(ctx, snapshotTimeout)
	defer cancel()
	if err := etcdstage.Snapshot(requesting, in.Run, in.Credentials, "delta"); err != nil {
		logf.FromContext(ctx).Info("Waiting for the next scheduled snapshot, as requesting one failed", "reason", err.Error())
	}
	return in.awaitBackup(ctx)
}

// awaitBackup waits until a snapshot is newer than the end of the run in which all data was encrypted with the new key.
func (in Inputs) awaitBackup(ctx context.Context) error {
	if in.Encryption.BackupSince == nil {
		return nil
	}
	return kube.Await(ctx, in.Run.SeedAPI, &coordinationv1.LeaseList{}, func(leases []*coordinationv1.Lease) error {
		for _, lease := range leases {
			if at := lease.Spec.RenewTime; at != nil && at.After(in.Encryption.BackupSince.Time) {
				return nil
			}
		}
		return fmt.Errorf("Etcd %q: no snapshot was taken since all data was encrypted with the new key", etcd.Name(in.Run.Of, etcd.Main))
	}, nil, client.InNamespace(in.Run.Namespace), client.MatchingLabels{
		druidv1alpha1.LabelPartOfKey: etcd.Name(in.Run.Of, etcd.Main), druidv1alpha1.LabelComponentKey: druidv1alpha1.ComponentSnapshotLease,
	})
}

// encryptionReadable reports whether all pods of the kube-apiserver can read what is encrypted after this run.
func (in Inputs) encryptionReadable(ctx context.Context) (bool, error) {
	deployment := &appsv1.Deployment{}
	err := in.Run.SeedAPI.Get(ctx, client.ObjectKey{Namespace: in.Run.Namespace, Name: in.Run.Of.Name(kubeapiserver.Name)}, deployment)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read Deployment %q: %w", in.Run.Of.Name(kubeapiserver.Name), err)
	}
	mark, err := in.Encryption.Mark()
	return deployment.Annotations[knownEncryptionKey] == mark, err
}

// useEncryption records that all pods of the kube-apiserver can read the desired encryption, and has them write it.
func (in Inputs) useEncryption(ctx context.Context) error {
	mark, err := in.Encryption.Mark()
	if err != nil {
		return err
	}
	deployment := &appsv1.Deployment{}
	if err := in.Run.SeedAPI.Get(ctx, client.ObjectKey{Namespace: in.Run.Namespace, Name: in.Run.Of.Name(kubeapiserver.Name)}, deployment); err != nil {
		return fmt.Errorf("read Deployment %q: %w", in.Run.Of.Name(kubeapiserver.Name), err)
	}
	if err := kube.PatchMetadata(ctx, in.Run.SeedAPI, deployment, func(o *metav1.PartialObjectMetadata) {
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, knownEncryptionKey, mark)
	}); err != nil {
		return err
	}
	return Deploy(in, in.Replicas)(ctx)
}

// rewrite has the kube-apiserver write all objects again whose encryption has changed.
func (in Inputs) rewrite(ctx context.Context) error {
	shootClient, err := in.Run.Target.Client(ctx)
	if err != nil {
		return err
	}
	desired, err := in.Encryption.Desired()
	if err != nil {
		return err
	}
	for _, resource := range slices.Concat(desired.Resources, desired.PlainResources) {
		err := encryption.Rewrite(ctx, shootClient, schema.ParseGroupResource(resource))
		if err != nil && !meta.IsNoMatchError(err) { // a custom resource that does not exist has no objects
			return fmt.Errorf("in the cluster: %w", err)
		}
	}
	return nil
}
