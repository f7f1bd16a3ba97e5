package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	component "gardener.cloud/gardener/internal/component/etcd"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/pkg/flow"
)

const (
	sourceEntryTask, copyTask = "source-backup-entry", "backups-copied"
	// finalSnapshotTimeout is for how long the copy of backups waits for the final snapshot, and copyTimeout for how long it may take with that. The next run
	// does not copy again what was copied, but begins again with a snapshot that was not copied in time: the largest one has to fit. It is below the end of a
	// run, half an hour.
	finalSnapshotTimeout, copyTimeout = 5 * time.Minute, 20 * time.Minute
)

// Restoration is how the backups of a control plane get to its new seed, and etcd is restored from them.
type Restoration struct {
	// SourceEntry is the BackupEntry of backups in the bucket of the other seed.
	SourceEntry *corev1beta1.BackupEntry
	// Copies is whether the backups are not copied yet.
	Copies bool
	// NoFinalSnapshot is whether the backups end without a final snapshot, as the former seed is lost.
	NoFinalSnapshot bool
	// Provider is the type of the own bucket.
	Provider string
	// GrowAfter are the tasks after which members are added.
	GrowAfter []string
	// Stops is whether the cluster is hibernated, so that etcd runs only to be restored.
	Stops bool
}

// CopiesFrom returns the bucket that backups are copied from when a control plane is restored on a seed, whose bucket is own. It is empty if they are
// copied already, as etcd-main exists, or have never left the bucket, as the shoot is bound to its former seed again. Source is the copy of the BackupEntry for
// the bucket of the other seed, which may be nil. An etcd-main that may be older
// than the backups, as the seed was lost and has come back, is an error.
func CopiesFrom(etcdExists bool, entry, source *corev1beta1.BackupEntry, own string) (string, error) {
	switch {
	case etcdExists && released(entry) && entry.Spec.BucketName != own:
		return "", fmt.Errorf("the seed has an etcd-main already, while the backups are in bucket %q: if the shoot was on another seed since, they are newer, and the "+
			"namespace of the control plane has to be deleted in this seed, with the finalizers of the extension resources in it; if the garden was restored as it was "+
			"before a move to this seed, this etcd-main is the latest, and spec.bucketName of the BackupEntry has to be %q", entry.Spec.BucketName, own)
	case etcdExists:
		return "", nil
	case entry == nil:
		return "", errors.New("there is no BackupEntry to restore etcd from")
	case entry.Spec.BucketName != own:
		return entry.Spec.BucketName, nil
	}
	from := entry.Annotations[constants.BackupEntryCopiedFrom]
	if source != nil {
		from = cmp.Or(from, source.Spec.BucketName)
	}
	if from == own {
		return "", fmt.Errorf("BackupEntry %q is in bucket %q of this seed already, and the one of the former seed is, too: it is not known from where backups have to "+
			"be copied, and without them the data of the cluster would be lost", entry.Name, own)
	}
	return from, nil
}

// released is whether the former seed has released a BackupEntry, and this one has not taken it over yet.
func released(entry *corev1beta1.BackupEntry) bool {
	return entry != nil && entry.Status.LastOperation != nil && entry.Status.LastOperation.Type == corev1beta1.LastOperationTypeMigrate
}

// restorationTasks copy the backups, and let etcd grow that was restored with one member.
func (in Inputs) restorationTasks() []flow.Task {
	r := in.Restoration
	restored := []string{MainTask}
	if in.Ready != nil {
		restored = []string{MainReadyTask}
	}
	var tasks []flow.Task
	if r.Copies {
		tasks = append(tasks,
			flow.Await(stage.ExtensionTimeout, sourceEntryTask, "Waiting until the BackupEntry of the former seed is ready", in.sourceEntry, "namespace", "cluster"),
			flow.Await(copyTimeout+stage.ExtensionTimeout, copyTask, "Copying backups from the former seed", in.copyBackups, sourceEntryTask, "backup-entry"),
			flow.Do("backups-copied-gone", "Deleting the EtcdCopyBackupsTask", func(ctx context.Context) error {
				return client.IgnoreNotFound(in.Run.SeedAPI.Delete(ctx, in.copyBackupsTask()))
			}, copyTask),
		)
	}
	tasks = append(tasks, flow.Do(sourceEntryTask+"-gone", "Deleting the BackupEntry of the former seed", in.deleteSourceEntry, restored...))
	if in.Replicas > 1 {
		tasks = append(tasks,
			flow.Do("etcd-grown", "Adding members to etcd", in.both(in.Replicas), append(restored, r.GrowAfter...)...),
			flow.Await(stage.PodsTimeout, "etcd-grown-ready", "Waiting until the members of etcd are ready", func(ctx context.Context) error {
				return errors.Join(in.await(component.Main)(ctx), in.await(component.Events)(ctx))
			}, "etcd-grown"),
		)
	}
	if r.Stops && in.Replicas > 0 {
		tasks = append(tasks, flow.Do("stop-etcd", "Scaling down etcd", in.both(0), flow.Last(tasks)...))
	}
	return tasks
}

// both returns what a task does that deploys both Etcds with a number of members.
func (in Inputs) both(replicas int32) func(context.Context) error {
	return func(ctx context.Context) error {
		return errors.Join(Deploy(in, component.Main, replicas)(ctx), Deploy(in, component.Events, replicas)(ctx))
	}
}

// deployFirst returns what a task does that deploys an Etcd with the members that it has: one, as several cannot be restored at once. One that was scaled down
// to none, by a hibernation that was interrupted, gets all at once, as one of several has no quorum.
func (in Inputs) deployFirst(role component.Role) func(context.Context) error {
	return func(ctx context.Context) error {
		current, key := &druidv1alpha1.Etcd{}, client.ObjectKey{Namespace: in.Run.Namespace, Name: component.Name(in.Run.Of, role)}
		replicas := int32(1)
		if err := in.Run.SeedAPI.Get(ctx, key, current); err == nil {
			replicas = cmp.Or(current.Spec.Replicas, in.Replicas)
		} else if !apierrors.IsNotFound(err) {
			return fmt.Errorf("read Etcd %q: %w", key.Name, err)
		}
		return Deploy(in, role, replicas)(ctx)
	}
}

func (in Inputs) sourceEntry(ctx context.Context) error {
	source := in.Restoration.SourceEntry
	return in.applyEntry(ctx, source, func(entry *corev1beta1.BackupEntry) { entry.Spec.BucketName = source.Spec.BucketName })
}

// deleteSourceEntry deletes the BackupEntry of the former seed, with the backups there: etcd is restored from the own ones.
func (in Inputs) deleteSourceEntry(ctx context.Context) error {
	restored := &corev1beta1.BackupEntry{}
	if err := in.Run.GardenAPI.Get(ctx, client.ObjectKeyFromObject(in.BackupEntry), restored); err != nil {
		return fmt.Errorf("read BackupEntry %q: %w", in.BackupEntry.Name, err)
	}
	if err := kube.PatchMetadata(ctx, in.Run.GardenCache, restored, func(o *metav1.PartialObjectMetadata) {
		delete(o.Annotations, constants.BackupEntryCopiedFrom)
		delete(o.Annotations, constants.BackupEntryNoFinalSnapshot)
	}); err != nil {
		return fmt.Errorf("patch BackupEntry %q: %w", restored.Name, err)
	}
	entry := &corev1beta1.BackupEntry{}
	err := in.Run.GardenAPI.Get(ctx, client.ObjectKeyFromObject(in.Restoration.SourceEntry), entry)
	if err == nil {
		err = kube.PatchMetadata(ctx, in.Run.GardenCache, entry, func(o *metav1.PartialObjectMetadata) {
			metav1.SetMetaDataAnnotation(&o.ObjectMeta, constants.BackupEntryForceDeletion, "true")
			metav1.SetMetaDataAnnotation(&o.ObjectMeta, constants.ConfirmationDeletion, "true")
		})
	}
	if err == nil {
		err = in.Run.GardenCache.Delete(ctx, entry)
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete BackupEntry %q: %w", in.Restoration.SourceEntry.Name, err)
	}
	return nil
}

func (in Inputs) copyBackupsTask() *druidv1alpha1.EtcdCopyBackupsTask {
	return &druidv1alpha1.EtcdCopyBackupsTask{ObjectMeta: metav1.ObjectMeta{Namespace: in.Run.Namespace, Name: in.Run.Name}}
}

// copyBackups has etcd-druid copy all backups. A task of an earlier run is replaced, as it may have failed.
func (in Inputs) copyBackups(ctx context.Context) error {
	c, task := in.Run.SeedAPI, in.copyBackupsTask()
	if err := c.Delete(ctx, task, client.PropagationPolicy(metav1.DeletePropagationForeground)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete EtcdCopyBackupsTask %q: %w", task.Name, err)
	}
	named := []client.ListOption{client.InNamespace(task.Namespace), client.MatchingFields{metav1.ObjectNameField: task.Name}}
	if err := kube.Await(ctx, c, &druidv1alpha1.EtcdCopyBackupsTaskList{}, func(tasks []*druidv1alpha1.EtcdCopyBackupsTask) error {
		if len(tasks) > 0 {
			return fmt.Errorf("EtcdCopyBackupsTask %q of an earlier run still exists", task.Name)
		}
		return nil
	}, nil, named...); err != nil {
		return err
	}
	source := &extensionsv1alpha1.BackupEntry{}
	if err := c.Get(ctx, client.ObjectKey{Name: in.Restoration.SourceEntry.Name}, source); err != nil {
		return fmt.Errorf("read BackupEntry %q in the seed: %w", in.Restoration.SourceEntry.Name, err)
	}
	from, err := in.store(ctx, source.Spec.Type, constants.BackupSourcePrefix+"-"+constants.BackupSecretName)
	if err != nil {
		return err
	}
	to, err := in.store(ctx, in.Restoration.Provider, constants.BackupSecretName)
	if err != nil {
		return err
	}
	task.Spec = druidv1alpha1.EtcdCopyBackupsTaskSpec{
		SourceStore: *from, TargetStore: *to,
		WaitForFinalSnapshot: &druidv1alpha1.WaitForFinalSnapshotSpec{Enabled: !in.Restoration.NoFinalSnapshot, Timeout: &metav1.Duration{Duration: finalSnapshotTimeout}},
		PodLabels: map[string]string{
			constants.NetworkPolicyToDNS: constants.NetworkPolicyAllowed, constants.NetworkPolicyToPublicNetworks: constants.NetworkPolicyAllowed,
		},
	}
	if err := c.Create(ctx, task); err != nil {
		return fmt.Errorf("create EtcdCopyBackupsTask %q: %w", task.Name, err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, copyTimeout, fmt.Errorf("backups were not copied within %s", copyTimeout))
	defer cancel()
	if err := awaitCopied(ctx, c, named); err != nil {
		return err
	}
	return in.noteAge(ctx, task)
}

// noteAge writes to the BackupEntry how recent the copied backups are. The pod of a foreign etcd-druid does not say it.
func (in Inputs) noteAge(ctx context.Context, task *druidv1alpha1.EtcdCopyBackupsTask) error {
	pods := &corev1.PodList{}
	if err := in.Run.SeedAPI.List(ctx, pods, client.InNamespace(task.Namespace), client.MatchingLabels{druidv1alpha1.LabelPartOfKey: task.Name}); err != nil {
		return fmt.Errorf("list pods of EtcdCopyBackupsTask %q: %w", task.Name, err)
	}
	for i := range pods.Items {
		for _, container := range pods.Items[i].Status.ContainerStatuses {
			ended := container.State.Terminated
			if ended == nil || ended.ExitCode != 0 {
				continue
			}
			if _, err := time.Parse(time.RFC3339, ended.Message); err != nil {
				continue
			}
			return kube.PatchMetadata(ctx, in.Run.GardenCache, in.BackupEntry.DeepCopy(), func(o *metav1.PartialObjectMetadata) {
				metav1.SetMetaDataAnnotation(&o.ObjectMeta, constants.BackupEntryRestoredAsOf, ended.Message)
			})
		}
	}
	return nil
}

// awaitCopied waits until a task is done.
func awaitCopied(ctx context.Context, c client.WithWatch, named []client.ListOption) error {
	var failed error
	err := kube.Await(ctx, c, &druidv1alpha1.EtcdCopyBackupsTaskList{}, func(tasks []*druidv1alpha1.EtcdCopyBackupsTask) error {
		if len(tasks) == 0 {
			return errors.New("EtcdCopyBackupsTask was deleted")
		}
		var err error
		failed, err = copied(tasks[0])
		return err
	}, nil, named...)
	return errors.Join(failed, err)
}

// copied returns why a task is not done yet. One that has failed is done, with an error.
func copied(task *druidv1alpha1.EtcdCopyBackupsTask) (failed, unfinished error) {
	if task.Status.ObservedGeneration == nil || *task.Status.ObservedGeneration != task.Generation {
		return nil, fmt.Errorf("EtcdCopyBackupsTask %q: etcd-druid has not observed it yet", task.Name)
	}
	for _, c := range task.Status.Conditions {
		switch {
		case c.Status != druidv1alpha1.ConditionTrue:
		case c.Type == druidv1alpha1.EtcdCopyBackupsTaskSucceeded:
			return nil, nil
		case c.Type == druidv1alpha1.EtcdCopyBackupsTaskFailed:
			return fmt.Errorf("EtcdCopyBackupsTask %q has failed: %s", task.Name, c.Message), nil
		}
	}
	if last := task.Status.LastError; last != nil {
		return nil, fmt.Errorf("EtcdCopyBackupsTask %q: %s", task.Name, *last)
	}
	return nil, fmt.Errorf("EtcdCopyBackupsTask %q is not done yet", task.Name)
}

// store returns where the backups are that a Secret of an extension is for.
func (in Inputs) store(ctx context.Context, provider, secretName string) (*druidv1alpha1.StoreSpec, error) {
	secret := &corev1.Secret{}
	if err := in.Run.SeedAPI.Get(ctx, client.ObjectKey{Namespace: in.Run.Namespace, Name: secretName}, secret); err != nil {
		return nil, fmt.Errorf("read Secret %q: %w", secretName, err)
	}
	container := string(secret.Data[constants.DataKeyBackupBucketName])
	if container == "" {
		return nil, fmt.Errorf("Secret %q has no key %s", secretName, constants.DataKeyBackupBucketName)
	}
	return &druidv1alpha1.StoreSpec{
		Provider: new(druidv1alpha1.StorageProvider(provider)), Container: &container, Prefix: in.BackupEntry.Name + "/" + component.Name(in.Run.Of, component.Main),
		SecretRef: &corev1.SecretReference{Namespace: in.Run.Namespace, Name: secretName},
	}, nil
}
