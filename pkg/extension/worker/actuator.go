package worker

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/pkg/extension"
	"gardener.cloud/gardener/pkg/kube"
)

// machinesRecheck is how often machines are checked, besides their events.
const machinesRecheck = time.Minute

// Delegate is what an infrastructure knows about its machines.
type Delegate interface {
	// Class returns what the machines of a pool in a zone are created from. The zone is empty for a pool without zones. An error about the pool names
	// its field.
	Class(ctx context.Context, worker *extensionsv1alpha1.Worker, cluster *extension.Cluster, pool *extensionsv1alpha1.WorkerPool, zone string) (*Class, error)
	// ProviderStatus returns what becomes status.providerStatus, such as the machine images that are in use. It may be nil.
	ProviderStatus(ctx context.Context, worker *extensionsv1alpha1.Worker, cluster *extension.Cluster) (any, error)
}

// Class is what the machines of a pool are created from.
type Class struct {
	// Provider is the name of the driver, in MachineClass.provider.
	Provider string
	// ProviderSpec is what only the driver knows, encoded as JSON.
	ProviderSpec any
	// Hash is what machines are replaced for when it changes, besides what extension.WorkerPoolHash has: their image, and what else of the
	// providerSpec cannot change for an existing machine.
	Hash []string
	// Capacity is that of the machines. Empty means that of the pool's nodeTemplate or else of the machine type in the CloudProfile.
	Capacity corev1.ResourceList
	// CredentialsSecretRef names the Secret with the credentials of the driver. Nil means that it needs none beside the user data.
	CredentialsSecretRef *corev1.SecretReference
	// SecretData is added to the Secret of the class, which has the user data.
	SecretData map[string][]byte
}

// Values are what an Actuator works with.
type Values struct {
	// Name is the name of the extension, which is also the field manager.
	Name string
	// Client is a client of the seed. Its Secrets are not cached.
	Client client.Client
	// Reader reads the status of machines from the API server: a cache might still have it from before the changes of this pass.
	Reader client.Reader
	// Clock is the source of the time in the status.
	Clock clock.PassiveClock
	// Delegate knows the infrastructure.
	Delegate Delegate
}

// Actuator applies the objects that the machine-controller-manager creates machines from, and waits for the machines. An author gives it to
// extension.Add as the actuator of Workers, with Watch as Options.Watch, and calls extension.AddInPlaceStatus beside it.
//
// It writes MachineClasses, their Secrets and MachineDeployments in the namespace of the Worker; MachineSets, Machines and the replicas of the
// machine-controller-manager when a Worker is restored. It reads the Secrets with user data.
type Actuator struct{ Values }

// New returns an Actuator.
func New(v Values) *Actuator { return &Actuator{v} }

var _ interface {
	extension.Actuator[*extensionsv1alpha1.Worker]
	extension.ForceDeleter[*extensionsv1alpha1.Worker]
	extension.Restorer[*extensionsv1alpha1.Worker]
} = (*Actuator)(nil)

// Watch requeues a Worker when its machines change.
func Watch(b *builder.Builder, toObjects handler.MapFunc) {
	b.Watches(&machinev1alpha1.MachineDeployment{}, handler.EnqueueRequestsFromMapFunc(toObjects))
	b.Watches(&machinev1alpha1.MachineClass{}, handler.EnqueueRequestsFromMapFunc(toObjects), builder.WithPredicates(predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, UpdateFunc: func(event.UpdateEvent) bool { return false },
	}))
	machines := &metav1.PartialObjectMetadata{}
	machines.SetGroupVersionKind(machinev1alpha1.SchemeGroupVersion.WithKind("Machine"))
	// The status of deployments does not count machines that are being deleted.
	b.Watches(machines, handler.EnqueueRequestsFromMapFunc(toObjects), builder.WithPredicates(predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, UpdateFunc: func(event.UpdateEvent) bool { return false },
	}))
}

// Reconcile applies the MachineDeployments, and waits until their machines are ready.
func (a *Actuator) Reconcile(ctx context.Context, worker *extensionsv1alpha1.Worker, cluster *extension.Cluster) error {
	if err := complete(worker, cluster); err != nil {
		return err
	}
	existing, err := a.deployments(ctx, worker.Namespace)
	if err != nil {
		return err
	}
	all, err := a.render(ctx, worker, cluster, existing)
	if err != nil {
		return err
	}
	for _, m := range all {
		if before := existing[m.deployment.Name]; before != nil {
			m.deployment.ResourceVersion = before.ResourceVersion // replicas that the cluster-autoscaler changes right now must not be lost
		}
		if err := kube.Apply(ctx, a.Client, a.Name, m.secret, m.class, m.deployment); err != nil {
			return err
		}
	}
	if err := a.publish(ctx, worker, cluster, all); err != nil {
		return err
	}
	if existing, err = a.deployments(ctx, worker.Namespace); err != nil {
		return err
	}
	stale := obsolete(all, existing)
	notReady := progress(all, existing, stale)
	// The pods of a removed pool need machines to move to: it may only have been renamed, or have other zones. If the capacity is used up, its
	// machines are deleted earlier.
	if notReady == nil || hibernated(cluster) || slices.Contains(errorcode.Of(notReady), corev1beta1.ErrorInfraResourcesDepleted) {
		for _, deployment := range stale {
			if err := a.Client.Delete(ctx, deployment); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("delete MachineDeployment %q: %w", deployment.Name, err)
			}
		}
	}
	left := 0
	if hibernated(cluster) {
		if left, err = a.forceMachines(ctx, worker.Namespace); err != nil {
			return err
		}
		if left == 0 {
			if left, err = a.undone(ctx, worker.Namespace); err != nil {
				return err
			}
		}
	}
	if notReady != nil {
		return notReady
	}
	if len(stale) > 0 {
		return &extension.Wait{Reason: fmt.Sprintf("MachineDeployment %q is being deleted", stale[0].Name), After: machinesRecheck}
	}
	if left > 0 {
		return &extension.Wait{Reason: fmt.Sprintf("%d machines are being deleted", left), After: machinesRecheck}
	}
	_, err = a.deleteClasses(ctx, worker.Namespace, all)
	return err
}

// complete refuses a Cluster without what machines depend on.
func complete(worker *extensionsv1alpha1.Worker, cluster *extension.Cluster) error {
	if cluster == nil || cluster.Shoot == nil || cluster.CloudProfile == nil {
		return fmt.Errorf("there is no Cluster %q with a shoot and a cloud profile", worker.Namespace)
	}
	return nil
}

// Delete deletes all machines, then all other objects.
func (a *Actuator) Delete(ctx context.Context, worker *extensionsv1alpha1.Worker, cluster *extension.Cluster) error {
	existing, err := a.deployments(ctx, worker.Namespace)
	if err != nil {
		return err
	}
	sets := &machinev1alpha1.MachineSetList{}
	if err := a.Reader.List(ctx, sets, client.InNamespace(worker.Namespace)); err != nil {
		return fmt.Errorf("list MachineSets: %w", err)
	}
	left, err := a.forceMachines(ctx, worker.Namespace)
	if err != nil {
		return err
	}
	if left+len(sets.Items)+len(existing) > 0 {
		// A set may exist without its deployment.
		for _, kind := range []client.Object{&machinev1alpha1.MachineDeployment{}, &machinev1alpha1.MachineSet{}} {
			if err := a.Client.DeleteAllOf(ctx, kind, client.InNamespace(worker.Namespace)); err != nil {
				return fmt.Errorf("delete all %T: %w", kind, err)
			}
		}
		reason := fmt.Sprintf("%d machines, %d MachineSets and %d MachineDeployments are being deleted", left, len(sets.Items), len(existing))
		return &extension.Wait{Reason: reason, After: machinesRecheck}
	}
	classes, err := a.deleteClasses(ctx, worker.Namespace, nil)
	if err != nil {
		return err
	}
	if classes > 0 {
		return &extension.Wait{Reason: fmt.Sprintf("%d MachineClasses are being deleted", classes), After: machinesRecheck}
	}
	return nil
}

// ForceDelete is the same as Delete, which does not wait for anything that runs on machines anyway.
func (a *Actuator) ForceDelete(ctx context.Context, worker *extensionsv1alpha1.Worker, cluster *extension.Cluster) error {
	return a.Delete(ctx, worker, cluster)
}

// forceMachines labels all machines, so that they are deleted without waiting for their pods: when all of them are deleted, there is no machine
// that pods could move to, and disruption budgets would keep the last ones for hours. It returns the number of machines.
func (a *Actuator) forceMachines(ctx context.Context, namespace string) (int, error) {
	left := &machinev1alpha1.MachineList{}
	if err := a.Reader.List(ctx, left, client.InNamespace(namespace)); err != nil {
		return 0, fmt.Errorf("list Machines: %w", err)
	}
	for i := range left.Items {
		machine := &left.Items[i]
		if machine.Labels[machinev1alpha1.ForceDeletionLabel] == machinev1alpha1.LabelValueTrue {
			continue
		}
		before := machine.DeepCopy()
		metav1.SetMetaDataLabel(&machine.ObjectMeta, machinev1alpha1.ForceDeletionLabel, machinev1alpha1.LabelValueTrue)
		if err := a.Client.Patch(ctx, machine, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
			return 0, fmt.Errorf("label Machine %q: %w", machine.Name, err)
		}
	}
	return len(left.Items), nil
}

// deployments returns the MachineDeployments of a namespace by name.
func (a *Actuator) deployments(ctx context.Context, namespace string) (map[string]*machinev1alpha1.MachineDeployment, error) {
	list := &machinev1alpha1.MachineDeploymentList{}
	if err := a.Reader.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list MachineDeployments: %w", err)
	}
	out := map[string]*machinev1alpha1.MachineDeployment{}
	for i := range list.Items {
		out[list.Items[i].Name] = &list.Items[i]
	}
	return out, nil
}

// publish writes the MachineDeployments to the status, which the cluster-autoscaler is configured by. With each operation, the gardenlet waits until they are
// updated, also if nothing has changed.
func (a *Actuator) publish(ctx context.Context, worker *extensionsv1alpha1.Worker, cluster *extension.Cluster, all []machines) error {
	published := make([]extensionsv1alpha1.MachineDeployment, 0, len(all))
	for _, m := range all {
		published = append(published, m.published)
	}
	if extension.Begun(&worker.Status) || requestedSince(worker) || !apiequality.Semantic.DeepEqual(published, worker.Status.MachineDeployments) {
		worker.Status.MachineDeployments = published
		worker.Status.MachineDeploymentsLastUpdateTime = &metav1.Time{Time: a.Clock.Now()}
	}
	status, err := a.Delegate.ProviderStatus(ctx, worker, cluster)
	if err != nil || status == nil {
		return err
	}
	raw, err := encode(status)
	if err != nil {
		return err
	}
	worker.Status.ProviderStatus = &raw
	return nil
}

// requestedSince says whether the last operation on a Worker was requested after its MachineDeployments were written to the status. Its first pass may have
// failed before.
func requestedSince(worker *extensionsv1alpha1.Worker) bool {
	requested, err := time.Parse(time.RFC3339Nano, worker.Annotations[constants.GardenerTimestamp])
	last := worker.Status.MachineDeploymentsLastUpdateTime
	return err == nil && (last == nil || last.Time.Before(requested))
}

// deleteClasses deletes obsolete classes with their Secrets, and returns how many existed.
func (a *Actuator) deleteClasses(ctx context.Context, namespace string, current []machines) (int, error) {
	list := &machinev1alpha1.MachineClassList{}
	if err := a.Reader.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return 0, fmt.Errorf("list MachineClasses: %w", err)
	}
	found := 0
	for i := range list.Items {
		class := &list.Items[i]
		if slices.ContainsFunc(current, func(m machines) bool { return m.class.Name == class.Name }) {
			continue
		}
		found++
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: class.Name}}
		for _, object := range []client.Object{class, secret} {
			if err := a.Client.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
				return 0, fmt.Errorf("delete %T %q: %w", object, class.Name, err)
			}
		}
	}
	return found, nil
}

// undone returns how many machines MachineSets of a hibernated shoot may still create.
func (a *Actuator) undone(ctx context.Context, namespace string) (int, error) {
	sets := &machinev1alpha1.MachineSetList{}
	if err := a.Reader.List(ctx, sets, client.InNamespace(namespace)); err != nil {
		return 0, fmt.Errorf("list MachineSets: %w", err)
	}
	machines := 0
	for i := range sets.Items {
		machines += int(sets.Items[i].Spec.Replicas)
	}
	return machines, nil
}
