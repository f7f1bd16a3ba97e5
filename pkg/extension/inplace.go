package extension

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/pkg/kube"
)

// inPlaceHashLength is the length of a hash in status.inPlaceUpdates.workerPoolToHashMap.
const inPlaceHashLength = 16

// notReserved is how the library of the original writes a quantity that is not set in what it hashes.
const notReserved = "<nil>"

// InPlaceHash is a hash of what nodes of a pool are brought to by an update in place: the minor version of Kubernetes, the version of the machine image,
// the credentials, and the settings of the kubelet that need an empty node. The gardenlet compares it with the one that the extension has recorded when
// all nodes were updated, so an extension must use this function.
func InPlaceHash(pool, kubernetesVersion, imageVersion string, kubelet *corev1beta1.KubeletConfig, credentials *corev1beta1.ShootCredentials) (string, error) {
	return inPlaceHash(pool, kubernetesVersion, imageVersion, kubelet, credentials, "")
}

// InPlaceHashes are the hashes that an extension may have recorded for the same nodes: InPlaceHash, and that of extensions with the library of the original.
// They differ if something is reserved for Kubernetes, but not everything that can be, which is the rule.
func InPlaceHashes(
	pool, kubernetesVersion, imageVersion string, kubelet *corev1beta1.KubeletConfig, credentials *corev1beta1.ShootCredentials,
) ([]string, error) {
	var hashes []string
	for _, unset := range []string{"", notReserved} {
		hash, err := inPlaceHash(pool, kubernetesVersion, imageVersion, kubelet, credentials, unset)
		if err != nil {
			return nil, err
		}
		hashes = append(hashes, hash)
	}
	return hashes, nil
}

func inPlaceHash(
	pool, kubernetesVersion, imageVersion string, kubelet *corev1beta1.KubeletConfig, credentials *corev1beta1.ShootCredentials, unset string,
) (string, error) {
	version, err := semver.NewVersion(kubernetesVersion)
	if err != nil {
		return "", fmt.Errorf("Kubernetes version %q of pool %q: %w", kubernetesVersion, pool, err)
	}
	parts := []string{fmt.Sprintf("%d.%d", version.Major(), version.Minor()), imageVersion}
	if credentials != nil && credentials.Rotation != nil {
		if ca := credentials.Rotation.CertificateAuthorities; ca != nil {
			parts = append(parts, initiation(pool, ca.LastInitiationTime, ca.PendingWorkersRollouts)...)
		}
		if key := credentials.Rotation.ServiceAccountKey; key != nil {
			parts = append(parts, initiation(pool, key.LastInitiationTime, key.PendingWorkersRollouts)...)
		}
	}
	var hashes strings.Builder
	for _, part := range append(parts, kubeletFacts(kubelet, unset)...) {
		hashes.WriteString(sha256Hex(part))
	}
	return sha256Hex(hashes.String())[:inPlaceHashLength], nil
}

func sha256Hex(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// initiation is when the rotation began whose credentials the nodes of a pool have, nothing if there was none.
func initiation(pool string, last *metav1.Time, pending []corev1beta1.PendingWorkersRollout) []string {
	if i := slices.IndexFunc(pending, func(p corev1beta1.PendingWorkersRollout) bool { return p.Name == pool }); i >= 0 {
		last = pending[i].LastInitiationTime
	}
	if last == nil {
		return nil
	}
	return []string{last.UTC().String()}
}

// kubeletFacts are the settings of a kubelet that need an empty node. Quantities that are not reserved are written as unset.
func kubeletFacts(kubelet *corev1beta1.KubeletConfig, unset string) []string {
	if kubelet == nil {
		return nil
	}
	var parts []string
	if r := kubelet.KubeReserved; r != nil {
		var values []string
		for _, q := range []*resource.Quantity{r.CPU, r.Memory, r.PID, r.EphemeralStorage} {
			values = append(values, quantity(q, unset))
		}
		parts = append(parts, strings.Join(values, "-"))
	}
	if e := kubelet.EvictionHard; e != nil {
		var values []string
		for _, value := range []*string{e.ImageFSAvailable, e.ImageFSInodesFree, e.MemoryAvailable, e.NodeFSAvailable, e.NodeFSInodesFree} {
			values = append(values, ptr.Deref(value, ""))
		}
		parts = append(parts, strings.Join(values, "-"))
	}
	if policy := kubelet.CPUManagerPolicy; policy != nil {
		parts = append(parts, *policy)
	}
	return parts
}

func quantity(q *resource.Quantity, unset string) string {
	if q == nil {
		return unset
	}
	return q.String()
}

// inPlaceHashOf is InPlaceHash of a pool of a Worker.
func inPlaceHashOf(pool *extensionsv1alpha1.WorkerPool, cluster *Cluster) (string, error) {
	version, image := ptr.Deref(pool.KubernetesVersion, ""), ""
	var credentials *corev1beta1.ShootCredentials
	if cluster != nil && cluster.Shoot != nil {
		credentials = cluster.Shoot.Status.Credentials
		if version == "" {
			version = cluster.Shoot.Spec.Kubernetes.Version
		}
	}
	if pool.MachineImage != nil {
		image = pool.MachineImage.Version
	}
	return InPlaceHash(pool.Name, version, image, pool.KubeletConfig, credentials)
}

// UpdateStrategy is the strategy of the MachineDeployments of a pool, given the share of its limits that each has.
func UpdateStrategy(pool *extensionsv1alpha1.WorkerPool, surge, unavailable intstr.IntOrString) machinev1alpha1.MachineDeploymentStrategy {
	limits := machinev1alpha1.UpdateConfiguration{MaxSurge: &surge, MaxUnavailable: &unavailable}
	if !pool.UpdateStrategy.InPlace() {
		return machinev1alpha1.MachineDeploymentStrategy{
			Type:          machinev1alpha1.RollingUpdateMachineDeploymentStrategyType,
			RollingUpdate: &machinev1alpha1.RollingUpdateMachineDeployment{UpdateConfiguration: limits},
		}
	}
	update := &machinev1alpha1.InPlaceUpdateMachineDeployment{UpdateConfiguration: limits, OrchestrationType: machinev1alpha1.OrchestrationTypeAuto}
	if *pool.UpdateStrategy == corev1beta1.ManualInPlaceUpdate {
		update.OrchestrationType = machinev1alpha1.OrchestrationTypeManual
		zero := intstr.FromInt32(0) // the user decides how many are updated at a time
		update.UpdateConfiguration = machinev1alpha1.UpdateConfiguration{MaxSurge: &zero, MaxUnavailable: &zero}
	}
	return machinev1alpha1.MachineDeploymentStrategy{Type: machinev1alpha1.InPlaceUpdateMachineDeploymentStrategyType, InPlaceUpdate: update}
}

// WaitsForSelection reports whether machines of a deployment are updated only when the user selects their nodes, so that a Worker is ready before.
func WaitsForSelection(deployment *machinev1alpha1.MachineDeployment) bool {
	update := deployment.Spec.Strategy.InPlaceUpdate
	return update != nil && update.OrchestrationType == machinev1alpha1.OrchestrationTypeManual
}

// AnnotationInPlaceHash on a MachineDeployment is InPlaceHash of the pool that its template was rendered from.
const AnnotationInPlaceHash = "worker.gardener.cloud/in-place-update-hash"

// DeploymentAnnotations are the annotations of the MachineDeployments of a pool: settings of the cluster-autoscaler, and for pools that are updated in
// place the hash. That and the class change with the credentials in the Cluster, which may be newer than the last request of the gardenlet: while an
// actuator repeats an operation by itself, it keeps both, as nodes cannot get these credentials yet.
func DeploymentAnnotations(pool *extensionsv1alpha1.WorkerPool, cluster *Cluster) (map[string]string, error) {
	annotations := AutoscalerAnnotations(pool.ClusterAutoscaler)
	if !pool.UpdateStrategy.InPlace() {
		return annotations, nil
	}
	hash, err := inPlaceHashOf(pool, cluster)
	if err != nil {
		return nil, err
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[AnnotationInPlaceHash] = hash
	return annotations, nil
}

// inPlaceStatus returns the hashes of the pools of a Worker that are updated in place: those of MachineDeployments whose machines are updated, or the
// ones from before. While a pool is brought to another hash, it has none: if the change is taken back, some machines have it already.
func inPlaceStatus(worker *extensionsv1alpha1.Worker, deployments []machinev1alpha1.MachineDeployment) *extensionsv1alpha1.InPlaceUpdatesWorkerStatus {
	hashes := map[string]string{}
	for i := range worker.Spec.Pools {
		pool := &worker.Spec.Pools[i]
		if !pool.UpdateStrategy.InPlace() {
			continue
		}
		hash, before, same, changes := "", "", true, false
		if reported := worker.Status.InPlaceUpdates; reported != nil {
			before = reported.WorkerPoolToHashMap[pool.Name]
		}
		for i := range deployments {
			d := &deployments[i]
			if d.Labels[constants.WorkerPool] != pool.Name {
				continue
			}
			desired := d.Annotations[AnnotationInPlaceHash]
			same = same && updated(d) && (hash == "" || hash == desired)
			changes = changes || desired != "" && desired != before
			hash = desired
		}
		switch {
		case same && hash != "":
			hashes[pool.Name] = hash
		case before != "" && !changes:
			hashes[pool.Name] = before
		}
	}
	if len(hashes) == 0 {
		return nil
	}
	return &extensionsv1alpha1.InPlaceUpdatesWorkerStatus{WorkerPoolToHashMap: hashes}
}

// updated reports whether all machines of a deployment have its template. Those that the user selects count before their nodes are available, and failed
// ones that are kept for inspection, too.
func updated(d *machinev1alpha1.MachineDeployment) bool {
	status := d.Status
	if d.Spec.Replicas+status.Replicas == 0 {
		return true
	}
	return d.DeletionTimestamp == nil && status.ObservedGeneration >= d.Generation && status.UpdatedReplicas >= d.Spec.Replicas &&
		(WaitsForSelection(d) || status.Replicas == d.Spec.Replicas && status.AvailableReplicas+status.PreservedFailedReplicas >= d.Spec.Replicas)
}

// AddInPlaceStatus adds a controller that writes status.inPlaceUpdates of Workers of some types, when all machines of a pool are updated. The user may
// select them long after a Worker was reconciled, so the actuator cannot do it. It reads MachineDeployments, which need DeploymentAnnotations.
func AddInPlaceStatus(mgr manager.Manager, name string, types []string) error {
	c := mgr.GetClient()
	reconcileWorker := func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		worker := &extensionsv1alpha1.Worker{}
		if err := c.Get(ctx, request.NamespacedName, worker); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		if worker.DeletionTimestamp != nil || !slices.Contains(types, worker.Spec.Type) {
			return reconcile.Result{}, nil
		}
		deployments := &machinev1alpha1.MachineDeploymentList{}
		if err := c.List(ctx, deployments, client.InNamespace(worker.Namespace)); err != nil {
			return reconcile.Result{}, fmt.Errorf("list MachineDeployments: %w", err)
		}
		before := worker.DeepCopy()
		worker.Status.InPlaceUpdates = inPlaceStatus(worker, deployments.Items)
		if apiequality.Semantic.DeepEqual(before.Status, worker.Status) {
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, client.IgnoreNotFound(c.Status().Patch(ctx, worker, client.MergeFrom(before)))
	}
	return builder.ControllerManagedBy(mgr).Named("worker-in-place-updates-"+name).
		For(&extensionsv1alpha1.Worker{}, builder.WithPredicates(inPlaceChanged())).
		Watches(&machinev1alpha1.MachineDeployment{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, deployment client.Object) []reconcile.Request {
			workers := &extensionsv1alpha1.WorkerList{}
			if err := c.List(ctx, workers, client.InNamespace(deployment.GetNamespace())); err != nil {
				return nil // the cache has not started; each Worker is reconciled when it has
			}
			var requests []reconcile.Request
			for i := range workers.Items {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&workers.Items[i])})
			}
			return requests
		})).
		Complete(reconcile.Func(reconcileWorker))
}

// inPlaceChanged passes changes of the spec, as a pool may be removed, or get another strategy, and of what is written here: hashes that were decided by an
// old cache are corrected.
func inPlaceChanged() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, kube.StatusChanged(func(w *extensionsv1alpha1.Worker) any { return w.Status.InPlaceUpdates }))
}
