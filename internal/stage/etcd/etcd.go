// Package etcd is the stage that keeps the state of a cluster: the Etcds main and events, and the place of their backups.
package etcd

import (
	"context"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	component "gardener.cloud/gardener/internal/component/etcd"
	"gardener.cloud/gardener/internal/component/extensionobject"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/pkg/flow"
)

// IDs of tasks that tasks of other stages come after. Those that wait exist only if Inputs.Ready is set.
const (
	MainTask, EventsTask           = "etcd-main", "etcd-events"
	MainReadyTask, EventsReadyTask = "etcd-main-ready", "etcd-events-ready"
)

// Inputs are what the tasks read.
type Inputs struct {
	Run *stage.Run
	// Values returns those of an Etcd, when the task credentials-etcd is done.
	Values func(role component.Role, replicas int32) (component.Values, error)
	// Replicas is the number of members of each: 0 in a hibernated cluster.
	Replicas int32
	// Ready is what is waited for: Healthy or Serves. Nil means that nothing is.
	Ready func(*druidv1alpha1.Etcd) error
	// BackupEntry is the desired one. Nil means that there are no backups.
	BackupEntry *corev1beta1.BackupEntry
	// Restoration is how etcd is restored on another seed. Nil means that it is not.
	Restoration *Restoration
}

// Tasks returns the tasks of the stage.
func Tasks(in Inputs) []flow.Task {
	tasks := []flow.Task{
		flow.Do(MainTask, "Deploying main etcd", in.deploy(component.Main), "credentials-etcd").IfPresent("cluster", "backup-entry", copyTask),
		flow.Do(EventsTask, "Deploying events etcd", in.deploy(component.Events), "credentials-etcd").IfPresent("cluster"), // webhooks read it
	}
	if in.Ready != nil {
		tasks = append(tasks,
			flow.Await(stage.PodsTimeout, MainReadyTask, "Waiting until main etcd is ready", in.await(component.Main), MainTask),
			flow.Await(stage.PodsTimeout, EventsReadyTask, "Waiting until events etcd is ready", in.await(component.Events), EventsTask),
		)
	}
	if in.BackupEntry != nil {
		// The extension writes the credentials of backups into the namespace, and nothing if that does not exist.
		tasks = append(tasks, flow.Await(stage.ExtensionTimeout, "backup-entry", "Waiting until BackupEntry is ready", in.backupEntry, "namespace", "cluster").
			IfPresent(sourceEntryTask))
	}
	if in.Restoration != nil {
		tasks = append(tasks, in.restorationTasks()...)
	}
	return tasks
}

// deploy returns what the first task for an Etcd does: it has all its members, but for one that is restored.
func (in Inputs) deploy(role component.Role) func(context.Context) error {
	if in.Restoration != nil && in.Replicas > 1 {
		return in.deployFirst(role)
	}
	return Deploy(in, role, in.Replicas)
}

// Deploy returns what a task does that writes an Etcd. etcd-druid acts on changes of an existing one only when an annotation asks for it.
func Deploy(in Inputs, role component.Role, replicas int32) func(context.Context) error {
	return func(ctx context.Context) error {
		current, key := &druidv1alpha1.Etcd{}, client.ObjectKey{Namespace: in.Run.Namespace, Name: component.Name(in.Run.Of, role)}
		values, err := in.Values(role, replicas)
		if err != nil {
			return err
		}
		switch err := in.Run.SeedAPI.Get(ctx, key, current); {
		case err == nil:
			values.Existing = current.DeepCopy()
		case !apierrors.IsNotFound(err):
			return fmt.Errorf("read Etcd %q: %w", key.Name, err)
		}
		if err := in.Run.Apply(ctx, component.Objects(values)...); err != nil {
			return err
		}
		if err := in.Run.SeedAPI.Get(ctx, key, current); err != nil {
			return fmt.Errorf("read Etcd %q: %w", key.Name, err)
		}
		if observed := current.Status.ObservedGeneration; observed != nil && *observed == current.Generation {
			return nil
		}
		return kube.PatchMetadata(ctx, in.Run.SeedAPI, current, func(o *metav1.PartialObjectMetadata) {
			metav1.SetMetaDataAnnotation(&o.ObjectMeta, druidv1alpha1.DruidOperationAnnotation, druidv1alpha1.DruidOperationReconcile)
		})
	}
}

func (in Inputs) await(role component.Role) func(context.Context) error {
	return func(ctx context.Context) error {
		return stage.AwaitOne(ctx, in.Run.SeedAPI, in.Run.Namespace, component.Name(in.Run.Of, role), &druidv1alpha1.EtcdList{}, in.Ready)
	}
}

// Healthy returns why an Etcd is not ready, or nil if it is: it serves its clients, and all members have the last change.
func Healthy(e *druidv1alpha1.Etcd) error {
	if err := Serves(e); err != nil {
		return err
	}
	for _, c := range e.Status.Conditions { // an older etcd-druid does not report it
		if c.Type == druidv1alpha1.ConditionTypeAllMembersUpdated && c.Status != druidv1alpha1.ConditionTrue {
			return fmt.Errorf("Etcd %q: %s", e.Name, c.Message)
		}
	}
	return nil
}

// Serves returns why an Etcd does not serve its clients, or nil if it does. A shoot that is deleted needs no more: a change that some
// members never get must not block its deletion.
func Serves(e *druidv1alpha1.Etcd) error {
	switch s := e.Status; {
	case s.ObservedGeneration == nil || *s.ObservedGeneration != e.Generation:
		return fmt.Errorf("Etcd %q: etcd-druid has not observed its last change", e.Name)
	case len(s.LastErrors) > 0:
		return fmt.Errorf("Etcd %q: %s", e.Name, s.LastErrors[0].Description)
	case s.Ready == nil || !*s.Ready:
		return fmt.Errorf("Etcd %q: %d of %d members are ready", e.Name, s.ReadyReplicas, e.Spec.Replicas)
	}
	return nil
}

// backupEntry writes the BackupEntry and waits until it is reconciled.
func (in Inputs) backupEntry(ctx context.Context) error {
	return in.applyEntry(ctx, in.BackupEntry, func(entry *corev1beta1.BackupEntry) {
		if in.Restoration == nil { // it was to be recovered on another seed, but has stayed: when it moves, there is a final snapshot
			delete(entry.Annotations, constants.BackupEntryNoFinalSnapshot)
		}
		switch {
		case in.Restoration != nil && released(entry):
			entry.Annotations[constants.GardenerOperation] = constants.GardenerOperationRestore
			if former := entry.Spec.BucketName; former != in.BackupEntry.Spec.BucketName {
				entry.Annotations[constants.BackupEntryCopiedFrom], entry.Spec.BucketName = former, in.BackupEntry.Spec.BucketName
			}
		case entry.Spec.BucketName == "": // existing backups stay in their bucket
			entry.Spec.BucketName = in.BackupEntry.Spec.BucketName
		}
	})
}

// applyEntry writes a BackupEntry, with what a function changes besides, and waits until it is reconciled.
func (in Inputs) applyEntry(ctx context.Context, desired *corev1beta1.BackupEntry, change func(*corev1beta1.BackupEntry)) error {
	entry := &corev1beta1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Namespace: desired.Namespace, Name: desired.Name}}
	// The cache has only those of this seed, and it may be one of another still.
	_, err := controllerutil.CreateOrPatch(ctx, in.Run.GardenAPI, entry, func() error {
		if entry.Annotations == nil {
			entry.Annotations = map[string]string{}
		}
		maps.Copy(entry.Annotations, desired.Annotations)
		entry.OwnerReferences = desired.OwnerReferences
		change(entry)
		entry.Spec.SeedName = desired.Spec.SeedName
		return nil
	})
	if err != nil {
		return fmt.Errorf("write BackupEntry %q: %w", entry.Name, err)
	}
	ctx, observe, stop := extensionobject.WithErrorTimeout(ctx)
	defer stop()
	return stage.AwaitOne(ctx, in.Run.GardenAPI, entry.Namespace, entry.Name, &corev1beta1.BackupEntryList{}, func(current *corev1beta1.BackupEntry) error {
		last := current.Status.LastOperation
		observe(current.Status.LastError)
		switch {
		case current.Status.LastError != nil:
			return errorcode.With(fmt.Errorf("BackupEntry %q: %s", entry.Name, current.Status.LastError.Description), current.Status.LastError.Codes...)
		case last == nil || current.Status.ObservedGeneration != current.Generation || current.Annotations[constants.GardenerOperation] != "":
			return fmt.Errorf("BackupEntry %q was not reconciled yet", entry.Name)
		case last.State != corev1beta1.LastOperationStateSucceeded:
			return fmt.Errorf("BackupEntry %q: %s is %s: %s", entry.Name, last.Type, last.State, last.Description)
		}
		return nil
	})
}
