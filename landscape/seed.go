package landscape

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/semver"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/retry"
	podsecurityapi "k8s.io/pod-security-admission/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	localv1alpha1 "gardener.cloud/gardener/api/provider/local/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/charts"
	"gardener.cloud/gardener/example"
	"gardener.cloud/gardener/internal/component/gardenlet"
	"gardener.cloud/gardener/internal/component/gateway"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/kube/bootstraptoken"
	"gardener.cloud/gardener/landscape/addon"
)

const (
	// seedName is the first seed of every landscape, the runtime cluster. Further seeds are named local-2, local-3 and so on, like their
	// clusters.
	seedName = "local"
	// providerType is the provider type of everything on this computer.
	providerType = "local"
	// seedTimeout is how long a seed may take to become ready on a busy machine.
	seedTimeout = 5 * time.Minute
	// bootstrapLife is how long a gardenlet may take until it requests its certificate.
	bootstrapLife = time.Hour
	// domainSecret has the credentials for the zones that the landscape's resolver serves. It needs none.
	domainSecret = "dns-local"
	// backupSecret has the credentials for the buckets of the landscape. They need none.
	backupSecret = "backup-local"
	// defaultDomainSecret has the domain of shoots that do not have one of their own.
	defaultDomainSecret = "default-domain-local"
	// issuerSecret has the host of managed issuers of service account tokens. Shoots may have such an issuer if it exists.
	issuerSecret = "shoot-service-account-issuer"
	// localDNSNodePort is the port of every machine of a seed with the names of that seed's clusters, for the other seeds.
	localDNSNodePort = 30053
)

// seed is the name of the seed that the cluster is, empty if it is none.
func (c Cluster) seed() string {
	switch {
	case c.Name == RuntimeCluster:
		return seedName
	case c.Seed:
		return c.Name
	}
	return ""
}

// seedClusters are the clusters that are seeds.
func seedClusters(clusters []Cluster) []Cluster {
	return slices.DeleteFunc(slices.Clone(clusters), func(c Cluster) bool { return c.seed() == "" })
}

// clusterOfSeed returns the cluster that is the seed of the given name.
func (l *Landscape) clusterOfSeed(name string) (Cluster, error) {
	for _, cluster := range seedClusters(l.state.Clusters) {
		if cluster.seed() == name {
			return cluster, nil
		}
	}
	if name == "" {
		return Cluster{}, errors.New("it has no seed yet")
	}
	return Cluster{}, fmt.Errorf("its seed %q is no cluster of landscape %q", name, l.Name)
}

// bringUpSeed makes a cluster a seed of the garden, by deploying a gardenlet with a bootstrap token.
func (u *upRun) bringUpSeed(ctx context.Context, cluster Cluster) error {
	name := cluster.seed()
	return u.step(ctx, "Registering cluster "+cluster.Name+" as seed "+name, "", func(ctx context.Context, detail func(string)) error {
		ctx, cancel := context.WithTimeoutCause(ctx, seedTimeout, fmt.Errorf("not done after %s", seedTimeout))
		defer cancel()
		garden, err := u.Client(u.Garden())
		if err != nil {
			return err
		}
		c, err := u.Client(cluster.Name)
		if err != nil {
			return err
		}
		deploy := u.deployGardenlet
		if u.state.VirtualGarden {
			deploy = u.orderGardenlet
		}
		if err := deploy(ctx, garden, c, cluster); err != nil {
			return err
		}
		report := func(reason error) { detail(reason.Error()) }
		if err := kube.Await(ctx, garden, &corev1beta1.SeedList{}, func(seeds []*corev1beta1.Seed) error {
			index := slices.IndexFunc(seeds, func(s *corev1beta1.Seed) bool { return s.Name == name })
			if index < 0 {
				return errors.New("the gardenlet has not registered the Seed yet")
			}
			return seedReady(seeds[index])
		}, report); err != nil {
			return err
		}
		// These are deployed by the gardenlet.
		return kube.Await(ctx, c, &appsv1.DeploymentList{}, func(deployments []*appsv1.Deployment) error {
			for _, deployment := range deployments {
				if deployment.Namespace != constants.GardenNamespace && deployment.Namespace != gateway.Namespace {
					continue
				}
				if err := kube.DeploymentComplete(deployment); err != nil {
					return err
				}
			}
			return nil
		}, report)
	})
}

// deployGardenlet deploys a gardenlet with a bootstrap token.
func (u *upRun) deployGardenlet(ctx context.Context, garden, seed client.Client, cluster Cluster) error {
	bootstrap, err := u.bootstrapKubeconfig(ctx, garden, seed, cluster.seed())
	if err != nil {
		return err
	}
	objects, err := gardenlet.Objects(gardenlet.Values{
		Namespace: constants.GardenNamespace, Image: u.image, Replicas: 1, BootstrapKubeconfig: bootstrap,
		// What the gardenlet deploys uses the same image.
		ImageVectorOverwrite: "images:\n- name: gardener\n  ref: " + u.image + "\n",
		Config:               gardenletconfigv1alpha1.GardenletConfiguration{SeedConfig: &gardenletconfigv1alpha1.SeedConfig{SeedTemplate: u.seed(cluster)}},
	})
	if err != nil {
		return err
	}
	if cluster.Name != RuntimeCluster { // The garden has created it there.
		objects = append([]client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: constants.GardenNamespace}}}, objects...)
	}
	return kube.Apply(ctx, seed, fieldOwner, objects...)
}

// deployedImage is an annotation of a Gardenlet with the image that it was deployed with.
const deployedImage = "landscape.gardener.cloud/image"

// orderGardenlet creates a Gardenlet, which gardener-operator deploys. It deploys it again when the image has changed.
func (u *upRun) orderGardenlet(ctx context.Context, garden, _ client.Client, cluster Cluster) error {
	reference, err := u.pushChart(ctx, charts.Gardenlet)
	if err != nil {
		return err
	}
	config, err := json.Marshal(gardenletconfigv1alpha1.GardenletConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: gardenletconfigv1alpha1.SchemeGroupVersion.String(), Kind: "GardenletConfiguration"},
		SeedConfig: &gardenletconfigv1alpha1.SeedConfig{SeedTemplate: u.seed(cluster)},
	})
	if err != nil {
		return err
	}
	desired := &seedmanagementv1alpha1.Gardenlet{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: cluster.seed()}}
	before := desired.DeepCopy()
	if err := garden.Get(ctx, client.ObjectKeyFromObject(before), before); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read Gardenlet %q: %w", before.Name, err)
	}
	desired.Annotations = map[string]string{deployedImage: u.image}
	deployed := before.Annotations[deployedImage]
	if deployed != "" && deployed != u.image {
		desired.Annotations[constants.GardenerOperation] = constants.OperationForceRedeploy
	}
	desired.Spec.Deployment.ReplicaCount = new(int32(1))
	desired.Spec.Deployment.Helm.OCIRepository = gardencorev1.OCIRepository{Ref: &reference}
	desired.Spec.Config = &runtime.RawExtension{Raw: config}
	objects := []client.Object{desired}
	if cluster.Name != RuntimeCluster && (deployed != u.image || before.Spec.KubeconfigSecretRef != nil) {
		kubeconfig, err := os.ReadFile(u.KubeconfigFile(cluster.Name))
		if err != nil {
			return err
		}
		// The operator deletes it, and the reference, as soon as the gardenlet has registered its Seed.
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: "kubeconfig-" + cluster.seed()},
			Data:       map[string][]byte{"kubeconfig": kubeconfig},
		}
		desired.Spec.KubeconfigSecretRef = &corev1.LocalObjectReference{Name: secret.Name}
		objects = []client.Object{secret, desired}
	}
	return applyToGarden(ctx, garden, objects...)
}

// applyToGarden applies objects to a garden whose gardener-apiserver may be rolling, so that some requests fail.
func applyToGarden(ctx context.Context, c client.Client, objects ...client.Object) error {
	return retryReplaced(func() error { return kube.Apply(ctx, c, fieldOwner, objects...) })
}

// retryReplaced retries requests that fail while gardener-apiserver, or the pods of a webhook, are rolling.
func retryReplaced(do func() error) error {
	replaced := func(err error) bool {
		var discovery *apiutil.ErrResourceDiscoveryFailed
		// A webhook does not respond for a moment after its pod was replaced.
		webhook := apierrors.IsInternalError(err) && strings.Contains(err.Error(), "failed calling webhook")
		return errors.As(err, &discovery) || apierrors.IsServiceUnavailable(err) || webhook
	}
	patience := wait.Backoff{Duration: 250 * time.Millisecond, Factor: 1.2, Jitter: 0.1, Steps: 20}
	return retry.OnError(patience, replaced, do)
}

// localProvider registers provider-local, with its chart, and the credentials for its zones.
func (u *upRun) localProvider() ([]client.Object, error) {
	chart, err := charts.Archive(charts.ProviderLocal)
	if err != nil {
		return nil, err
	}
	values, err := u.providerValues(localDNSValues(u.state.Clusters))
	if err != nil {
		return nil, err
	}
	return append([]client.Object{
		&gardencorev1.ControllerDeployment{
			ObjectMeta: metav1.ObjectMeta{Name: charts.ProviderLocal},
			Helm:       &gardencorev1.HelmControllerDeployment{RawChart: chart, Values: values},
		},
		&corev1beta1.ControllerRegistration{
			ObjectMeta: metav1.ObjectMeta{Name: charts.ProviderLocal},
			Spec: corev1beta1.ControllerRegistrationSpec{
				Resources: providerResources(),
				Deployment: &corev1beta1.ControllerRegistrationDeployment{
					DeploymentRefs: []corev1beta1.DeploymentRef{{Name: charts.ProviderLocal}},
				},
			},
		},
	}, u.providerSecrets()...), nil
}

// providerExtension pushes the chart of provider-local, and returns the Extension with which gardener-operator installs it in the runtime cluster, for
// the garden itself, and registers it in the virtual garden, for seeds.
func (u *upRun) providerExtension(ctx context.Context) (*operatorv1alpha1.Extension, error) {
	reference, err := u.pushChart(ctx, charts.ProviderLocal)
	if err != nil {
		return nil, err
	}
	dns, runtimeDNS := operatedDNSValues(u.state.Clusters)
	values, err := u.providerValues(dns)
	if err != nil {
		return nil, err
	}
	runtimeValues, err := json.Marshal(map[string]any{"image": u.image, "dns": runtimeDNS})
	return extensionOf(reference, values, &apiextensionsv1.JSON{Raw: runtimeValues}), err
}

// extensionOf is the Extension of provider-local, given the reference of its chart, and the values for seeds and for the runtime cluster.
func extensionOf(chart string, values, runtimeValues *apiextensionsv1.JSON) *operatorv1alpha1.Extension {
	return &operatorv1alpha1.Extension{
		ObjectMeta: metav1.ObjectMeta{
			Name: charts.ProviderLocal,
			// Buckets are directories of the node.
			Annotations: map[string]string{constants.PodSecurityEnforce: string(podsecurityapi.LevelPrivileged)},
		},
		Spec: operatorv1alpha1.ExtensionSpec{
			Resources: providerResources(),
			Deployment: &operatorv1alpha1.Deployment{Extension: &operatorv1alpha1.ExtensionDeploymentSpec{
				DeploymentSpec: operatorv1alpha1.DeploymentSpec{Helm: &operatorv1alpha1.ExtensionHelm{
					OCIRepository: &gardencorev1.OCIRepository{Ref: &chart},
				}},
				Values: values, RuntimeClusterValues: runtimeValues,
				// It does not use the garden, and would have its credentials by default.
				InjectGardenKubeconfig: new(false),
			}},
		},
	}
}

// providerValues are the values of provider-local's chart for seeds.
func (u *upRun) providerValues(dns map[string]any) (*apiextensionsv1.JSON, error) {
	images, err := u.artifacts.addonImages(u.images)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(map[string]any{
		"image":    u.image,
		"dns":      dns,
		"machines": map[string]any{"registries": u.machineRegistries()},
		"images":   map[string]any{"flannel": images["flannel"]},
	})
	return &apiextensionsv1.JSON{Raw: raw}, err
}

// providerResources are the kinds and types that provider-local is responsible for.
func providerResources() []corev1beta1.ControllerResource {
	var resources []corev1beta1.ControllerResource
	for _, kind := range []string{
		"BackupBucket", "BackupEntry", "ControlPlane", "DNSRecord", "Infrastructure", "OperatingSystemConfig", "Worker",
	} {
		resources = append(resources, corev1beta1.ControllerResource{Kind: kind, Type: providerType})
	}
	return append(resources, corev1beta1.ControllerResource{Kind: "Network", Type: "flannel"})
}

// providerSecrets are the credentials for zones and buckets, which seeds refer to, and the domains of shoots.
func (u *upRun) providerSecrets() []client.Object {
	objects := []client.Object{
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: domainSecret}, Type: corev1.SecretTypeOpaque},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: backupSecret}, Type: corev1.SecretTypeOpaque},
		// Shoots without a domain of their own have a name in this one.
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: constants.GardenNamespace, Name: defaultDomainSecret, Labels: map[string]string{constants.GardenRole: constants.GardenRoleDefaultDomain},
				Annotations: map[string]string{constants.DNSProvider: providerType, constants.DNSDomain: "external." + u.domain()},
			},
			Type: corev1.SecretTypeOpaque,
		},
	}
	if !u.state.VirtualGarden { // gardener-operator writes it
		objects = append(objects, u.issuerHost())
	}
	return objects
}

// localDNSValues say where the DNS server of each seed listens. Other clusters reach it only if there are several seeds.
func localDNSValues(clusters []Cluster) map[string]any {
	seeds := seedClusters(clusters)
	addresses := map[string]any{}
	for _, seed := range seeds {
		addresses[seed.seed()] = seed.localDNS().String()
	}
	values := map[string]any{"clusterIPs": addresses, "zones": []string{addon.LocalZone}}
	if len(seeds) > 1 {
		values["nodePort"] = localDNSNodePort
	}
	return values
}

// operatedDNSValues are localDNSValues if the garden has a provider-local of its own: that one has the address and the port of the runtime cluster, which
// two Services cannot share, and serves the names of the seed there too.
func operatedDNSValues(clusters []Cluster) (seeds, garden map[string]any) {
	seeds = localDNSValues(clusters)
	garden = maps.Clone(seeds)
	delete(garden, "clusterIPs")
	addresses := maps.Clone(seeds["clusterIPs"].(map[string]any)) //nolint:forcetypeassert // see localDNSValues
	garden["clusterIP"] = addresses[seedName]
	delete(addresses, seedName)
	seeds["clusterIPs"], seeds["servedByGarden"] = addresses, []string{seedName}
	return seeds, garden
}

// issuerHost names the host of managed issuers. No process serves their documents there yet, which are in the garden.
func (u *upRun) issuerHost() *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: constants.GardenNamespace, Name: issuerSecret, Labels: map[string]string{constants.GardenRole: constants.GardenRoleShootServiceAccountIssuer},
		},
		Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"hostname": []byte("discovery.ingress." + u.domain())},
	}
}

// samples are the objects that Shoots of the landscape refer to: a project, a cloud profile with the machine image of this distribution,
// and credentials.
func (u *upRun) samples() ([]client.Object, error) {
	objects, err := example.Objects(example.Project, example.CloudProfile, example.Credentials)
	if err != nil {
		return nil, err
	}
	image, err := u.artifacts.image("machine")
	if err != nil {
		return nil, err
	}
	var all []client.Object
	for _, object := range objects {
		if object.GetKind() == "CloudProfile" {
			profile := &corev1beta1.CloudProfile{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, profile); err != nil {
				return nil, err
			}
			raw, err := json.Marshal(cloudProfileConfig(profile, image.Reference))
			if err != nil {
				return nil, err
			}
			profile.Spec.ProviderConfig = &runtime.RawExtension{Raw: raw}
			profile.Spec.Kubernetes.Versions = kubernetesVersions(slices.Collect(maps.Keys(u.artifacts.kubernetes)))
			all = append(all, profile)
			continue
		}
		all = append(all, object)
	}
	return all, nil
}

// kubernetesVersions are those that shoots may have, the newest first.
func kubernetesVersions(built []string) []corev1beta1.ExpirableVersion {
	slices.SortFunc(built, func(a, b string) int { return semver.Compare(b, a) })
	versions := make([]corev1beta1.ExpirableVersion, 0, len(built))
	for _, version := range built {
		versions = append(versions, corev1beta1.ExpirableVersion{Version: strings.TrimPrefix(version, "v")})
	}
	return versions
}

// cloudProfileConfig maps all machine images of a profile to one image.
func cloudProfileConfig(profile *corev1beta1.CloudProfile, image string) *localv1alpha1.CloudProfileConfig {
	config := &localv1alpha1.CloudProfileConfig{
		TypeMeta: metav1.TypeMeta{APIVersion: localv1alpha1.SchemeGroupVersion.String(), Kind: "CloudProfileConfig"},
	}
	for _, machineImage := range profile.Spec.MachineImages {
		entry := localv1alpha1.MachineImages{Name: machineImage.Name}
		for _, version := range machineImage.Versions {
			entry.Versions = append(entry.Versions, localv1alpha1.MachineImageVersion{
				Version: version.Version, Image: image, CapabilityFlavors: []localv1alpha1.MachineImageFlavor{},
			})
		}
		config.MachineImages = append(config.MachineImages, entry)
	}
	return config
}

// domain is the domain of all names of the landscape's clusters.
func (l *Landscape) domain() string { return l.Name + "." + addon.LocalZone }

// machineRegistries are the mirrors of the landscape's own machines, for the machines of shoots.
func (u *upRun) machineRegistries() []localv1alpha1.MachineRegistry {
	var registries []localv1alpha1.MachineRegistry
	for _, mirror := range u.mirrors() {
		registries = append(registries, localv1alpha1.MachineRegistry{
			Host: mirror.Host, Server: mirror.Server, Mirrors: []string{fmt.Sprintf("http://%s/v2/%s", u.registryAddress(), mirror.Host)},
		})
	}
	return registries
}

// seed is the Seed of a cluster of the landscape.
func (u *upRun) seed(cluster Cluster) corev1beta1.SeedTemplate {
	credentials := corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: constants.GardenNamespace, Name: domainSecret}
	domain := u.domain()
	return corev1beta1.SeedTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: cluster.seed()},
		Spec: corev1beta1.SeedSpec{
			Provider: corev1beta1.SeedProvider{Type: providerType, Region: "local", Zones: []string{"0"}},
			DNS: corev1beta1.SeedDNS{
				Provider: &corev1beta1.SeedDNSProvider{Type: providerType, CredentialsRef: &credentials},
				Internal: &corev1beta1.SeedDNSProviderConfig{Type: providerType, Domain: "internal." + domain, CredentialsRef: credentials},
			},
			Backup: &corev1beta1.Backup{Provider: providerType, Region: new("local"), CredentialsRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "Secret", Namespace: constants.GardenNamespace, Name: backupSecret,
			}},
			Ingress: &corev1beta1.Ingress{Domain: "ingress." + cluster.seed() + ".seed." + domain, Controller: corev1beta1.IngressController{Kind: "nginx"}},
			Settings: &corev1beta1.SeedSettings{
				// Control planes here have small requests that need no recommendations, and the images of VPA take a minute to build.
				VerticalPodAutoscaler: &corev1beta1.SeedSettingVerticalPodAutoscaler{Enabled: false},
				// There are no more nodes to start, so nothing would be reserved: the pods would stay pending.
				ExcessCapacityReservation: &corev1beta1.SeedSettingExcessCapacityReservation{Enabled: new(false)},
			},
			Networks: corev1beta1.SeedNetworks{
				Nodes: new(u.network().Subnet().String()), Pods: cluster.pods().String(), Services: cluster.services().String(),
				ShootDefaults: &corev1beta1.ShootNetworks{Pods: new("10.3.0.0/16"), Services: new("10.4.0.0/16")},
			},
		},
	}
}

// bootstrapKubeconfig is the kubeconfig with which the gardenlet of a seed requests its certificate from the garden. It returns none if the
// gardenlet has one already.
func (u *upRun) bootstrapKubeconfig(ctx context.Context, garden, seed client.Client, name string) ([]byte, error) {
	key := client.ObjectKey{Namespace: constants.GardenNamespace, Name: gardenlet.KubeconfigSecret}
	if err := seed.Get(ctx, key, &corev1.Secret{}); !apierrors.IsNotFound(err) {
		return nil, err
	}
	raw := make([]byte, 11)
	_, _ = rand.Read(raw) // never fails
	random := hex.EncodeToString(raw)
	id, secret := random[:6], random[6:]
	token := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "bootstrap-token-" + id},
		Type:       corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{
			"description": bootstraptoken.ForSeed(name), "token-id": id, "token-secret": secret,
			"usage-bootstrap-authentication": "true", "expiration": time.Now().Add(bootstrapLife).UTC().Format(time.RFC3339),
		},
	}
	if err := garden.Create(ctx, token); err != nil {
		return nil, fmt.Errorf("create bootstrap token: %w", err)
	}
	admin, err := clientcmd.BuildConfigFromFlags("", u.KubeconfigFile(u.Garden()))
	if err != nil {
		return nil, err
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["garden"] = &clientcmdapi.Cluster{Server: admin.Host, CertificateAuthorityData: admin.CAData}
	config.AuthInfos["gardenlet"] = &clientcmdapi.AuthInfo{Token: id + "." + secret}
	config.Contexts["garden"] = &clientcmdapi.Context{Cluster: "garden", AuthInfo: "gardenlet"}
	config.CurrentContext = "garden"
	return clientcmd.Write(*config)
}

// seedReady returns why a seed is not ready, or nil if it is.
func seedReady(seed *corev1beta1.Seed) error {
	if op := seed.Status.LastOperation; op == nil || op.State != corev1beta1.LastOperationStateSucceeded {
		if op == nil {
			return errors.New("the gardenlet has registered the Seed, and has not reconciled it yet")
		}
		return fmt.Errorf("%s %s (%d%%): %s", op.Type, op.State, op.Progress, op.Description)
	}
	for _, typ := range []corev1beta1.ConditionType{corev1beta1.SeedGardenletReady, corev1beta1.SeedSystemComponentsHealthy, corev1beta1.SeedExtensionsReady} {
		condition := kube.Condition(seed.Status.Conditions, typ)
		if condition == nil {
			return fmt.Errorf("condition %s is missing", typ)
		}
		if err := kube.ConditionsTrue([]corev1beta1.Condition{*condition}); err != nil {
			return err
		}
	}
	return nil
}
