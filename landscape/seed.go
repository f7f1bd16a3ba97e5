package landscape

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/mod/semver"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	localv1alpha1 "gardener.cloud/gardener/api/provider/local/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/charts"
	"gardener.cloud/gardener/example"
	"gardener.cloud/gardener/internal/component/gardenlet"
	"gardener.cloud/gardener/internal/component/gateway"
	"gardener.cloud/gardener/internal/kube"
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
	// domainSecret has the credentials for the zones that the landscape's resolver serves. It needs none.
	domainSecret = "dns-local"
	// backupSecret has the credentials for the buckets of the landscape. They need none.
	backupSecret = "backup-local"
	// defaultDomainSecret has the domain of shoots that do not have one of their own.
	defaultDomainSecret = "default-domain-local"
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

// bringUpSeed makes a cluster a seed of the garden with a Gardenlet.
func (u *upRun) bringUpSeed(ctx context.Context, cluster Cluster) error {
	name := cluster.seed()
	return u.step(ctx, "Registering cluster "+cluster.Name+" as seed "+name, "", func(ctx context.Context, detail func(string)) error {
		ctx, cancel := u.limit(ctx, seedTimeout)
		defer cancel()
		garden, err := u.Client(VirtualGarden)
		if err != nil {
			return err
		}
		c, err := u.Client(cluster.Name)
		if err != nil {
			return err
		}
		keep, err := u.keepsGardenlet(ctx, garden, name)
		if err != nil {
			return err
		}
		if !keep {
			if err := u.deployGardenlet(ctx, garden, cluster); err != nil {
				return err
			}
		}
		report := func(reason error) { detail(reason.Error()) }
		// Until the operator has deployed the gardenlet, the Seed and what the former gardenlet has deployed may look ready.
		if err := kube.Await(ctx, garden, &seedmanagementv1alpha1.GardenletList{}, func(gardenlets []*seedmanagementv1alpha1.Gardenlet) error {
			index := slices.IndexFunc(gardenlets, func(g *seedmanagementv1alpha1.Gardenlet) bool { return g.Name == name })
			if index < 0 {
				return fmt.Errorf("Gardenlet %q not found", name)
			}
			return gardenletDeployed(gardenlets[index])
		}, report, client.InNamespace(constants.GardenNamespace)); err != nil {
			return err
		}
		if !keep {
			if err := u.awaitRolled(ctx, c, report, gardenlet.Name); err != nil {
				return err
			}
		}
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

// keepsGardenlet reports whether a Gardenlet exists that stays as it is.
func (u *upRun) keepsGardenlet(ctx context.Context, garden client.Client, name string) (bool, error) {
	if !u.keepGardenlets {
		return false, nil
	}
	existing := &seedmanagementv1alpha1.Gardenlet{}
	err := retryReplaced(func() error {
		return garden.Get(ctx, client.ObjectKey{Namespace: constants.GardenNamespace, Name: name}, existing)
	})
	return err == nil, client.IgnoreNotFound(err)
}

// gardenletDeployed returns why gardener-operator has not deployed a Gardenlet yet, or nil if it has.
func gardenletDeployed(g *seedmanagementv1alpha1.Gardenlet) error {
	if g.Annotations[constants.GardenerOperation] == "" && g.Spec.KubeconfigSecretRef == nil {
		return nil
	}
	for _, condition := range g.Status.Conditions {
		if condition.Status != corev1beta1.ConditionTrue {
			return fmt.Errorf("gardener-operator has not deployed the gardenlet yet: %s", condition.Message)
		}
	}
	return errors.New("gardener-operator has not deployed the gardenlet yet")
}

// deployedAnnotation is an annotation of a Gardenlet with a hash of all that it was deployed with.
const deployedAnnotation = "landscape.gardener.cloud/deployed"

// deployedHash is a hash of what a Gardenlet is deployed with.
func deployedHash(images, chart string, config []byte) string {
	sum := sha256.Sum256([]byte(images + "\n" + chart + "\n" + string(config)))
	return hex.EncodeToString(sum[:8])
}

// deployGardenlet creates a Gardenlet, which gardener-operator deploys. The operator does not deploy it again by itself when the image, the chart or the
// configuration has changed, so that is requested.
func (u *upRun) deployGardenlet(ctx context.Context, garden client.Client, cluster Cluster) error {
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
	deployed := deployedHash(u.release(), reference, config)
	changed := before.Annotations[deployedAnnotation] != deployed
	desired.Annotations = map[string]string{deployedAnnotation: deployed}
	// A run that was interrupted may have requested it, and the operator not have done it.
	pending := before.Annotations[constants.GardenerOperation] == constants.OperationForceRedeploy
	if pending || changed && before.UID != "" {
		desired.Annotations[constants.GardenerOperation] = constants.OperationForceRedeploy
	}
	desired.Spec.Deployment.ReplicaCount = new(cluster.replicas())
	// A gardenlet that updates itself to another chart would take the image of that, which no landscape has.
	desired.Spec.Deployment.Image = &seedmanagementv1alpha1.Image{Ref: &u.image}
	desired.Spec.Deployment.Helm.OCIRepository = gardencorev1.OCIRepository{Ref: &reference}
	desired.Spec.Config = &runtime.RawExtension{Raw: config}
	objects := []client.Object{desired}
	if cluster.Name != RuntimeCluster && (changed || pending || before.Spec.KubeconfigSecretRef != nil) {
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

// retryReplaced retries requests that fail while the kube-apiserver, gardener-apiserver, or the pods of a webhook are rolling.
func retryReplaced(do func() error) error {
	replaced := func(err error) bool {
		var discovery *apiutil.ErrResourceDiscoveryFailed
		// A webhook does not respond for a moment after its pod was replaced.
		webhook := kube.WebhookAway(err)
		gone := utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err)
		// The machine rejects packets to the load balancer's address until kube-proxy has an endpoint for it.
		rejected := errors.Is(err, syscall.ENETUNREACH)
		return errors.As(err, &discovery) || apierrors.IsServiceUnavailable(err) || webhook || gone || rejected
	}
	patience := wait.Backoff{Duration: 250 * time.Millisecond, Factor: 1.2, Jitter: 0.1, Steps: 27} // more than two minutes
	return retry.OnError(patience, replaced, do)
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
			profile, err := u.cloudProfile(object)
			if err != nil {
				return nil, err
			}
			setZones(profile, u.state.Clusters[0].zones())
			raw, err := json.Marshal(cloudProfileConfig(profile, image.Reference))
			if err != nil {
				return nil, err
			}
			profile.Spec.ProviderConfig = &runtime.RawExtension{Raw: raw}
			all = append(all, profile)
			continue
		}
		if object.GetKind() == "Secret" && len(seedClusters(u.state.Clusters)) > 1 {
			kubeconfig, err := os.ReadFile(u.KubeconfigFile(RuntimeCluster))
			if err != nil {
				return nil, err
			}
			if err := setInfrastructure(object, kubeconfig, u.state.Clusters[0].podRanges()); err != nil {
				return nil, err
			}
		}
		all = append(all, object)
	}
	return all, nil
}

// cloudProfile is one of the examples, with the versions of Kubernetes that were built.
func (u *upRun) cloudProfile(object *unstructured.Unstructured) (*corev1beta1.CloudProfile, error) {
	profile := &corev1beta1.CloudProfile{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, profile); err != nil {
		return nil, err
	}
	profile.Spec.Kubernetes.Versions = kubernetesVersions(slices.Collect(maps.Keys(u.artifacts.kubernetes)))
	return profile, nil
}

// setZones lets workers be in the zones of the runtime cluster, where machines are. If there are several, users may choose one for a control plane that
// survives the loss of a node: that needs three machines of the same zone.
func setZones(profile *corev1beta1.CloudProfile, zones []string) {
	region := &profile.Spec.Regions[0]
	region.Zones = nil
	for _, zone := range zones {
		region.Zones = append(region.Zones, corev1beta1.AvailabilityZone{Name: zone})
	}
	if len(zones) > 1 {
		profile.Spec.ControlPlane = &corev1beta1.CloudProfileControlPlane{AllowZonePinning: new(true)}
	}
}

// setInfrastructure sets the cluster whose pods, in the given networks, are the machines of shoots with the credentials. With several seeds it is always the
// same one, so that a control plane can move to another seed without its machines.
func setInfrastructure(credentials *unstructured.Unstructured, kubeconfig []byte, pods []netip.Prefix) error {
	for key, value := range map[string][]byte{"kubeconfig": kubeconfig, "nodes": []byte(joined(pods))} {
		if err := unstructured.SetNestedField(credentials.Object, base64.StdEncoding.EncodeToString(value), "data", key); err != nil {
			return err
		}
	}
	return nil
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
			Provider: corev1beta1.SeedProvider{Type: providerType, Region: "local", Zones: cluster.zones()},
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

// seedReady returns why a seed is not ready, or nil if it is.
func seedReady(seed *corev1beta1.Seed) error {
	if op := seed.Status.LastOperation; op == nil || op.State != corev1beta1.LastOperationStateSucceeded {
		if op == nil {
			return errors.New("the gardenlet has registered the Seed, and has not reconciled it yet")
		}
		return fmt.Errorf("%s %s (%d%%): %s", op.Type, op.State, op.Progress, op.Description)
	}
	if seed.Status.ObservedGeneration != seed.Generation {
		return errors.New("the gardenlet has not reconciled the last change of the Seed yet")
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
