package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	operationsv1alpha1 "gardener.cloud/gardener/api/operations/v1alpha1"
	etcdcomponent "gardener.cloud/gardener/internal/component/etcd"
	"gardener.cloud/gardener/internal/component/instance"
	"gardener.cloud/gardener/internal/component/kubeapiserver"
	shootstate "gardener.cloud/gardener/internal/gardenlet/shoot/state"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/shoot/observed"
	"gardener.cloud/gardener/internal/shoot/state"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/internal/stage/credentials"
	"gardener.cloud/gardener/internal/stage/deletion"
	"gardener.cloud/gardener/internal/stage/etcd"
)

// mayMigrate returns why the control plane of a shoot cannot be released now. Whether the other seed is ready is reported by
// gardener-controller-manager, as a gardenlet may not read another Seed.
func (r *reconciler) mayMigrate(ctx context.Context, shoot *corev1beta1.Shoot) error {
	if err := r.readyForMigration(ctx, shoot); err != nil {
		return err
	}
	bastions := &operationsv1alpha1.BastionList{}
	if err := r.gardenCache.List(ctx, bastions, client.InNamespace(shoot.Namespace)); err != nil {
		return fmt.Errorf("list Bastions: %w", err)
	}
	machines := &extensionsv1alpha1.BastionList{}
	if namespace := shoot.Status.TechnicalID; namespace != "" { // else nothing was created
		if err := r.SeedAPI.List(ctx, machines, client.InNamespace(namespace)); err != nil {
			return fmt.Errorf("list Bastions in the seed: %w", err)
		}
		if err := state.CheckRestorable(ctx, r.SeedAPI, namespace); err != nil {
			return err
		}
	}
	if len(machines.Items) > 0 || slices.ContainsFunc(bastions.Items, func(b operationsv1alpha1.Bastion) bool { return mayHaveMachine(&b, shoot) }) {
		return errors.New("shoot has still Bastions")
	}
	return nil
}

// readyForMigration returns why the other seed cannot take a control plane. One that is released so far that it has no kube-apiserver any more is released to
// the end all the same, unless the other seed is being deleted: its API comes back there only, and the seed may not be ready for long, such as during an
// upgrade of gardenlets one after the other.
func (r *reconciler) readyForMigration(ctx context.Context, shoot *corev1beta1.Shoot) error {
	ready := kube.Condition(shoot.Status.Constraints, corev1beta1.ShootReadyForMigration)
	switch {
	case ready == nil:
		return fmt.Errorf("constraint %s is not reported yet", corev1beta1.ShootReadyForMigration)
	case ready.Status == corev1beta1.ConditionTrue:
		return nil
	}
	if last := shoot.Status.LastOperation; ready.Reason != corev1beta1.ReasonDestinationSeedInDeletion && last != nil &&
		last.Type == corev1beta1.LastOperationTypeMigrate && shoot.Status.TechnicalID != "" {
		if exists, err := hasAPIServer(ctx, r.SeedAPI, shoot.Status.TechnicalID); err != nil || !exists {
			return err
		}
	}
	return fmt.Errorf("constraint %s is %s: %s", ready.Type, ready.Status, ready.Message)
}

// mayHaveMachine reports whether a Bastion is one of a shoot, and has a machine or will get one. Members of a project can keep one in deletion for as long as
// they like, with a finalizer of their own.
func mayHaveMachine(b *operationsv1alpha1.Bastion, shoot *corev1beta1.Shoot) bool {
	return b.Spec.ShootRef.Name == shoot.Name && (b.DeletionTimestamp == nil || slices.Contains(b.Finalizers, constants.FinalizerGardenerName))
}

// migration reads what is left of a control plane that moves to another seed.
func (r observer) migration(ctx context.Context, o *observed.State, namespace *corev1.Namespace) (*observed.Migration, error) {
	m := &observed.Migration{Alive: o.HasNamespace && namespace.DeletionTimestamp == nil}
	var err error
	if m.HasAPIServer, err = hasAPIServer(ctx, r.seedAPI, o.Namespace); err != nil {
		return nil, err
	}
	entry, err := readEntry(ctx, r.gardenAPI, o.BackupEntry())
	if err != nil {
		return nil, err
	}
	if entry == nil {
		return m, r.withoutBackup(ctx, o, m)
	}
	m.NeedsSnapshot = o.HasNamespace && ptr.Deref(entry.Spec.SeedName, "") == ptr.Deref(o.Shoot.Status.SeedName, "")
	return m, nil
}

// hasAPIServer reports whether a control plane has a kube-apiserver that is not being deleted.
func hasAPIServer(ctx context.Context, seedAPI client.Reader, namespace string) (bool, error) {
	server := &appsv1.Deployment{}
	err := seedAPI.Get(ctx, client.ObjectKey{Namespace: namespace, Name: kubeapiserver.Name}, server)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read Deployment %q: %w", kubeapiserver.Name, err)
	}
	return err == nil && server.DeletionTimestamp == nil, nil
}

// withoutBackup returns an error if a control plane without a BackupEntry has data: these would be lost with its etcd. The Seed may have been given backups
// after the last operation, or they were taken from it after the Shoot was bound to the other one.
func (r observer) withoutBackup(ctx context.Context, o *observed.State, m *observed.Migration) error {
	main := etcdcomponent.Name(instance.Shoot, etcdcomponent.Main)
	err := r.seedAPI.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: main}, &druidv1alpha1.Etcd{})
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("read Etcd %q: %w", main, err)
	case err != nil && !m.HasAPIServer:
		return nil
	}
	return fmt.Errorf("BackupEntry %q does not exist, and the data of the cluster would be lost without backups: bind the shoot to seed %q again, whose spec.backup "+
		"must be set, until it is reconciled there", o.BackupEntryName(), o.Seed.Name)
}

// readEntry reads a BackupEntry. It is nil if it does not exist.
func readEntry(ctx context.Context, gardenAPI client.Reader, desired *corev1beta1.BackupEntry) (*corev1beta1.BackupEntry, error) {
	entry := &corev1beta1.BackupEntry{}
	err := gardenAPI.Get(ctx, client.ObjectKeyFromObject(desired), entry)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // documented
	}
	if err != nil {
		return nil, fmt.Errorf("read BackupEntry %q: %w", desired.Name, err)
	}
	return entry, nil
}

// migrationInputs are those of the tasks that release a control plane.
func (r *reconciler) migrationInputs(run *stage.Run, o *observed.State, set *credentials.Set) deletion.Migration {
	m := deletion.Migration{
		TargetSeed: *o.Shoot.Spec.SeedName, KubeAPIServerRuns: o.Migration.Alive && o.Migration.HasAPIServer, Stale: o.StaleExtensions,
		SaveState: func(ctx context.Context) error {
			collected, err := state.Collect(ctx, r.SeedAPI, o.Namespace, o.BackupEntryName(), o.Shoot.Spec.Provider.Workers)
			if err != nil {
				return err
			}
			released, err := nodesReleased(ctx, r.SeedAPI, run.Worker())
			if err != nil {
				return err
			}
			// What was released in an earlier run has no state any more.
			return state.Write(ctx, r.GardenAPI, o.Shoot, r.Clock.Now(), func(saved *corev1beta1.ShootStateSpec) (*corev1beta1.ShootStateSpec, error) {
				return state.Merge(saved, collected, released)
			})
		},
	}
	if o.Migration.NeedsSnapshot {
		m.Snapshot = func(ctx context.Context) error { return etcd.Snapshot(ctx, run, set, etcd.FinalSnapshot) }
	}
	return m
}

// nodesReleased says whether the deletion of a Worker, and with it that of the other resources of nodes, has begun in an earlier run.
func nodesReleased(ctx context.Context, seedAPI client.Reader, worker *extensionsv1alpha1.Worker) (bool, error) {
	if err := seedAPI.Get(ctx, client.ObjectKeyFromObject(worker), worker); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read Worker %q: %w", worker.Name, err)
	} else if err != nil {
		return true, nil
	}
	return worker.DeletionTimestamp != nil, nil
}

// restoration reads what the control plane of a shoot is restored from. A control plane that has never left the seed needs nothing.
func (r *reconciler) restoration(ctx context.Context, o *observed.State) (*observed.Restoration, error) {
	saved := &corev1beta1.ShootState{}
	if err := r.GardenAPI.Get(ctx, client.ObjectKeyFromObject(o.Shoot), saved); err != nil && !(apierrors.IsNotFound(err) && o.HasNamespace) {
		return nil, fmt.Errorf("read ShootState: %w", err)
	}
	restoration := &observed.Restoration{Saved: saved.Spec}
	if o.Seed.Spec.Backup == nil {
		return restoration, nil
	}
	main := etcdcomponent.Name(instance.Shoot, etcdcomponent.Main)
	err := r.SeedAPI.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: main}, &druidv1alpha1.Etcd{})
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read Etcd %q: %w", main, err)
	}
	entry, errEntry := readEntry(ctx, r.GardenAPI, o.BackupEntry())
	source, errSource := readEntry(ctx, r.GardenAPI, o.SourceBackupEntry())
	if err := errors.Join(errEntry, errSource); err != nil {
		return nil, err
	}
	restoration.NoFinalSnapshot = entry != nil && entry.Annotations[constants.BackupEntryNoFinalSnapshot] == "true"
	restoration.SourceBucket, err = etcd.CopiesFrom(err == nil, entry, source, string(o.Seed.UID))
	return restoration, err
}

// restoreEtcd completes the inputs of etcd for a control plane that is restored. One with several members is started to be restored even if the shoot is
// hibernated: three of them cannot be restored when it wakes up.
func (s *stages) restoreEtcd(o *observed.State, k kind) {
	s.etcd.Restoration = &etcd.Restoration{
		SourceEntry: o.SourceBackupEntry(), Copies: o.Restoration.SourceBucket != "", NoFinalSnapshot: o.Restoration.NoFinalSnapshot, Provider: o.Seed.Spec.Backup.Provider, Stops: k == kindHibernated,
	}
	if k != kindHibernated {
		s.etcd.Restoration.GrowAfter = []string{"kube-apiserver-ready"}
	} else if o.HighlyAvailable() && s.etcd.Restoration.Copies {
		s.etcd.Replicas, s.etcd.Ready = o.Members(), etcd.Healthy
	}
}

// deleteState deletes the ShootState of a restored shoot if none is saved on this seed: it would be outdated soon.
func (r *reconciler) deleteState(ctx context.Context, shoot *corev1beta1.Shoot) error {
	if saves, err := r.SavesStates(ctx); err != nil || saves {
		return err
	}
	return shootstate.Delete(ctx, r.GardenAPI, client.ObjectKeyFromObject(shoot))
}
