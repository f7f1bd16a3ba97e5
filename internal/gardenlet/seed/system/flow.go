package system

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podsecurityapi "k8s.io/pod-security-admission/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/component/crds"
	"gardener.cloud/gardener/internal/component/priorityclass"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/flow"
)

// waitTimeout is the end of a task that waits. An image that is not on the node yet takes most of it.
const waitTimeout = 2 * time.Minute

// newFlow returns the flow that makes a cluster a seed.
func (r *reconciler) newFlow(seed *corev1beta1.Seed, e extensions) (*flow.Flow, error) {
	s := r.newRun(seed)
	tasks := []flow.Task{
		flow.Do("namespace", "Creating namespace garden", s.createNamespace),
		flow.Do("priority-classes", "Deploying PriorityClasses", s.deployPriorityClasses),
		flow.Do("cluster-identity", "Creating the cluster identity of the seed", s.createIdentity),
		flow.Do("certificates", "Creating the CA and the server certificates of the seed", s.createCertificates, "namespace"),
		flow.Do("crds-extensions", "Deploying CRDs for extensions", s.deployCRDs(crds.Extensions)),
		flow.Do("crds-resources", "Deploying CRDs for gardener-resource-manager", s.deployCRDs(crds.Resources)),
		flow.Do("crds-druid", "Deploying CRDs for etcd-druid", s.deployCRDs(crds.Druid)),
		flow.Do("crds-machine", "Deploying CRDs for machine-controller-manager", s.deployCRDs(crds.Machine)),
		flow.Do("crds-gateway", "Deploying CRDs of the Gateway API", s.deployCRDs(crds.Gateway)),
		flow.Do("gateway", "Deploying the gateway", s.deployGateway, "crds-gateway", "priority-classes").IfPresent("crds-vpa"),
		flow.Do("etcd-druid", "Deploying etcd-druid", s.deployEtcdDruid, "namespace", "crds-druid", "priority-classes").IfPresent("crds-vpa"),
		flow.Await(waitTimeout, "etcd-druid-ready", "Waiting until etcd-druid is ready", s.awaitEtcdDruid, "etcd-druid"),
		flow.Do("resource-manager", "Deploying gardener-resource-manager", s.deployResourceManager,
			"certificates", "crds-resources", "priority-classes").IfPresent("crds-vpa"),
		flow.Await(waitTimeout, "resource-manager-ready", "Waiting until gardener-resource-manager is ready", s.awaitResourceManager, "resource-manager"),
		// While no pod answers webhooks, the API server rejects the objects that they select: the other components come first.
		flow.Do("resource-manager-webhooks", "Deploying the webhooks of gardener-resource-manager", s.deployResourceManagerWebhooks,
			"resource-manager-ready", "etcd-druid", "gateway"),
		flow.Do("secrets-cleanup", "Deleting unused Secrets with certificates", s.deleteUnusedSecrets, "resource-manager-webhooks").IfPresent("vpa"),
	}
	if workload.Autoscaled(seed) {
		tasks = append(tasks,
			flow.Do("crds-vpa", "Deploying CRDs for the Vertical Pod Autoscaler", s.deployCRDs(crds.VerticalPodAutoscaler)),
			flow.Do("vpa", "Deploying the Vertical Pod Autoscaler", s.deployVPA, "certificates", "crds-vpa", "priority-classes"))
	} else {
		tasks = append(tasks, s.deleteVPATasks()...) // the setting may have been on before
	}
	if seed.Spec.Backup != nil {
		tasks = append(tasks, flow.Do("backup-bucket", "Creating the BackupBucket", s.createBackupBucket))
	}
	return flow.New("Seed reconciliation", append(tasks, s.extensionTasks(e)...)...)
}

// newDeletion returns the flow that deletes what newFlow has deployed, after newExtensionDeletion. CRDs stay: other components may use them.
func (r *reconciler) newDeletion(seed *corev1beta1.Seed) (*flow.Flow, error) {
	s := r.newRun(seed)
	return flow.New("Seed deletion", append(s.deleteVPATasks(),
		flow.Do("etcd-druid", "Deleting etcd-druid", s.deleteEtcdDruid),
		flow.Do("resource-manager", "Deleting gardener-resource-manager", s.deleteResourceManager),
		flow.Do("gateway", "Deleting the gateway", s.deleteGateway),
		flow.Do("cluster-identity", "Deleting the cluster identity of the seed", s.deleteIdentity),
	)...)
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

// forDeletion returns a run whose components have all objects that a Seed may have had: those that only several replicas have too.
func (s *run) forDeletion() *run {
	return &run{reconciler: s.reconciler, seed: s.seed, replicas: 2, certificates: certificates{resourceManager: "any", vpa: "any"}}
}

func (s *run) createNamespace(ctx context.Context) error {
	return s.apply(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: constants.GardenNamespace, Labels: map[string]string{
			constants.GardenRole: constants.GardenRoleGarden, podsecurityapi.EnforceLevelLabel: string(podsecurityapi.LevelPrivileged),
		},
	}})
}

func (s *run) deployPriorityClasses(ctx context.Context) error {
	return s.apply(ctx, priorityclass.Seed()...)
}

func (r *reconciler) apply(ctx context.Context, objects ...client.Object) error {
	return kube.Apply(ctx, r.SeedAPI, fieldManager, objects...)
}

// deploy applies a component, with VerticalPodAutoscalers if the seed has the Vertical Pod Autoscaler.
func (s *run) deploy(ctx context.Context, objects ...client.Object) error {
	if workload.Autoscaled(s.seed) {
		objects = append(objects, workload.Autoscalers(objects, func(string) workload.Autoscaling { return workload.Autoscaling{} })...)
	}
	return s.apply(ctx, objects...)
}

// destroy deletes the objects of a component, in the reverse order.
func (r *reconciler) destroy(ctx context.Context, objects ...client.Object) error {
	for _, object := range slices.Backward(objects) {
		if err := r.SeedAPI.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete %T %q: %w", object, client.ObjectKeyFromObject(object), err)
		}
	}
	return nil
}
