// Package systemcomponents is the stage for what a cluster needs to host control planes: CRDs, PriorityClasses, and the components in namespace
// garden. A seed has them, and the runtime cluster of a garden: where a cluster is both, gardener-operator deploys them.
package systemcomponents

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podsecurityapi "k8s.io/pod-security-admission/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/imagevector"
	"gardener.cloud/gardener/internal/component/crds"
	"gardener.cloud/gardener/internal/component/resourcemanager"
	"gardener.cloud/gardener/internal/component/verticalpodautoscaler"
	"gardener.cloud/gardener/internal/component/workload"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/pkg/flow"
)

// waitTimeout is the end of a task that waits. An image that is not on the node yet takes most of it.
const waitTimeout = 2 * time.Minute

// Images are references of images.
type Images struct {
	// Gardener is the image of all components of Gardener.
	Gardener string
	// Etcd is the image of etcd.
	Etcd string
	// HAProxy is the image of the proxy in the gateway.
	HAProxy string
	// Pause is the image of a container that does nothing.
	Pause string
	// Autoscaler are those of the Vertical Pod Autoscaler.
	Autoscaler verticalpodautoscaler.Images
}

// FindImages returns the images of a vector. Those of Gardener have the tag of a version if they have none.
func FindImages(vector imagevector.Vector, version string) (Images, error) {
	images := Images{}
	for name, image := range map[string]*string{
		"gardener": &images.Gardener, "etcd": &images.Etcd, "haproxy": &images.HAProxy, "pause": &images.Pause,
		verticalpodautoscaler.Recommender: &images.Autoscaler.Recommender, verticalpodautoscaler.Updater: &images.Autoscaler.Updater,
		verticalpodautoscaler.AdmissionController: &images.Autoscaler.AdmissionController,
	} {
		found, err := vector.Find(name, imagevector.Query{})
		if err != nil {
			return Images{}, err
		}
		*image = found.WithDefaultTag(version).String()
	}
	return images, nil
}

// LoadBalancer are the settings of the gateway's Service, and the labels of the pods behind it.
type LoadBalancer struct {
	Annotations           map[string]string
	Class                 *string
	ExternalTrafficPolicy corev1.ServiceExternalTrafficPolicy
	// ProxyProtocol is whether load balancers may send the address of the client with the PROXY protocol.
	ProxyProtocol bool
	// IP is the address that the load balancer is to have. It may be nil.
	IP *string
	// PodLabels are further labels of the pods.
	PodLabels map[string]string
}

// Certificates are what the Vertical Pod Autoscaler has for its webhook.
type Certificates struct {
	// CABundle has the CA certificates, as PEM.
	CABundle []byte
	// Autoscaler is the name of the Secret with the server certificate of vpa-admission-controller.
	Autoscaler string
}

// Inputs are what the tasks read.
type Inputs struct {
	// API is the cluster. Its reads are fresh.
	API client.WithWatch
	// FieldManager is the one of server-side apply.
	FieldManager string
	// Images are those of the components.
	Images Images
	// Replicas is the number of pods of each component.
	Replicas int32
	// NamespaceMetadata has further labels and the annotations of namespace garden.
	NamespaceMetadata metav1.ObjectMeta
	// PriorityClasses are those of everything that runs in the cluster.
	PriorityClasses []client.Object
	// Certificates creates the certificates, or reads those that a task of the flow has created. Afterwards is when.
	Certificates func(ctx context.Context) (Certificates, error)
	Afterwards   []string
	// ResourceManager returns the values of gardener-resource-manager, when the certificates are there.
	ResourceManager func() (resourcemanager.Values, error)
	// LoadBalancer are the settings of the gateway.
	LoadBalancer LoadBalancer
	// TerminateTLS is whether the gateway ends connections of kube-apiservers, and a webhook sends pods of control planes there, too.
	TerminateTLS bool
	// Autoscaler configures the Vertical Pod Autoscaler. Nil means that there is none.
	Autoscaler *corev1beta1.VerticalPodAutoscaler
	// EtcdWorkers is how many Etcds etcd-druid reconciles at the same time. Zero means the default.
	EtcdWorkers  int
	certificates Certificates
}

// Tasks returns the tasks that deploy everything. All objects of the cluster may come after the task namespace, those of kinds of Gardener after
// the task for their CRDs, and pods of control planes after resource-manager-webhooks.
func Tasks(in *Inputs) []flow.Task {
	tasks := []flow.Task{
		flow.Do("namespace", "Creating namespace garden", in.createNamespace),
		flow.Do("priority-classes", "Deploying PriorityClasses", func(ctx context.Context) error { return in.apply(ctx, in.PriorityClasses...) }),
		flow.Do("certificates", "Creating the CA and the server certificates of system components", func(ctx context.Context) (err error) {
			in.certificates, err = in.Certificates(ctx)
			return err
		}, append([]string{"namespace"}, in.Afterwards...)...),
		flow.Do("crds-extensions", "Deploying CRDs for extensions", in.deployCRDs(crds.Extensions)),
		flow.Do("crds-resources", "Deploying CRDs for gardener-resource-manager", in.deployCRDs(crds.Resources)),
		flow.Do("crds-druid", "Deploying CRDs for etcd-druid", in.deployCRDs(crds.Druid)),
		flow.Do("crds-machine", "Deploying CRDs for machine-controller-manager", in.deployCRDs(crds.Machine)),
		flow.Do("crds-gateway", "Deploying CRDs of the Gateway API", in.deployCRDs(crds.Gateway)),
		flow.Do("crds-foreign", "Deploying CRDs of other projects that extensions create objects of", in.deployForeignCRDs),
		flow.Do("gateway", "Deploying the gateway", in.deployGateway, "crds-gateway", "priority-classes").IfPresent("crds-vpa"),
		flow.Do("etcd-druid", "Deploying etcd-druid", in.deployEtcdDruid, "namespace", "crds-druid", "priority-classes").IfPresent("crds-vpa"),
		flow.Await(waitTimeout, "etcd-druid-ready", "Waiting until etcd-druid is ready", in.awaitEtcdDruid, "etcd-druid"),
		flow.Do("resource-manager", "Deploying gardener-resource-manager", in.deployResourceManager,
			"certificates", "crds-resources", "priority-classes").IfPresent("crds-vpa"),
		flow.Await(waitTimeout, "resource-manager-ready", "Waiting until gardener-resource-manager is ready", in.awaitResourceManager, "resource-manager"),
		// While no pod answers webhooks, the API server rejects the objects that they select: the other components come first.
		flow.Do("resource-manager-webhooks", "Deploying the webhooks of gardener-resource-manager", in.deployResourceManagerWebhooks,
			"resource-manager-ready", "etcd-druid", "gateway"),
	}
	if in.Autoscaler == nil {
		tasks = append(tasks, in.deleteVPATasks()...) // it may have been there before
		return append(tasks, flow.Do("crds-vpa", "Deploying missing CRDs for a Vertical Pod Autoscaler", func(ctx context.Context) error {
			return DeployMissingAutoscalerCRDs(ctx, in.API, in.FieldManager)
		}))
	}
	return append(tasks,
		flow.Do("crds-vpa", "Deploying CRDs for the Vertical Pod Autoscaler", in.deployCRDs(crds.VerticalPodAutoscaler)),
		flow.Do("vpa", "Deploying the Vertical Pod Autoscaler", in.deployVPA, "certificates", "crds-vpa", "priority-classes"))
}

// Deletion returns the tasks that delete the components. CRDs stay: other components may use them.
func Deletion(in *Inputs, after ...string) []flow.Task {
	return append(in.deleteVPATasks(after...),
		flow.Do("etcd-druid", "Deleting etcd-druid", in.deleteEtcdDruid, after...),
		flow.Do("resource-manager", "Deleting gardener-resource-manager", in.deleteResourceManager, after...),
		flow.Do("gateway", "Deleting the gateway", in.deleteGateway, after...),
	)
}

// forDeletion returns inputs whose components have all objects that they may have had: those that only several replicas have too.
func (in *Inputs) forDeletion() *Inputs {
	all := *in
	all.Replicas, all.certificates = 2, Certificates{Autoscaler: "any"}
	all.ResourceManager = func() (resourcemanager.Values, error) {
		return resourcemanager.Values{Namespace: constants.GardenNamespace, Replicas: all.Replicas, Config: resourcemanager.ForSeed(), ServerSecret: "any"}, nil
	}
	return &all
}

func (in *Inputs) createNamespace(ctx context.Context) error {
	return in.apply(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: constants.GardenNamespace, Annotations: in.NamespaceMetadata.Annotations, Labels: workload.Merge(map[string]string{
			constants.GardenRole: constants.GardenRoleGarden, podsecurityapi.EnforceLevelLabel: string(podsecurityapi.LevelPrivileged),
		}, in.NamespaceMetadata.Labels),
	}})
}

// deployCRDs returns what a task runs to apply CRDs and to wait until they are served.
func (in *Inputs) deployCRDs(read func() ([]*apiextensionsv1.CustomResourceDefinition, error)) func(context.Context) error {
	return func(ctx context.Context) error {
		definitions, err := read()
		if err != nil {
			return err
		}
		return crds.Deploy(ctx, in.API, in.FieldManager, definitions...)
	}
}

func (in *Inputs) apply(ctx context.Context, objects ...client.Object) error {
	return kube.Apply(ctx, in.API, in.FieldManager, objects...)
}

// deploy applies a component, with VerticalPodAutoscalers if the cluster has the Vertical Pod Autoscaler.
func (in *Inputs) deploy(ctx context.Context, objects ...client.Object) error {
	if in.Autoscaler != nil {
		objects = append(objects, workload.Autoscalers(objects, func(string) workload.Autoscaling { return workload.Autoscaling{} })...)
	}
	return in.apply(ctx, objects...)
}

// destroy deletes the objects of a component, in the reverse order.
func (in *Inputs) destroy(ctx context.Context, objects ...client.Object) error {
	for _, object := range slices.Backward(objects) {
		// A deletion may come before the CRDs of an object.
		if err := in.API.Delete(ctx, object); client.IgnoreNotFound(err) != nil && !meta.IsNoMatchError(err) {
			return fmt.Errorf("delete %T %q: %w", object, client.ObjectKeyFromObject(object), err)
		}
	}
	return nil
}

// awaitDeployment waits until a Deployment in the namespace garden is rolled out and healthy.
func (in *Inputs) awaitDeployment(ctx context.Context, name string) error {
	return kube.Await(ctx, in.API, &appsv1.DeploymentList{}, func(found []*appsv1.Deployment) error {
		if len(found) == 0 {
			return fmt.Errorf("Deployment %s/%s not found", constants.GardenNamespace, name)
		}
		return errors.Join(kube.RolledOut(found[0]), kube.Healthy(found[0]))
	}, nil, client.InNamespace(constants.GardenNamespace), client.MatchingFields{metav1.ObjectNameField: name})
}
