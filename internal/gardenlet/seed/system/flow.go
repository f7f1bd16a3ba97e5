package system

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/component/priorityclass"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/stage/systemcomponents"
	"gardener.cloud/gardener/pkg/flow"
)

// waitTimeout is the end of a task that waits.
const waitTimeout = 2 * time.Minute

// newFlow returns the flow that makes a cluster a seed. Where a garden runs in it, gardener-operator deploys the system components.
func (r *reconciler) newFlow(seed *corev1beta1.Seed, e extensions, hostsGarden bool) (*flow.Flow, error) {
	s := r.newRun(seed)
	tasks := []flow.Task{flow.Do("cluster-identity", "Creating the cluster identity of the seed", s.createIdentity)}
	if hostsGarden {
		tasks = append(tasks, flow.Do("priority-classes", "Deploying PriorityClasses", func(ctx context.Context) error {
			return s.apply(ctx, priorityclass.Seed()...)
		}))
	} else {
		tasks = append(tasks, systemcomponents.Tasks(s.systemComponents())...)
		tasks = append(tasks, flow.Do("secrets-cleanup", "Deleting unused Secrets with certificates", s.deleteUnusedSecrets, "resource-manager-webhooks").IfPresent("vpa"))
	}
	tasks = append(tasks, flow.Do("excess-capacity", "Reserving capacity for new control planes", s.reserveExcessCapacity, "priority-classes").IfPresent("namespace"))
	tasks = append(tasks, flow.Do("further-gateways", "Deploying gateways for zones and for handlers of ExposureClasses", s.deployGateways, "priority-classes").
		IfPresent("gateway", "crds-vpa"))
	tasks = append(tasks, flow.Do("dependency-watchdog", "Deploying dependency-watchdog", s.deployDependencyWatchdog, "priority-classes").
		IfPresent("namespace", "crds-extensions", "crds-vpa"))
	if seed.Spec.Backup != nil {
		tasks = append(tasks, flow.Do("backup-bucket", "Creating the BackupBucket", s.createBackupBucket))
	}
	return flow.New("Seed reconciliation", append(tasks, s.extensionTasks(e)...)...)
}

// newDeletion returns the flow that deletes what newFlow has deployed, after newExtensionDeletion. CRDs stay: other components may use them.
func (r *reconciler) newDeletion(seed *corev1beta1.Seed, hostsGarden bool) (*flow.Flow, error) {
	s := r.newRun(seed)
	tasks := []flow.Task{
		flow.Do("cluster-identity", "Deleting the cluster identity of the seed", s.deleteIdentity),
		flow.Do("further-gateways", "Deleting gateways of zones and of handlers of ExposureClasses", s.deleteGateways),
		flow.Do("dependency-watchdog", "Deleting dependency-watchdog", s.deleteDependencyWatchdog),
		flow.Do("excess-capacity", "Releasing the capacity for new control planes", s.releaseExcessCapacity),
	}
	if !hostsGarden {
		tasks = append(tasks, systemcomponents.Deletion(s.systemComponents())...)
	}
	return flow.New("Seed deletion", tasks...)
}

// run is one run of a flow.
type run struct {
	*reconciler
	seed *corev1beta1.Seed
	// replicas is how many pods each component has.
	replicas int32
	// certificates is complete after the task of that name.
	certificates certificates
}

// newRun returns a run for a Seed. In a seed with several zones, each component has a second pod in another zone.
func (r *reconciler) newRun(seed *corev1beta1.Seed) *run {
	s := &run{reconciler: r, seed: seed, replicas: 1}
	if len(seed.Spec.Provider.Zones) > 1 {
		s.replicas = 2
	}
	return s
}

func (r *reconciler) apply(ctx context.Context, objects ...client.Object) error {
	return kube.Apply(ctx, r.SeedAPI, fieldManager, objects...)
}
