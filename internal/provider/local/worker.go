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
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
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
	localv1alpha1 "gardener.cloud/gardener/api/provider/local/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/component/controlplanenamespace"
	"gardener.cloud/gardener/internal/component/machinecontrollermanager"
	"gardener.cloud/gardener/internal/component/shootaccess"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/pkg/extension"
)

// forceDeletionLabel makes the machine-controller-manager delete a machine without regard to its pods.
const forceDeletionLabel = "force-deletion"

// machinesAfter is when to look again at machines, should nobody tell what happened to them.
const machinesAfter = time.Minute

// workers makes what the machine-controller-manager makes machines from, and deploys it.
//
// It writes MachineClasses, their Secrets and MachineDeployments in the namespace of the Worker, and the machine-controller-manager
// there. It reads the Secrets with user data.
type workers struct {
	client client.Client
	// reader reads what the machine-controller-manager reports as it is now: a cache might still have what was before our own changes.
	reader     client.Reader
	clock      clock.PassiveClock
	image      string
	registries []localv1alpha1.MachineRegistry
}

// watchMachines brings a Worker back when something changes about its machines.
func watchMachines(b *builder.Builder, toObjects handler.MapFunc) {
	b.Watches(&machinev1alpha1.MachineDeployment{}, handler.EnqueueRequestsFromMapFunc(toObjects))
	b.Watches(&machinev1alpha1.MachineClass{}, handler.EnqueueRequestsFromMapFunc(toObjects), builder.WithPredicates(predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, UpdateFunc: func(event.UpdateEvent) bool { return false },
	}))
	// Deployments do not count machines that are being deleted.
	b.Watches(kube.Metadata(machinev1alpha1.SchemeGroupVersion.WithKind("Machine")), handler.EnqueueRequestsFromMapFunc(toObjects), builder.WithPredicates(predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, UpdateFunc: func(event.UpdateEvent) bool { return false },
	}))
	watchManaged(b, toObjects, machinecontrollermanager.ManagedResourceName)
	// The machine-controller-manager starts when it has a token.
	secret := kube.Metadata(corev1.SchemeGroupVersion.WithKind("Secret"))
	b.Watches(secret, handler.EnqueueRequestsFromMapFunc(toObjects), builder.WithPredicates(predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			renewed := resourcesv1alpha1.ServiceAccountTokenRenewTimestamp
			return e.ObjectNew.GetName() == shootaccess.SecretName(machinecontrollermanager.Name) &&
				e.ObjectOld.GetAnnotations()[renewed] == "" && e.ObjectNew.GetAnnotations()[renewed] != ""
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}))
}

// tokens selects the Secrets of which there are copies of metadata in memory.
func tokens() labels.Selector {
	return labels.SelectorFromSet(labels.Set{resourcesv1alpha1.ResourceManagerPurpose: resourcesv1alpha1.LabelPurposeTokenRequest})
}

// Reconcile orders the machines, and waits until all of them are as ordered.
func (a *workers) Reconcile(ctx context.Context, worker *extensionsv1alpha1.Worker, cluster *extension.Cluster) error {
	if cluster == nil || cluster.Shoot == nil || cluster.CloudProfile == nil {
		return fmt.Errorf("there is no Cluster %q with a shoot and a cloud profile", worker.Namespace)
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
			return nil, fmt.Errorf("there is no key %q in Secret %q", ref.Key, ref.Name)
		}
		return content, nil
	})
	if err != nil {
		return err
	}
	for _, m := range all {
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
	stale := unwanted(all, existing)
	judged := judge(all, existing, stale)
	// Pods of a pool that goes have to go somewhere: it may have another name, or other zones, from now on. But its room may be what others need.
	if judged == nil || hibernated(cluster) || slices.Contains(errorcode.Of(judged), corev1beta1.ErrorInfraResourcesDepleted) {
		for _, deployment := range stale {
			if err := a.client.Delete(ctx, deployment); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("delete MachineDeployment %q: %w", deployment.Name, err)
			}
		}
	}
	left, needed := 0, true
	if hibernated(cluster) {
		if left, err = a.abandon(ctx, worker.Namespace); err != nil {
			return err
		}
		needed = left+len(stale) > 0 || unsettled(existing)
	}
	// What is needed and what is waited for is judged by the same reading: when nothing is waited for, nothing is left running.
	if err := a.deployManager(ctx, worker.Namespace, cluster, needed); err != nil {
		return err
	}
	if judged != nil {
		return judged
	}
	if len(stale) > 0 {
		return &extension.Wait{Reason: fmt.Sprintf("MachineDeployment %q is being deleted", stale[0].Name), After: machinesAfter}
	}
	if left > 0 {
		return &extension.Wait{Reason: fmt.Sprintf("%d machines are being deleted", left), After: machinesAfter}
	}
	_, err = a.deleteClasses(ctx, worker.Namespace, all)
	return err
}

// Delete deletes all machines, and when they are gone, everything else.
func (a *workers) Delete(ctx context.Context, worker *extensionsv1alpha1.Worker, cluster *extension.Cluster) error {
	existing, err := a.deployments(ctx, worker.Namespace)
	if err != nil {
		return err
	}
	sets := &machinev1alpha1.MachineSetList{}
	if err := a.reader.List(ctx, sets, client.InNamespace(worker.Namespace)); err != nil {
		return fmt.Errorf("list MachineSets: %w", err)
	}
	left, err := a.abandon(ctx, worker.Namespace)
	if err != nil {
		return err
	}
	if left+len(sets.Items)+len(existing) > 0 {
		if cluster != nil && cluster.Shoot != nil {
			// It may have been stopped with the rest of the control plane, and nobody else lets go of them.
			if err := a.deployManager(ctx, worker.Namespace, cluster, true); err != nil {
				return err
			}
		}
		// A set may have outlived its deployment.
		for _, kind := range []client.Object{&machinev1alpha1.MachineDeployment{}, &machinev1alpha1.MachineSet{}} {
			if err := a.client.DeleteAllOf(ctx, kind, client.InNamespace(worker.Namespace)); err != nil {
				return fmt.Errorf("delete all %T: %w", kind, err)
			}
		}
		reason := fmt.Sprintf("%d machines, %d MachineSets and %d MachineDeployments are being deleted", left, len(sets.Items), len(existing))
		return &extension.Wait{Reason: reason, After: machinesAfter}
	}
	classes, err := a.deleteClasses(ctx, worker.Namespace, nil)
	if err != nil {
		return err
	}
	if classes > 0 {
		return &extension.Wait{Reason: fmt.Sprintf("%d MachineClasses are being deleted", classes), After: machinesAfter}
	}
	return a.removeManager(ctx, worker.Namespace)
}

// ForceDelete is the same as Delete, which does not wait for anything that runs on machines anyway.
func (a *workers) ForceDelete(ctx context.Context, worker *extensionsv1alpha1.Worker, cluster *extension.Cluster) error {
	return a.Delete(ctx, worker, cluster)
}

// abandon has machines go without regard to what runs on them: when all of them go, there is nowhere that their pods could move to, and
// disruption budgets would keep the last ones for hours. It returns how many are left.
func (a *workers) abandon(ctx context.Context, namespace string) (int, error) {
	left := &machinev1alpha1.MachineList{}
	if err := a.reader.List(ctx, left, client.InNamespace(namespace)); err != nil {
		return 0, fmt.Errorf("list Machines: %w", err)
	}
	for i := range left.Items {
		if err := kube.PatchMetadata(ctx, a.client, &left.Items[i], func(o *metav1.PartialObjectMetadata) {
			metav1.SetMetaDataLabel(&o.ObjectMeta, forceDeletionLabel, "True")
		}); client.IgnoreNotFound(err) != nil {
			return 0, err
		}
	}
	return len(left.Items), nil
}

// Migrate is refused: machines are pods in the namespace of the control plane, and would end with it.
func (a *workers) Migrate(context.Context, *extensionsv1alpha1.Worker, *extension.Cluster) error {
	return errorcode.With(errors.New("local machines belong to the seed that they run in, and cannot be taken to another"), corev1beta1.ErrorConfigurationProblem)
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

// publish writes the status, which the cluster-autoscaler is configured from.
func (a *workers) publish(worker *extensionsv1alpha1.Worker, all []machines, images []localv1alpha1.MachineImage) error {
	published := make([]extensionsv1alpha1.MachineDeployment, 0, len(all))
	for _, m := range all {
		published = append(published, m.published)
	}
	if !apiequality.Semantic.DeepEqual(published, worker.Status.MachineDeployments) {
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

// unwanted are the deployments that no part of a pool has, by name.
func unwanted(all []machines, existing map[string]*machinev1alpha1.MachineDeployment) []*machinev1alpha1.MachineDeployment {
	var out []*machinev1alpha1.MachineDeployment
	for _, name := range slices.Sorted(maps.Keys(existing)) {
		if !slices.ContainsFunc(all, func(m machines) bool { return m.deployment.Name == name }) {
			out = append(out, existing[name])
		}
	}
	return out
}

// judge returns what is to be waited for until there are the machines that are wanted, or which of them fail. Those that are not wanted
// any more wait, too.
func judge(all []machines, existing map[string]*machinev1alpha1.MachineDeployment, stale []*machinev1alpha1.MachineDeployment) error {
	var failed, waiting []string
	var codes []corev1beta1.ErrorCode
	for _, m := range all {
		deployment := existing[m.deployment.Name]
		switch {
		case deployment == nil:
			waiting = append(waiting, fmt.Sprintf("MachineDeployment %q is not there yet", m.deployment.Name))
			continue
		case deployment.DeletionTimestamp != nil: // it was not wanted for a while
			waiting = append(waiting, fmt.Sprintf("MachineDeployment %q is being deleted, and will be made anew", deployment.Name))
			continue
		}
		status, want := deployment.Status, deployment.Spec.Replicas
		observed := status.ObservedGeneration >= deployment.Generation
		for _, machine := range status.FailedMachines {
			failed = append(failed, fmt.Sprintf("machine %q: %s", machine.Name, machine.LastOperation.Description))
			// A machine that is replaced may have an error that was mended.
			if code, ok := codeOf(machine.LastOperation); ok && observed && status.UpdatedReplicas == status.Replicas {
				codes = append(codes, code)
			}
		}
		if !observed || status.UpdatedReplicas != want || status.Replicas != want || status.AvailableReplicas != want {
			waiting = append(waiting, fmt.Sprintf("%d of %d machines of %q are ready", min(status.UpdatedReplicas, status.AvailableReplicas), want, deployment.Name))
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
		return &extension.Wait{Reason: strings.Join(waiting, "; ") + after, After: machinesAfter}
	}
	return nil
}

// codeOf returns what users read of an error that the infrastructure gave when a machine was to be made or deleted.
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

// deleteClasses deletes the classes that no part of a pool has, with their Secrets, and returns how many were still there.
func (a *workers) deleteClasses(ctx context.Context, namespace string, wanted []machines) (int, error) {
	list := &machinev1alpha1.MachineClassList{}
	if err := a.reader.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return 0, fmt.Errorf("list MachineClasses: %w", err)
	}
	found := 0
	for i := range list.Items {
		class := &list.Items[i]
		if slices.ContainsFunc(wanted, func(m machines) bool { return m.class.Name == class.Name }) {
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

// unsettled tells whether deployments of a hibernated shoot need the machine-controller-manager: one has machines, was not looked at since
// it changed, or is being deleted. They do not count machines that are being deleted.
func unsettled(deployments map[string]*machinev1alpha1.MachineDeployment) bool {
	for _, d := range deployments {
		if d.DeletionTimestamp != nil || d.Spec.Replicas+d.Status.Replicas > 0 || d.Status.ObservedGeneration < d.Generation {
			return true
		}
	}
	return false
}

// deployManager deploys the machine-controller-manager. It rests until it has a token for the shoot, and when it is not needed.
func (a *workers) deployManager(ctx context.Context, namespace string, cluster *extension.Cluster, needed bool) error {
	kubeconfig := cluster.Annotations[extensionsv1alpha1.AnnotationGenericKubeconfigSecretName]
	if kubeconfig == "" {
		kubeconfig = constants.SecretNameGenericTokenKubeconfig
	}
	replicas := int32(0)
	if needed {
		replicas = 1
		if cluster.Shoot != nil && controlplanenamespace.FailureTolerance(cluster.Shoot) != "" {
			replicas = 2
		}
	}
	// A pod that has no token yet tries again after longer and longer breaks, so there is none before.
	token := &corev1.Secret{}
	err := a.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: shootaccess.SecretName(machinecontrollermanager.Name)}, token)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read the token of the machine-controller-manager: %w", err)
	}
	if len(token.Data[resourcesv1alpha1.DataKeyToken]) == 0 {
		replicas = 0
	}
	objects, err := machinecontrollermanager.Objects(machinecontrollermanager.Values{
		Namespace: namespace, Image: a.image, Replicas: replicas, Provider: localv1alpha1.MachineProvider, GenericKubeconfig: kubeconfig,
	})
	if err != nil {
		return fmt.Errorf("render machine-controller-manager: %w", err)
	}
	if err := applyManaged(ctx, a.client, namespace, machinecontrollermanager.ManagedResourceName, machinecontrollermanager.TargetObjects()...); err != nil {
		return err
	}
	if cluster.Seed != nil && workload.Autoscaled(cluster.Seed) {
		objects = append(objects, workload.Autoscalers(objects, func(string) workload.Autoscaling { return workload.Autoscaling{} })...)
	}
	return kube.Apply(ctx, a.client, Name, objects...)
}

// removeManager removes the machine-controller-manager, and what it may do in the shoot.
func (a *workers) removeManager(ctx context.Context, namespace string) error {
	objects, err := machinecontrollermanager.Objects(machinecontrollermanager.Values{Namespace: namespace})
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := a.client.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %T %q: %w", object, object.GetName(), err)
		}
	}
	// The shoot may have nobody who removes it any more, and goes soon.
	return dropManaged(ctx, a.client, namespace, machinecontrollermanager.ManagedResourceName)
}
