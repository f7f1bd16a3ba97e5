package landscape

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	"gardener.cloud/gardener/charts"
	"gardener.cloud/gardener/internal/chart"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/shoot/access"
)

const (
	// operatedGardenTimeout is how long gardener-operator may take on a busy machine, for images that are pulled for the first time.
	operatedGardenTimeout = 10 * time.Minute
	// VirtualGarden is the name of the cluster that serves the garden API, if gardener-operator has installed the garden.
	VirtualGarden = "garden"
	// gardenName is the name of the Garden.
	gardenName = "garden"
	// gardenAccess is the user of that kubeconfig, and gardenAccessValidity for how long it is valid: a day of work, as nothing but up renews it.
	gardenAccess         = "landscape"
	gardenAccessValidity = 24 * time.Hour
)

// bringUpOperator installs gardener-operator with its chart, as a platform team would, and creates a Garden. The virtual cluster of the Garden serves the
// garden API then, instead of the runtime cluster.
func (u *upRun) bringUpOperator(ctx context.Context, cluster Cluster) error {
	if err := u.step(ctx, "Pushing the gardener image", registryContainer, func(ctx context.Context, _ func(string)) (err error) {
		u.image, err = u.gardenerImage(ctx)
		return err
	}); err != nil {
		return err
	}
	return u.step(ctx, "Installing gardener-operator, and creating a Garden", "", func(ctx context.Context, detail func(string)) error {
		ctx, cancel := context.WithTimeoutCause(ctx, operatedGardenTimeout, fmt.Errorf("not done after %s", operatedGardenTimeout))
		defer cancel()
		c, err := u.Client(cluster.Name)
		if err != nil {
			return err
		}
		objects, err := u.operatorObjects(cluster)
		if err != nil {
			return err
		}
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: constants.GardenNamespace}}
		if err := kube.Apply(ctx, c, fieldOwner, append([]client.Object{namespace}, objects...)...); err != nil {
			return err
		}
		if err := kube.Await(ctx, c, &appsv1.DeploymentList{}, func(found []*appsv1.Deployment) error {
			if len(found) == 0 {
				return errors.New("Deployment gardener-operator not found")
			}
			return kube.DeploymentComplete(found[0])
		}, func(reason error) { detail(reason.Error()) }, client.InNamespace(constants.GardenNamespace), client.MatchingFields{metav1.ObjectNameField: "gardener-operator"}); err != nil {
			return err
		}
		provider, err := u.providerExtension(ctx)
		if err != nil {
			return err
		}
		// The first ones are the credentials of the garden's own names and backups.
		if err := retryReplaced(func() error {
			return kube.Apply(ctx, c, fieldOwner, operated(u.providerSecrets(), provider, u.gardenResource(cluster))...)
		}); err != nil {
			return err
		}
		if err := kube.Await(ctx, c, &operatorv1alpha1.GardenList{}, func(found []*operatorv1alpha1.Garden) error {
			if len(found) == 0 {
				return errors.New("the Garden does not exist")
			}
			return gardenReady(found[0])
		}, func(reason error) { detail(reason.Error()) }); err != nil {
			return err
		}
		if err := u.writeGardenKubeconfig(ctx, c); err != nil {
			return err
		}
		garden, err := u.Client(VirtualGarden)
		if err != nil {
			return err
		}
		samples, err := u.samples()
		if err != nil {
			return err
		}
		return applyToGarden(ctx, garden, append(u.providerSecrets(), samples...)...)
	})
}

// operated are the objects that the runtime cluster has for a Garden: the credentials of provider-local, which installs it there, and the Garden itself.
func operated(secrets []client.Object, objects ...client.Object) []client.Object {
	for _, secret := range secrets {
		if name := secret.GetName(); name == domainSecret || name == backupSecret {
			objects = append([]client.Object{secret}, objects...)
		}
	}
	return objects
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
	rendered, err := chart.Render(archive, chart.Release{
		Name: "gardener-operator", Namespace: constants.GardenNamespace, Kubernetes: *version,
		Values: map[string]any{
			"image":                map[string]any{"ref": u.image},
			"imageVectorOverwrite": "images:\n- name: gardener\n  ref: " + u.image + "\n",
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

// gardenResource is the Garden of a landscape: small, as it runs on one machine.
func (u *upRun) gardenResource(cluster Cluster) *operatorv1alpha1.Garden {
	domain := u.domain()
	version := cluster.Version[1:] // without the v
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
				Provider: operatorv1alpha1.Provider{Region: new("local")},
				Settings: &operatorv1alpha1.Settings{
					// Control planes here have small requests that need no recommendations, and the images of VPA take a minute to build.
					VerticalPodAutoscaler: &operatorv1alpha1.SettingVerticalPodAutoscaler{Enabled: new(false)},
				},
			},
			VirtualCluster: operatorv1alpha1.VirtualCluster{
				DNS: operatorv1alpha1.DNS{Domains: []operatorv1alpha1.DNSDomain{{Name: u.gardenDomain()}}},
				ETCD: &operatorv1alpha1.ETCD{
					Main: &operatorv1alpha1.ETCDMain{Backup: &operatorv1alpha1.Backup{
						Provider: providerType, SecretRef: corev1.LocalObjectReference{Name: backupSecret},
					}},
					Events: &operatorv1alpha1.ETCDEvents{},
				},
				Kubernetes:  operatorv1alpha1.Kubernetes{Version: version},
				Maintenance: operatorv1alpha1.Maintenance{TimeWindow: corev1beta1.MaintenanceTimeWindow{Begin: "220000+0100", End: "230000+0100"}},
				Networking:  operatorv1alpha1.Networking{Services: []string{"100.64.0.0/13"}},
				Gardener: operatorv1alpha1.Gardener{
					ClusterIdentity: "garden-" + u.Name, GardenerDiscoveryServer: &operatorv1alpha1.GardenerDiscoveryServerConfig{},
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
	gateway := &corev1.Service{}
	if err := c.Get(ctx, gatewayService, gateway); err != nil {
		return fmt.Errorf("find the gateway: %w", err)
	}
	if len(gateway.Status.LoadBalancer.Ingress) == 0 {
		return errors.New("the gateway has no address yet")
	}
	for _, cluster := range config.Clusters {
		if err := byAddress(cluster, gateway.Status.LoadBalancer.Ingress[0].IP); err != nil {
			return err
		}
	}
	if raw, err = clientcmd.Write(*config); err != nil {
		return err
	}
	return os.WriteFile(u.KubeconfigFile(VirtualGarden), raw, 0o600)
}
