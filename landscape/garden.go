package landscape

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/charts"
	"gardener.cloud/gardener/imagevector"
	"gardener.cloud/gardener/internal/component/gardeneradmissioncontroller"
	"gardener.cloud/gardener/internal/component/gardenerapiserver"
	"gardener.cloud/gardener/internal/component/gardenercontrollermanager"
	"gardener.cloud/gardener/internal/component/gardenerscheduler"
	"gardener.cloud/gardener/internal/distribution"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/shoot/access"
	"gardener.cloud/gardener/landscape/host"
	"gardener.cloud/gardener/pkg/helm"
)

const (
	// gardenTimeout is how long gardener-operator may take on a busy machine, for images that are pulled for the first time.
	gardenTimeout = 10 * time.Minute
	// autoscalerProduct is the product with the cluster-autoscaler, and the name of its image.
	autoscalerProduct = "cluster-autoscaler"
	// operatorName is the name of the Deployment of gardener-operator, and of its release.
	operatorName = "gardener-operator"
	// gardenName is the name of the Garden.
	gardenName = "garden"
	// auditPolicyConfigMap has the policy of the audit log of the virtual garden.
	auditPolicyConfigMap = "garden-audit-policy"
	// gardenAccess is the user of the kubeconfig for the garden, and gardenAccessValidity for how long it is valid. "up" renews it.
	gardenAccess         = "landscape"
	gardenAccessValidity = 30 * 24 * time.Hour
)

// bringUpGarden installs gardener-operator with its chart, as a platform team would, and creates a Garden.
func (u *upRun) bringUpGarden(ctx context.Context, cluster Cluster) error {
	if err := u.step(ctx, "Pushing the gardener image", registryContainer, func(ctx context.Context, _ func(string)) (err error) {
		if u.image, err = u.gardenerImage(ctx); err != nil {
			return err
		}
		autoscaler, err := u.artifacts.image(autoscalerProduct)
		if err != nil {
			return err
		}
		u.overwrite, err = imageOverwrite(u.images, u.image, autoscaler)
		return err
	}); err != nil {
		return err
	}
	c, err := u.Client(cluster.Name)
	if err != nil {
		return err
	}
	type part struct {
		title string
		do    func(context.Context, client.WithWatch, Cluster, func(reason error)) error
	}
	parts := []part{
		{"Installing gardener-operator", u.installOperator},
		{"Creating the Garden", u.createGarden},
		{"Creating a project, a cloud profile and credentials in the garden", u.createSamples},
	}
	if u.rotateKeys {
		parts = append(parts, part{"Rotating the keys that the garden is encrypted with in etcd", u.rotateGardenKeys})
	}
	for _, part := range parts {
		if err := u.step(ctx, part.title, "", func(ctx context.Context, detail func(string)) error {
			limited, cancel := u.limit(ctx, gardenTimeout)
			defer cancel()
			err := part.do(limited, c, cluster, func(reason error) { detail(reason.Error()) })
			if err != nil && ctx.Err() == nil { // not interrupted
				return fmt.Errorf("%w\n%s", err, u.gardenAdvice())
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// gardenAdvice says where to look when the garden does not come up.
func (l *Landscape) gardenAdvice() string {
	kubectl := "kubectl --kubeconfig " + l.KubeconfigFile(RuntimeCluster)
	return fmt.Sprintf("Look for the cause with:\n  %[1]s describe garden %[2]s\n  %[1]s -n %[3]s logs deployment/%[4]s",
		kubectl, gardenName, constants.GardenNamespace, operatorName)
}

// installOperator installs the chart of gardener-operator.
func (u *upRun) installOperator(ctx context.Context, c client.WithWatch, cluster Cluster, report func(error)) error {
	if err := refuseFormer(ctx, c, u.Name); err != nil {
		return err
	}
	objects, err := u.operatorObjects(cluster)
	if err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: constants.GardenNamespace}}
	// The webhooks of gardener-resource-manager do not respond until its pod runs again after a restart of the machine.
	if err := retryReplaced(func() error {
		return kube.Apply(ctx, c, fieldOwner, append([]client.Object{namespace}, objects...)...)
	}); err != nil {
		return err
	}
	return u.awaitRolled(ctx, c, report, operatorName)
}

// refuseFormer returns an error if the runtime cluster itself serves the garden API, as in a landscape of a former version. A run of that version that
// was interrupted has left nothing in the landscape's state.
func refuseFormer(ctx context.Context, c client.Client, landscape string) error {
	api := &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: "v1beta1." + corev1beta1.SchemeGroupVersion.Group}}
	err := c.Get(ctx, client.ObjectKeyFromObject(api), api)
	if err == nil {
		return formerError(landscape)
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("read APIService %q: %w", api.Name, err)
	}
	return nil
}

// formerError is why a landscape of a former version is not changed.
func formerError(landscape string) error {
	return fmt.Errorf("a former version has created landscape %q, whose runtime cluster serves the garden API; its objects do not move to a virtual garden: take it down first, with: %s",
		landscape, makeCommand("down", landscape))
}

// awaitRolled returns when Deployments in the namespace garden of a cluster have the gardener image of this run, and are complete.
func (u *upRun) awaitRolled(ctx context.Context, c client.WithWatch, report func(error), names ...string) error {
	return kube.Await(ctx, c, &appsv1.DeploymentList{}, func(found []*appsv1.Deployment) error {
		return rolled(found, u.image, names...)
	}, report, client.InNamespace(constants.GardenNamespace))
}

// rolled returns why Deployments do not run an image yet, or nil if all of them do.
func rolled(found []*appsv1.Deployment, image string, names ...string) error {
	for _, name := range names {
		index := slices.IndexFunc(found, func(d *appsv1.Deployment) bool { return d.Name == name })
		if index < 0 {
			return fmt.Errorf("Deployment %q not found", name)
		}
		if found[index].Spec.Template.Spec.Containers[0].Image != image {
			return fmt.Errorf("Deployment %q has another image than this build", name)
		}
		if err := kube.DeploymentComplete(found[index]); err != nil {
			return err
		}
	}
	return nil
}

// createGarden creates the Garden and what it refers to, and returns when it is ready.
func (u *upRun) createGarden(ctx context.Context, c client.WithWatch, cluster Cluster, report func(error)) error {
	provider, err := u.providerExtension(ctx)
	if err != nil {
		return err
	}
	policy, err := render("audit-policy.yaml.tmpl", nil)
	if err != nil {
		return err
	}
	objects := []client.Object{
		credentials(domainSecret), credentials(backupSecret),
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: auditPolicyConfigMap}, Data: map[string]string{"policy": string(policy)},
		},
		provider, u.gardenResource(cluster),
	}
	// The webhooks of gardener-operator do not respond for a moment while it is rolled.
	if err := retryReplaced(func() error { return kube.Apply(ctx, c, fieldOwner, objects...) }); err != nil {
		return err
	}
	if err := awaitGarden(ctx, c, report, gardenReady); err != nil {
		return err
	}
	// The Garden does not have the image, so it may have been ready before the new gardener-operator has seen it, which reconciles it when it starts.
	if err := u.awaitRolled(ctx, c, report, gardenProcesses()...); err != nil {
		return err
	}
	if err := awaitGarden(ctx, c, report, gardenReady); err != nil {
		return err
	}
	return u.writeGardenKubeconfig(ctx, c)
}

// gardenProcesses are the Deployments with the gardener image that serve the garden.
func gardenProcesses() []string {
	return []string{gardenerapiserver.Name, gardenercontrollermanager.Name, gardenerscheduler.Name, gardeneradmissioncontroller.Name}
}

// rotateGardenKeys rotates the keys that resources of the garden are encrypted with in etcd, if that was requested.
func (u *upRun) rotateGardenKeys(ctx context.Context, c client.WithWatch, _ Cluster, report func(error)) error {
	garden := &operatorv1alpha1.Garden{ObjectMeta: metav1.ObjectMeta{Name: gardenName}}
	if err := c.Get(ctx, client.ObjectKeyFromObject(garden), garden); err != nil {
		return fmt.Errorf("read Garden %q: %w", gardenName, err)
	}
	before := keyRotation(garden)
	if err := kube.PatchMetadata(ctx, c, garden, func(o *metav1.PartialObjectMetadata) {
		metav1.SetMetaDataAnnotation(&o.ObjectMeta, constants.GardenerOperation, constants.OperationRotateETCDEncryptionKey)
	}); err != nil {
		return fmt.Errorf("annotate Garden %q: %w", gardenName, err)
	}
	return awaitGarden(ctx, c, report, func(garden *operatorv1alpha1.Garden) error {
		if keyRotation(garden).Equal(before) {
			return errors.New("gardener-operator has not completed the rotation yet")
		}
		return gardenReady(garden)
	})
}

// keyRotation returns when the last rotation of the encryption keys of a Garden was completed, nil if none was.
func keyRotation(garden *operatorv1alpha1.Garden) *metav1.Time {
	if c := garden.Status.Credentials; c != nil && c.Rotation != nil && c.Rotation.ETCDEncryptionKey != nil {
		return c.Rotation.ETCDEncryptionKey.LastCompletionTime
	}
	return nil
}

// createSamples creates in the garden what seeds and shoots of the landscape refer to.
func (u *upRun) createSamples(ctx context.Context, _ client.WithWatch, _ Cluster, _ func(error)) error {
	garden, err := u.Client(VirtualGarden)
	if err != nil {
		return err
	}
	samples, err := u.samples()
	if err != nil {
		return err
	}
	return applyToGarden(ctx, garden, append(samples, credentials(domainSecret), credentials(backupSecret), u.defaultDomain())...)
}

var errNoGarden = errors.New("the Garden does not exist")

// awaitGarden returns when the Garden is as expected.
func awaitGarden(ctx context.Context, c client.WithWatch, report func(error), expected func(*operatorv1alpha1.Garden) error) error {
	return kube.Await(ctx, c, &operatorv1alpha1.GardenList{}, func(found []*operatorv1alpha1.Garden) error {
		if len(found) == 0 {
			return errNoGarden
		}
		return expected(found[0])
	}, report)
}

// gardenerImage builds the image of the binary gardener, pushes it, and returns its reference with digest.
func (u *upRun) gardenerImage(ctx context.Context) (string, error) {
	entry, err := u.images.Find("gardener", imagevector.Query{})
	if err != nil {
		return "", err
	}
	image, err := u.builds.Wrap(filepath.Join(u.Dir, "images", "gardener"), u.artifacts.products["base"], entry.Repository, u.gardener, distribution.GardenerLinks...)
	if err != nil {
		return "", err
	}
	loaded, err := image.Load()
	if err != nil {
		return "", err
	}
	return image.Reference + "@" + image.Digest, u.push(ctx, image.Reference, loaded)
}

// imageOverwrite returns the image vector overwrite of gardener-operator, which gardenlets get, too. The cluster-autoscaler is built from this checkout, but
// its tag stays, so that its digest is in the overwrite. Other images that the user has set for it are passed on.
func imageOverwrite(images imagevector.Vector, gardener string, autoscaler distribution.Image) (string, error) {
	entries := slices.DeleteFunc(slices.Clone(images), func(s imagevector.Source) bool { return s.Name != autoscalerProduct })
	pinned, err := imagevector.PinDigests(entries, nil, func(ref string) (string, error) {
		if ref == autoscaler.Reference {
			return autoscaler.Digest, nil
		}
		return "", nil
	})
	if err != nil {
		return "", err
	}
	var out strings.Builder
	err = append(imagevector.Vector{{Name: "gardener", Ref: &gardener}}, entries.Overwrite(pinned)...).Write(&out)
	return out.String(), err
}

// release identifies the images that gardenlets and shoots run.
func (u *upRun) release() string {
	return fmt.Sprintf("%s overwrite:%x", u.image, sha256.Sum256([]byte(u.overwrite)))
}

// operatorObjects renders the chart of gardener-operator.
func (u *upRun) operatorObjects(cluster Cluster) ([]client.Object, error) {
	archive, err := charts.Archive(charts.Operator)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", u.KubeconfigFile(cluster.Name))
	if err != nil {
		return nil, err
	}
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	version, err := d.ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("read version of cluster %q: %w", cluster.Name, err)
	}
	rendered, err := helm.Render(archive, helm.Release{
		Name: operatorName, Namespace: constants.GardenNamespace, Kubernetes: *version,
		Values: map[string]any{
			"image":                map[string]any{"ref": u.image},
			"imageVectorOverwrite": u.overwrite,
			"replicaCount":         cluster.replicas(),
		},
	})
	if err != nil {
		return nil, err
	}
	objects := make([]client.Object, 0, len(rendered))
	for _, object := range rendered {
		objects = append(objects, object)
	}
	return objects, nil
}

// gardenResource is the Garden of a landscape: small, as it usually runs on one machine.
func (u *upRun) gardenResource(cluster Cluster) *operatorv1alpha1.Garden {
	domain := u.domain()
	version := cluster.Version[1:] // without the v
	provider := operatorv1alpha1.Provider{Region: new("local")}
	var controlPlane *operatorv1alpha1.ControlPlane
	// One zone would be the same as none, except that components had two pods. Of three members of etcd, two zones could lose two together.
	if zones := cluster.zones(); len(zones) > 1 {
		provider.Zones = zones
		if len(zones) > 2 {
			controlPlane = &operatorv1alpha1.ControlPlane{HighAvailability: &operatorv1alpha1.HighAvailability{}}
		}
	}
	return &operatorv1alpha1.Garden{
		ObjectMeta: metav1.ObjectMeta{Name: gardenName},
		Spec: operatorv1alpha1.GardenSpec{
			DNS: &operatorv1alpha1.DNSManagement{Providers: []operatorv1alpha1.DNSProvider{{
				Name: providerType, Type: providerType, SecretRef: corev1.LocalObjectReference{Name: domainSecret},
			}}},
			RuntimeCluster: operatorv1alpha1.RuntimeCluster{
				Ingress: operatorv1alpha1.Ingress{
					Domains:    []operatorv1alpha1.DNSDomain{{Name: "ingress." + domain}},
					Controller: corev1beta1.IngressController{Kind: "nginx"},
				},
				Networking: operatorv1alpha1.RuntimeNetworking{
					Nodes: []string{u.network().Subnet().String()}, Pods: []string{cluster.pods().String()}, Services: []string{cluster.services().String()},
				},
				Provider: provider,
				Settings: &operatorv1alpha1.Settings{
					// Control planes here have small requests that need no recommendations, and the images of VPA take a minute to build.
					VerticalPodAutoscaler: &operatorv1alpha1.SettingVerticalPodAutoscaler{Enabled: new(false)},
				},
			},
			VirtualCluster: operatorv1alpha1.VirtualCluster{
				ControlPlane: controlPlane,
				DNS:          operatorv1alpha1.DNS{Domains: []operatorv1alpha1.DNSDomain{{Name: u.gardenDomain()}}},
				ETCD: &operatorv1alpha1.ETCD{
					Main: &operatorv1alpha1.ETCDMain{Backup: &operatorv1alpha1.Backup{
						Provider: providerType, SecretRef: corev1.LocalObjectReference{Name: backupSecret},
					}},
					Events: &operatorv1alpha1.ETCDEvents{},
				},
				Kubernetes: operatorv1alpha1.Kubernetes{
					Version: version,
					KubeAPIServer: &operatorv1alpha1.KubeAPIServerConfig{KubeAPIServerConfig: corev1beta1.KubeAPIServerConfig{
						AuditConfig: &corev1beta1.AuditConfig{AuditPolicy: &corev1beta1.AuditPolicy{
							ConfigMapRef: &corev1.ObjectReference{Name: auditPolicyConfigMap},
						}},
					}},
				},
				Maintenance: operatorv1alpha1.Maintenance{TimeWindow: corev1beta1.MaintenanceTimeWindow{Begin: "220000+0100", End: "230000+0100"}},
				Networking:  operatorv1alpha1.Networking{Services: []string{"100.64.0.0/13"}},
				Gardener: operatorv1alpha1.Gardener{
					ClusterIdentity: "garden-" + u.Name, GardenerDiscoveryServer: &operatorv1alpha1.GardenerDiscoveryServerConfig{},
					GardenerAPIServer: &operatorv1alpha1.GardenerAPIServerConfig{
						// The images of VPA are not built by default, see above.
						AdmissionPlugins: []corev1beta1.AdmissionPlugin{{Name: "ShootVPAEnabledByDefault", Disabled: new(true)}},
					},
				},
			},
		},
	}
}

// gardenDomain is the domain of the virtual cluster.
func (l *Landscape) gardenDomain() string { return "garden." + l.domain() }

// gardenReady returns why a Garden is not ready, or nil if it is.
func gardenReady(garden *operatorv1alpha1.Garden) error {
	op := garden.Status.LastOperation
	switch {
	case op == nil || garden.Status.ObservedGeneration != garden.Generation:
		return errors.New("gardener-operator has not reconciled the Garden yet")
	case op.State != corev1beta1.LastOperationStateSucceeded:
		return fmt.Errorf("%s %s (%d%%): %s", op.Type, op.State, op.Progress, op.Description)
	}
	for _, typ := range []corev1beta1.ConditionType{
		operatorv1alpha1.VirtualGardenAPIServerAvailable, operatorv1alpha1.RuntimeComponentsHealthy, operatorv1alpha1.VirtualComponentsHealthy,
	} {
		condition := kube.Condition(garden.Status.Conditions, typ)
		if condition == nil {
			return fmt.Errorf("condition %s is missing", typ)
		}
		if err := kube.ConditionsTrue([]corev1beta1.Condition{*condition}); err != nil {
			return err
		}
	}
	return nil
}

// writeGardenKubeconfig writes a kubeconfig for the virtual cluster with a client certificate, which reaches it through the gateway.
func (u *upRun) writeGardenKubeconfig(ctx context.Context, c client.Client) error {
	raw, err := access.Kubeconfig(ctx, access.Values{
		SeedAPI: c, Namespace: constants.GardenNamespace, Host: "api." + u.gardenDomain(), User: gardenAccess,
		Validity: gardenAccessValidity, Now: time.Now(),
	})
	if err != nil {
		return err
	}
	config, err := clientcmd.Load(raw)
	if err != nil {
		return err
	}
	gateway, err := addressOfGateway(ctx, c, seedName)
	if err != nil {
		return err
	}
	for _, cluster := range config.Clusters {
		if err := byAddress(cluster, gateway); err != nil {
			return err
		}
	}
	if raw, err = clientcmd.Write(*u.named(config, VirtualGarden)); err != nil {
		return err
	}
	return host.WriteFile(u.KubeconfigFile(VirtualGarden), raw, 0o600)
}
