package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	localv1alpha1 "gardener.cloud/gardener/api/provider/local/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/pkg/extension"
)

// machinesRecheck is how often machines are checked, besides their events.
const machinesRecheck = time.Minute

// workers applies the objects that the machine-controller-manager creates machines from.
//
// It writes MachineClasses, their Secrets and MachineDeployments in the namespace of the Worker, and the Role of the container in the pods of the
// machine-controller-manager there. It reads the Secrets with user data.
type workers struct {
	client client.Client
	// reader reads the status of machines from the API server: a cache might still have it from before the changes of this pass.
	reader     client.Reader
	clock      clock.PassiveClock
	registries []localv1alpha1.MachineRegistry
}

// watchMachines requeues a Worker when its machines change.
func watchMachines(b *builder.Builder, toObjects handler.MapFunc) {
	b.Watches(&machinev1alpha1.MachineDeployment{}, handler.EnqueueRequestsFromMapFunc(toObjects))
	b.Watches(&machinev1alpha1.MachineClass{}, handler.EnqueueRequestsFromMapFunc(toObjects), builder.WithPredicates(predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, UpdateFunc: func(event.UpdateEvent) bool { return false },
	}))
	// The status of deployments does not count machines that are being deleted.
	b.Watches(kube.Metadata(machinev1alpha1.SchemeGroupVersion.WithKind("Machine")), handler.EnqueueRequestsFromMapFunc(toObjects), builder.WithPredicates(predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, UpdateFunc: func(event.UpdateEvent) bool { return false },
	}))
}

// Reconcile applies the MachineDeployments, and waits until their machines are ready.
func (a *workers) Reconcile(ctx context.Context, worker *extensionsv1alpha1.Worker, cluster *extension.Cluster) error {
	if cluster == nil || cluster.Shoot == nil || cluster.CloudProfile == nil {
		return fmt.Errorf("there is no Cluster %q with a shoot and a cloud profile", worker.Namespace)
	}
	// A Worker may be reconciled whose ControlPlane an earlier version has reconciled.
	if err := applyDriverRole(ctx, a.client, worker.Namespace); err != nil {
		return err
	}
	existing, err := a.deployments(ctx, worker.Namespace)
	if err != nil {
		return err
	}
	all, images, err := render(worker, cluster, a.registries, existing, func(ref corev1.SecretKeySelector) ([]byte, error) {
		secret := &corev1.Secret{}
		if err := a.client.Get(ctx, client.ObjectKey{Namespace: worker.Namespace, Name: ref.Name}, secret); err != nil {
			return nil, fmt.Errorf("read Secret %q: %w", ref.Name, err)
		}
		content, ok := secret.Data[ref.Key]
		if !ok {
			return nil, fmt.Errorf("Secret %[2]q has no key %[1]q", ref.Key, ref.Name)
		}
		return content, nil
	})
	if err != nil {
		return err
	}
	for _, m := range all {
		if before := existing[m.deployment.Name]; before != nil {
			m.deployment.ResourceVersion = before.ResourceVersion // replicas that the cluster-autoscaler changes right now must not be lost
		}
		if err := kube.Apply(ctx, a.client, Name, m.secret, m.class, m.deployment); err != nil {
			return err
		}
	}
	if err := a.publish(worker, all, images); err != nil {
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
			if err := a.client.Delete(ctx, deployment); client.IgnoreNotFound(err) != nil {
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

// Delete deletes all machines, then all other objects.
func (a *workers) Delete(ctx context.Context, worker *extensionsv1alpha1.Worker, cluster *extension.Cluster) error {
	existing, err := a.deployments(ctx, worker.Namespace)
	if err != nil {
		return err
	}
	sets := &machinev1alpha1.MachineSetList{}
	if err := a.reader.List(ctx, sets, client.InNamespace(worker.Namespace)); err != nil {
		return fmt.Errorf("list MachineSets: %w", err)
	}
	left, err := a.forceMachines(ctx, worker.Namespace)
	if err != nil {
		return err
	}
	if left+len(sets.Items)+len(existing) > 0 {
		if err := applyDriverRole(ctx, a.client, worker.Namespace); err != nil {
			return err
		}
		// A set may exist without its deployment.
		for _, kind := range []client.Object{&machinev1alpha1.MachineDeployment{}, &machinev1alpha1.MachineSet{}} {
			if err := a.client.DeleteAllOf(ctx, kind, client.InNamespace(worker.Namespace)); err != nil {
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
func (a *workers) ForceDelete(ctx context.Context, worker *extensionsv1alpha1.Worker, cluster *extension.Cluster) error {
	return a.Delete(ctx, worker, cluster)
}

// forceMachines labels all machines, so that they are deleted without waiting for their pods: when all of them are deleted, there is no machine
// that pods could move to, and disruption budgets would keep the last ones for hours. It returns the number of machines.
func (a *workers) forceMachines(ctx context.Context, namespace string) (int, error) {
	left := &machinev1alpha1.MachineList{}
	if err := a.reader.List(ctx, left, client.InNamespace(namespace)); err != nil {
		return 0, fmt.Errorf("list Machines: %w", err)
	}
	for i := range left.Items {
		if err := kube.PatchMetadata(ctx, a.client, &left.Items[i], func(o *metav1.PartialObjectMetadata) {
			metav1.SetMetaDataLabel(&o.ObjectMeta, machinev1alpha1.ForceDeletionLabel, machinev1alpha1.LabelValueTrue)
		}); client.IgnoreNotFound(err) != nil {
			return 0, err
		}
	}
	return len(left.Items), nil
}

// Migrate is refused: machines are pods in the namespace of the control plane, and are deleted with it.
func (a *workers) Migrate(context.Context, *extensionsv1alpha1.Worker, *extension.Cluster) error {
	return errorcode.With(errors.New("local machines run in their seed, and cannot be migrated to another one"), corev1beta1.ErrorConfigurationProblem)
}

// deployments returns the MachineDeployments of a namespace by name.
func (a *workers) deployments(ctx context.Context, namespace string) (map[string]*machinev1alpha1.MachineDeployment, error) {
	list := &machinev1alpha1.MachineDeploymentList{}
	if err := a.reader.List(ctx, list, client.InNamespace(namespace)); err != nil {
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
func (a *workers) publish(worker *extensionsv1alpha1.Worker, all []machines, images []localv1alpha1.MachineImage) error {
	published := make([]extensionsv1alpha1.MachineDeployment, 0, len(all))
	for _, m := range all {
		published = append(published, m.published)
	}
	if extension.Begun(&worker.Status) || !apiequality.Semantic.DeepEqual(published, worker.Status.MachineDeployments) {
		worker.Status.MachineDeployments = published
		worker.Status.MachineDeploymentsLastUpdateTime = &metav1.Time{Time: a.clock.Now()}
	}
	raw, err := json.Marshal(&localv1alpha1.WorkerStatus{
		TypeMeta: metav1.TypeMeta{APIVersion: localv1alpha1.SchemeGroupVersion.String(), Kind: "WorkerStatus"}, MachineImages: images,
	})
	if err != nil {
		return err
	}
	worker.Status.ProviderStatus = &runtime.RawExtension{Raw: raw}
	return nil
}

// obsolete returns the deployments without a pool and zone, sorted by name.
func obsolete(all []machines, existing map[string]*machinev1alpha1.MachineDeployment) []*machinev1alpha1.MachineDeployment {
	var out []*machinev1alpha1.MachineDeployment
	for _, name := range slices.Sorted(maps.Keys(existing)) {
		if !slices.ContainsFunc(all, func(m machines) bool { return m.deployment.Name == name }) {
			out = append(out, existing[name])
		}
	}
	return out
}

// progress returns what is waited for until the desired machines are ready, or which of them fail; nil if they are ready. The deletion of
// stale deployments waits, too.
func progress(all []machines, existing map[string]*machinev1alpha1.MachineDeployment, stale []*machinev1alpha1.MachineDeployment) error {
	var failed, waiting []string
	var codes []corev1beta1.ErrorCode
	for _, m := range all {
		deployment := existing[m.deployment.Name]
		switch {
		case deployment == nil:
			waiting = append(waiting, fmt.Sprintf("MachineDeployment %q does not exist yet", m.deployment.Name))
			continue
		case deployment.DeletionTimestamp != nil: // its pool was removed for a while
			waiting = append(waiting, fmt.Sprintf("MachineDeployment %q is being deleted, and will be created again", deployment.Name))
			continue
		}
		status, replicas := deployment.Status, deployment.Spec.Replicas
		// Nothing has to be done for a deployment that has no machines and shall have none, such as a new one of a hibernated shoot.
		observed := status.ObservedGeneration >= deployment.Generation || replicas+status.Replicas == 0
		for _, machine := range status.FailedMachines {
			failed = append(failed, fmt.Sprintf("machine %q: %s", machine.Name, machine.LastOperation.Description))
			// The error of a machine that is being replaced may have been fixed.
			if code, ok := codeOf(machine.LastOperation); ok && observed && status.UpdatedReplicas == status.Replicas {
				codes = append(codes, code)
			}
		}
		updated := status.UpdatedReplicas == replicas || extension.WaitsForSelection(deployment)
		if !observed || !updated || status.Replicas != replicas || status.AvailableReplicas != replicas {
			waiting = append(waiting, fmt.Sprintf("%d of %d machines of %q are ready", min(status.UpdatedReplicas, status.AvailableReplicas), replicas, deployment.Name))
		}
	}
	slices.Sort(failed)
	slices.Sort(waiting)
	after := ""
	for _, deployment := range stale {
		if deployment.DeletionTimestamp == nil {
			after += fmt.Sprintf("; then MachineDeployment %q will be deleted", deployment.Name)
		}
	}
	switch {
	case len(failed) > 0:
		return errorcode.With(errors.New("machines have failed: "+strings.Join(failed, "; ")+after), codes...)
	case len(waiting) > 0:
		return &extension.Wait{Reason: strings.Join(waiting, "; ") + after, After: machinesRecheck}
	}
	return nil
}

// codeOf returns the error code for users of a failed creation or deletion of a machine.
func codeOf(operation machinev1alpha1.LastOperation) (corev1beta1.ErrorCode, bool) {
	if operation.Type != machinev1alpha1.MachineOperationCreate && operation.Type != machinev1alpha1.MachineOperationDelete {
		return "", false
	}
	code, ok := map[string]corev1beta1.ErrorCode{ // the names are those of gRPC
		"ResourceExhausted": corev1beta1.ErrorInfraResourcesDepleted, "InvalidArgument": corev1beta1.ErrorConfigurationProblem,
		"Unauthenticated": corev1beta1.ErrorInfraUnauthenticated, "PermissionDenied": corev1beta1.ErrorInfraUnauthorized,
	}[operation.ErrorCode]
	return code, ok
}

// deleteClasses deletes obsolete classes with their Secrets, and returns how many existed.
func (a *workers) deleteClasses(ctx context.Context, namespace string, current []machines) (int, error) {
	list := &machinev1alpha1.MachineClassList{}
	if err := a.reader.List(ctx, list, client.InNamespace(namespace)); err != nil {
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
			if err := a.client.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
				return 0, fmt.Errorf("delete %T %q: %w", object, class.Name, err)
			}
		}
	}
	return found, nil
}

// undone returns how many machines MachineSets of a hibernated shoot may still create.
func (a *workers) undone(ctx context.Context, namespace string) (int, error) {
	sets := &machinev1alpha1.MachineSetList{}
	if err := a.reader.List(ctx, sets, client.InNamespace(namespace)); err != nil {
		return 0, fmt.Errorf("list MachineSets: %w", err)
	}
	machines := 0
	for i := range sets.Items {
		machines += int(sets.Items[i].Spec.Replicas)
	}
	return machines, nil
}
