package landscape

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podsecurityapi "k8s.io/pod-security-admission/api"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/charts"
	"gardener.cloud/gardener/internal/component/localstorage"
	"gardener.cloud/gardener/landscape/addon"
)

// providerExtension pushes the chart of provider-local, and returns the Extension with which gardener-operator installs it in the runtime cluster, for
// the garden itself, and registers it in the virtual garden, for seeds.
func (u *upRun) providerExtension(ctx context.Context) (*operatorv1alpha1.Extension, error) {
	reference, err := u.pushChart(ctx, charts.ProviderLocal)
	if err != nil {
		return nil, err
	}
	admission, err := u.providerAdmission(ctx)
	if err != nil {
		return nil, err
	}
	dns, runtimeDNS := localDNSValues(u.state.Clusters, u.state.Hosts > 0)
	values, err := u.providerValues(dns)
	if err != nil {
		return nil, err
	}
	runtimeValues, err := json.Marshal(map[string]any{"image": u.image, "dns": runtimeDNS, "replicas": providerReplicas(u.state.Clusters)})
	extension := extensionOf(charts.ProviderLocal, reference, providerResources(), values, &apiextensionsv1.JSON{Raw: runtimeValues})
	extension.Spec.Deployment.Admission = admission
	// Buckets are directories of the node.
	extension.Annotations = map[string]string{constants.PodSecurityEnforce: string(podsecurityapi.LevelPrivileged)}
	return extension, err
}

// providerAdmission pushes the charts of the admission controller of provider-local, and returns what the Extension says of it.
func (u *upRun) providerAdmission(ctx context.Context) (*operatorv1alpha1.AdmissionDeploymentSpec, error) {
	runtimeChart, err := u.pushChart(ctx, charts.ProviderLocalAdmissionRuntime)
	if err != nil {
		return nil, err
	}
	virtualChart, err := u.pushChart(ctx, charts.ProviderLocalAdmissionApplication)
	if err != nil {
		return nil, err
	}
	return admissionOf(runtimeChart, virtualChart, u.image, u.state.Clusters[0].replicas())
}

// admissionOf is the admission controller of an Extension, given the references of its charts.
func admissionOf(runtimeChart, virtualChart, image string, replicas int32) (*operatorv1alpha1.AdmissionDeploymentSpec, error) {
	values, err := json.Marshal(map[string]any{"image": image, "replicas": replicas})
	return &operatorv1alpha1.AdmissionDeploymentSpec{
		RuntimeCluster: &operatorv1alpha1.DeploymentSpec{Helm: &operatorv1alpha1.ExtensionHelm{OCIRepository: &gardencorev1.OCIRepository{Ref: &runtimeChart}}},
		VirtualCluster: &operatorv1alpha1.DeploymentSpec{Helm: &operatorv1alpha1.ExtensionHelm{OCIRepository: &gardencorev1.OCIRepository{Ref: &virtualChart}}},
		Values:         &apiextensionsv1.JSON{Raw: values},
	}, err
}

// extensionOf is an Extension, given the reference of its chart, and the values for seeds and for the runtime cluster.
func extensionOf(
	name, chart string, resources []corev1beta1.ControllerResource, values, runtimeValues *apiextensionsv1.JSON,
) *operatorv1alpha1.Extension {
	return &operatorv1alpha1.Extension{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: operatorv1alpha1.ExtensionSpec{
			Resources: resources,
			Deployment: &operatorv1alpha1.Deployment{Extension: &operatorv1alpha1.ExtensionDeploymentSpec{
				DeploymentSpec: operatorv1alpha1.DeploymentSpec{Helm: &operatorv1alpha1.ExtensionHelm{
					OCIRepository: &gardencorev1.OCIRepository{Ref: &chart},
				}},
				Values: values, RuntimeClusterValues: runtimeValues,
				// They do not use the garden, and would have its credentials by default.
				InjectGardenKubeconfig: new(false),
			}},
		},
	}
}

// providerValues are the values of provider-local's chart for seeds.
func (u *upRun) providerValues(dns map[string]any) (*apiextensionsv1.JSON, error) {
	images, err := u.artifacts.deployedImages(u.images, "flannel", "crun", localstorage.Name)
	if err != nil {
		return nil, err
	}
	images["localStorage"] = images[localstorage.Name]
	delete(images, localstorage.Name)
	raw, err := json.Marshal(map[string]any{
		"image":    u.image,
		"dns":      dns,
		"replicas": providerReplicas(u.state.Clusters),
		"machines": u.machines(),
		"images":   images,
	})
	return &apiextensionsv1.JSON{Raw: raw}, err
}

// machines are the values of provider-local's chart for machines. They are the same for all seeds.
func (u *upRun) machines() map[string]any {
	values := map[string]any{"registries": u.machineRegistries()}
	if !slices.ContainsFunc(seedClusters(u.state.Clusters), func(c Cluster) bool { return !c.DualStack }) {
		values["ipv6Network"] = machineNetworkIPv6.String()
	}
	return values
}

// providerReplicas is how many pods of provider-local each seed has, whose Extension is the same for all of them. They serve the names of shoots.
func providerReplicas(clusters []Cluster) int32 {
	replicas := int32(1)
	for _, cluster := range seedClusters(clusters) {
		replicas = max(replicas, cluster.replicas())
	}
	return replicas
}

// providerResources are the kinds and types that provider-local is responsible for.
func providerResources() []corev1beta1.ControllerResource {
	var resources []corev1beta1.ControllerResource
	for _, kind := range []string{
		"BackupBucket", "BackupEntry", "Bastion", "ControlPlane", "DNSRecord", "Infrastructure", "OperatingSystemConfig", "SelfHostedShootExposure", "Worker",
	} {
		resources = append(resources, corev1beta1.ControllerResource{Kind: kind, Type: providerType})
	}
	return append(resources,
		corev1beta1.ControllerResource{Kind: "Network", Type: "flannel"},
		corev1beta1.ControllerResource{Kind: "ContainerRuntime", Type: "crun"},
		corev1beta1.ControllerResource{
			Kind: "Extension", Type: "local-ext-seed", WorkerlessSupported: new(true),
			ClusterCompatibility: []corev1beta1.ClusterType{corev1beta1.ClusterTypeShoot, corev1beta1.ClusterTypeSeed},
			Lifecycle: &corev1beta1.ControllerResourceLifecycle{
				Reconcile: new(corev1beta1.BeforeKubeAPIServer), Delete: new(corev1beta1.AfterKubeAPIServer), Migrate: new(corev1beta1.AfterKubeAPIServer),
			},
		},
		corev1beta1.ControllerResource{Kind: "Extension", Type: "local-ext-shoot", WorkerlessSupported: new(true)},
		corev1beta1.ControllerResource{
			Kind: "Extension", Type: "local-ext-shoot-after-worker", Lifecycle: &corev1beta1.ControllerResourceLifecycle{Reconcile: new(corev1beta1.AfterWorker)},
		},
	)
}

// credentials are those for the zones and the buckets of the landscape, which take any.
func credentials(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: name}, Type: corev1.SecretTypeOpaque}
}

// defaultDomain is the domain in which shoots without a domain of their own have a name.
func (u *upRun) defaultDomain() *corev1.Secret {
	secret := credentials(defaultDomainSecret)
	secret.Labels = map[string]string{constants.GardenRole: constants.GardenRoleDefaultDomain}
	secret.Annotations = map[string]string{constants.DNSProvider: providerType, constants.DNSDomain: "external." + u.domain()}
	return secret
}

// localDNSValues say where the DNS server of each seed listens, and that of the garden itself, which has the address and the port in the runtime
// cluster: two Services cannot share them, so it serves the names of the seed there too. Others reach them only if there are several seeds, or hosts.
func localDNSValues(clusters []Cluster, hosts bool) (seeds, garden map[string]any) {
	seeds = map[string]any{"servedByGarden": []string{seedName}, "zones": []string{addon.LocalZone}}
	if hosts || len(seedClusters(clusters)) > 1 {
		seeds["nodePort"] = localDNSNodePort
	}
	garden = maps.Clone(seeds)
	delete(garden, "servedByGarden")
	addresses := map[string]any{}
	for _, cluster := range seedClusters(clusters) {
		if cluster.Name == RuntimeCluster {
			garden["clusterIP"] = cluster.localDNS().String()
			continue
		}
		addresses[cluster.seed()] = cluster.localDNS().String()
	}
	seeds["clusterIPs"] = addresses
	return seeds, garden
}
