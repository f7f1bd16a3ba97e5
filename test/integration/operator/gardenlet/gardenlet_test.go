// Package gardenlet tests how gardener-operator deploys gardenlets, with real API servers for the garden and two seeds, and a registry.
package gardenlet

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/charts"
	"gardener.cloud/gardener/internal/chart/charttest"
	"gardener.cloud/gardener/internal/component/crds"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/kube/bootstraptoken"
	"gardener.cloud/gardener/internal/operator/gardenlet"
	"gardener.cloud/gardener/internal/operator/gardenletcharts"
	"gardener.cloud/gardener/internal/wave"
	"gardener.cloud/gardener/test/builder"
	"gardener.cloud/gardener/test/env"
)

const (
	image = "registry.example/gardener:v1"
	// release is the version of the operator, and releaseChart that of gardenlets in it.
	release      = "v1.151.0"
	releaseChart = "registry.example/charts/gardenlet:" + release
	// overwrite is the image vector overwrite of the operator.
	overwrite = "images: []\n"
)

// clusters are the garden and the clusters that become seeds.
type clusters struct {
	virtual, runtime, foreign client.WithWatch
	foreignConfig             *rest.Config
	chart                     string
}

func TestGardenlets(t *testing.T) {
	logf.SetLogger(logr.Discard())
	c := start(t)
	step := env.Story(t)

	step("a gardenlet is deployed into the runtime cluster")
	c.create(t, c.virtual, c.gardenlet(t, "local"))
	deployment := env.Await(t, c.runtime, env.Named[*appsv1.Deployment]("garden", "gardenlet"), env.Exists)
	pod := deployment.Spec.Template
	if pod.Spec.Containers[0].Image != image || pod.Labels["networking.resources.gardener.cloud/to-virtual-garden-kube-apiserver-tcp-443"] != "allowed" {
		t.Errorf("its pods have image %s and labels %v", pod.Spec.Containers[0].Image, pod.Labels)
	}
	c.awaitCondition(t, "local", corev1beta1.ConditionProgressing, "Seed local")
	token := c.bootstrapToken(t, c.runtime, "local")

	step("it is done when the Seed is registered")
	c.create(t, c.virtual, builder.Seed("local"))
	c.awaitCondition(t, "local", corev1beta1.ConditionTrue, "Seed local has been registered")
	env.AwaitGone(t, c.virtual, env.Named[*corev1.Secret]("kube-system", "bootstrap-token-"+token))

	step("a cluster is one seed only")
	c.create(t, c.virtual, c.gardenlet(t, "second"))
	c.awaitCondition(t, "second", corev1beta1.ConditionFalse, `the gardenlet of seed "local" already runs in the cluster`)

	step("a gardenlet is deployed into a cluster that a kubeconfig is for")
	c.create(t, c.virtual, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "foreign"}, Data: map[string][]byte{"kubeconfig": env.Kubeconfig(t, c.foreignConfig)},
	})
	c.create(t, c.virtual, c.gardenlet(t, "foreign", func(g *seedmanagementv1alpha1.Gardenlet) {
		g.Spec.KubeconfigSecretRef = &corev1.LocalObjectReference{Name: "foreign"}
	}))
	c.awaitCondition(t, "foreign", corev1beta1.ConditionProgressing, "Seed foreign")
	pod = env.Await(t, c.foreign, env.Named[*appsv1.Deployment]("garden", "gardenlet"), env.Exists).Spec.Template
	if label := "networking.resources.gardener.cloud/to-virtual-garden-kube-apiserver-tcp-443"; pod.Labels[label] != "" {
		t.Error("its pods have the label for the garden, which is not there")
	}
	if other := c.bootstrapToken(t, c.foreign, "foreign"); other == token {
		t.Error("two gardenlets have the same bootstrap token")
	}

	step("the kubeconfig is deleted when the Seed is registered")
	c.create(t, c.virtual, builder.Seed("foreign"))
	env.AwaitGone(t, c.virtual, env.Named[*corev1.Secret]("garden", "foreign"))
	env.Await(t, c.virtual, env.Named[*seedmanagementv1alpha1.Gardenlet]("garden", "foreign"), func(g *seedmanagementv1alpha1.Gardenlet) error {
		if g.Spec.KubeconfigSecretRef != nil {
			return errors.New("it refers to its kubeconfig")
		}
		return nil
	})

	step("without its Seed, it is not deployed into the runtime cluster")
	c.delete(t, c.virtual, &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}})
	env.AwaitGone(t, c.virtual, env.Named[*corev1beta1.Seed]("", "foreign"))
	env.Edit(t, c.virtual, env.Named[*seedmanagementv1alpha1.Gardenlet]("garden", "foreign"), func(g *seedmanagementv1alpha1.Gardenlet) {
		g.Spec.Deployment.ReplicaCount = new(int32(1)) // another generation
	})
	c.awaitCondition(t, "foreign", corev1beta1.ConditionFalse, `already runs in the cluster`)
	placements := env.Await(t, c.runtime, env.Named[*corev1.ConfigMap]("garden", "gardenlet-placements"), env.Exists)
	if placements.Data["local"] != "runtime-cluster" || placements.Data["foreign"] != "other-cluster" {
		t.Errorf("the record is %v", placements.Data)
	}

	step("a Gardenlet that a gardenlet created is not deployed")
	c.create(t, c.virtual, c.gardenlet(t, "own", func(g *seedmanagementv1alpha1.Gardenlet) {
		g.Annotations = map[string]string{seedmanagementv1alpha1.AnnotationCreatedByGardenlet: "true"}
	}))
	c.awaitCondition(t, "own", corev1beta1.ConditionFalse, seedmanagementv1alpha1.AnnotationCreatedByGardenlet)

	step("afterwards, a change is for the gardenlet itself")
	version := env.Await(t, c.runtime, env.Named[*appsv1.Deployment]("garden", "gardenlet"), env.Exists).ResourceVersion
	env.Edit(t, c.virtual, env.Named[*seedmanagementv1alpha1.Gardenlet]("garden", "local"), func(g *seedmanagementv1alpha1.Gardenlet) {
		g.Spec.Deployment.ReplicaCount = new(int32(3))
	})

	step("unless it is to be deployed again")
	env.Edit(t, c.virtual, env.Named[*seedmanagementv1alpha1.Gardenlet]("garden", "local"), func(g *seedmanagementv1alpha1.Gardenlet) {
		metav1.SetMetaDataAnnotation(&g.ObjectMeta, "gardener.cloud/operation", "force-redeploy")
		g.Spec.Deployment.PodAnnotations = map[string]string{"forced": "yes"}
	})
	deployment = env.Await(t, c.runtime, env.Named[*appsv1.Deployment]("garden", "gardenlet"), func(d *appsv1.Deployment) error {
		if d.ResourceVersion == version {
			return errors.New("it has not changed")
		}
		return nil
	})
	if deployment.Spec.Template.Annotations["forced"] != "yes" {
		t.Error("the change before was deployed, too")
	}
	env.Await(t, c.virtual, env.Named[*seedmanagementv1alpha1.Gardenlet]("garden", "local"), func(g *seedmanagementv1alpha1.Gardenlet) error {
		if operation := g.Annotations["gardener.cloud/operation"]; operation != "" {
			return fmt.Errorf("the operation %s is requested still", operation)
		}
		return nil
	})

	step("those that follow the operator get the chart of its release when the Garden is reconciled; of several seeds that are ready, one at first")
	follows := func(g *seedmanagementv1alpha1.Gardenlet) {
		g.Labels = map[string]string{operatorv1alpha1.LabelKeyGardenletAutoUpdates: "true"}
	}
	for _, name := range []string{"wave-a", "wave-b"} {
		c.create(t, c.virtual, builder.Seed(name))
		env.EditStatus(t, c.virtual, env.Named[*corev1beta1.Seed]("", name), func(s *corev1beta1.Seed) {
			s.Status.Gardener = &corev1beta1.Gardener{ID: "a", Name: "gardenlet", Version: "v1.150.0"}
			s.Status.Conditions = []corev1beta1.Condition{{
				Type: corev1beta1.SeedGardenletReady, Status: corev1beta1.ConditionTrue, Reason: "Ready", Message: "it reports",
				LastTransitionTime: metav1.Now(), LastUpdateTime: metav1.Now(),
			}}
		})
		c.create(t, c.virtual, c.gardenlet(t, name, follows))
	}
	c.create(t, c.virtual, c.gardenlet(t, "without-seed", follows))
	c.create(t, c.virtual, c.gardenlet(t, "own-image", follows, func(g *seedmanagementv1alpha1.Gardenlet) {
		g.Spec.Deployment.Image = &seedmanagementv1alpha1.Image{Ref: new(image)}
	}))
	env.EditStatus(t, c.runtime, env.Named[*operatorv1alpha1.Garden]("", "garden"), func(g *operatorv1alpha1.Garden) {
		g.Status.Gardener, g.Status.ObservedGeneration = &corev1beta1.Gardener{ID: "a", Name: "gardener-operator", Version: release}, g.Generation
		g.Status.LastOperation = &corev1beta1.LastOperation{
			Type: corev1beta1.LastOperationTypeReconcile, State: corev1beta1.LastOperationStateSucceeded, Progress: 100, LastUpdateTime: metav1.Now(),
		}
	})
	for _, name := range []string{"without-seed", "wave-a"} {
		env.Await(t, c.virtual, env.Named[*seedmanagementv1alpha1.Gardenlet]("garden", name), func(g *seedmanagementv1alpha1.Gardenlet) error {
			if ref := *g.Spec.Deployment.Helm.OCIRepository.Ref; ref != releaseChart || (g.Annotations[wave.Annotation] != "") != (name == "wave-a") {
				return fmt.Errorf("it has chart %s and annotations %v", ref, g.Annotations)
			}
			// Without it, the gardenlet would deploy the images of the release before.
			if text := g.Spec.Deployment.ImageVectorOverwrite; text == nil || *text != overwrite {
				return errors.New("it does not have the image vector overwrite of the operator")
			}
			return nil
		})
	}
	env.Await(t, c.runtime, env.Named[*operatorv1alpha1.Garden]("", "garden"), func(g *operatorv1alpha1.Garden) error {
		updated := kube.Condition(g.Status.Conditions, operatorv1alpha1.GardenletsUpdated)
		if updated == nil || updated.Status != corev1beta1.ConditionFalse || updated.Reason != operatorv1alpha1.ReasonGardenletsOwnImage ||
			!strings.HasPrefix(updated.Message, "Gardenlets of seeds own-image are not updated, ") ||
			!strings.HasSuffix(updated.Message, " Gardenlets of seeds wave-a are being updated.") {
			return fmt.Errorf("the condition is %+v", updated)
		}
		return nil
	})
	env.EditStatus(t, c.virtual, env.Named[*corev1beta1.Seed]("", "wave-a"), func(s *corev1beta1.Seed) { s.Status.Gardener.Version = release })
	later := env.Await(t, c.virtual, env.Named[*seedmanagementv1alpha1.Gardenlet]("garden", "wave-b"), env.Exists)
	if ref := *later.Spec.Deployment.Helm.OCIRepository.Ref; ref != c.chart {
		t.Errorf("the gardenlet of a second seed has chart %s already", ref)
	}
}

// start starts a garden, two clusters, a registry with the chart and the controller.
func start(t *testing.T) *clusters {
	t.Helper()
	e := env.Start(t, env.Lenient())
	if err := errors.Join(apiextensionsv1.AddToScheme(e.Scheme), operatorv1alpha1.AddToScheme(e.Scheme)); err != nil {
		t.Fatal(err)
	}
	c := &clusters{foreignConfig: e.AddCluster(t), chart: pushChart(t)}
	runtimeConfig := e.AddCluster(t)
	for _, into := range []struct {
		client *client.WithWatch
		config *rest.Config
	}{{&c.virtual, e.Config}, {&c.runtime, runtimeConfig}, {&c.foreign, c.foreignConfig}} {
		var err error
		if *into.client, err = client.NewWithWatch(into.config, client.Options{Scheme: e.Scheme}); err != nil {
			t.Fatal(err)
		}
	}
	definitions, err := crds.Operator()
	if err != nil {
		t.Fatal(err)
	}
	if err := crds.Deploy(t.Context(), c.runtime, "test", definitions...); err != nil {
		t.Fatal(err)
	}
	c.create(t, c.runtime, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden"}})
	c.create(t, c.runtime, &operatorv1alpha1.Garden{
		ObjectMeta: metav1.ObjectMeta{Name: "garden"},
		Spec: operatorv1alpha1.GardenSpec{
			DNS: &operatorv1alpha1.DNSManagement{Providers: []operatorv1alpha1.DNSProvider{{Name: "a", Type: "local", SecretRef: corev1.LocalObjectReference{Name: "dns"}}}},
			RuntimeCluster: operatorv1alpha1.RuntimeCluster{
				Ingress: operatorv1alpha1.Ingress{
					Domains: []operatorv1alpha1.DNSDomain{{Name: "ingress.garden.example"}}, Controller: corev1beta1.IngressController{Kind: "nginx"},
				},
				Networking: operatorv1alpha1.RuntimeNetworking{Pods: []string{"10.1.0.0/16"}, Services: []string{"10.2.0.0/16"}},
			},
			VirtualCluster: operatorv1alpha1.VirtualCluster{
				DNS:         operatorv1alpha1.DNS{Domains: []operatorv1alpha1.DNSDomain{{Name: "garden.example"}}},
				Gardener:    operatorv1alpha1.Gardener{ClusterIdentity: "test"},
				Kubernetes:  operatorv1alpha1.Kubernetes{Version: "1.36.3"},
				Maintenance: operatorv1alpha1.Maintenance{TimeWindow: corev1beta1.MaintenanceTimeWindow{Begin: "220000+0100", End: "230000+0100"}},
				Networking:  operatorv1alpha1.Networking{Services: []string{"100.64.0.0/13"}},
			},
		},
	})
	virtual, err := cluster.New(e.Config, func(o *cluster.Options) { o.Scheme = e.Scheme })
	if err != nil {
		t.Fatal(err)
	}
	mgr, err := manager.New(runtimeConfig, manager.Options{Scheme: e.Scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(mgr.Add(virtual), gardenlet.Add(mgr, gardenlet.Values{
		Virtual: virtual, Image: image, ConcurrentSyncs: 2, Clock: clock.RealClock{},
		Blocked: func(string) string { return "" }, // the servers of this test are on the loopback interface
	}), gardenletcharts.Add(mgr, gardenletcharts.Values{
		Virtual: virtual, VirtualAPI: c.virtual, Chart: releaseChart, Version: release, Clock: clock.RealClock{},
		Overwrites: wave.Overwrites{Images: new(overwrite), Components: new("")},
	})); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- mgr.Start(t.Context()) }()
	t.Cleanup(func() {
		if err := <-done; err != nil {
			t.Errorf("the manager failed: %v", err)
		}
	})
	return c
}

// pushChart serves the chart of the gardenlet in a registry, and returns its reference.
func pushChart(t *testing.T) string {
	t.Helper()
	archive, err := charts.Archive(charts.Gardenlet)
	if err != nil {
		t.Fatal(err)
	}
	return charttest.Push(t, archive)
}

func (c *clusters) create(t *testing.T, in client.Client, object client.Object) {
	t.Helper()
	if err := in.Create(t.Context(), object); err != nil {
		t.Fatalf("create %T %q: %v", object, object.GetName(), err)
	}
}

func (c *clusters) delete(t *testing.T, in client.Client, object client.Object) {
	t.Helper()
	if err := in.Delete(t.Context(), object); err != nil {
		t.Fatalf("delete %T %q: %v", object, object.GetName(), err)
	}
}

// gardenlet returns a Gardenlet with a valid Seed.
func (c *clusters) gardenlet(t *testing.T, name string, changes ...func(*seedmanagementv1alpha1.Gardenlet)) *seedmanagementv1alpha1.Gardenlet {
	t.Helper()
	config, err := json.Marshal(map[string]any{
		"apiVersion": "gardenlet.config.gardener.cloud/v1alpha1", "kind": "GardenletConfiguration",
		"seedConfig": map[string]any{"spec": builder.Seed(name).Spec},
	})
	if err != nil {
		t.Fatal(err)
	}
	g := &seedmanagementv1alpha1.Gardenlet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name},
		Spec: seedmanagementv1alpha1.GardenletSpec{
			Config: &runtime.RawExtension{Raw: config},
			Deployment: seedmanagementv1alpha1.GardenletSelfDeployment{
				Helm: seedmanagementv1alpha1.GardenletHelm{OCIRepository: gardencorev1.OCIRepository{Ref: &c.chart}},
			},
		},
	}
	for _, change := range changes {
		change(g)
	}
	return g
}

func (c *clusters) awaitCondition(t *testing.T, name string, status corev1beta1.ConditionStatus, message string) {
	t.Helper()
	env.Await(t, c.virtual, env.Named[*seedmanagementv1alpha1.Gardenlet]("garden", name), func(g *seedmanagementv1alpha1.Gardenlet) error {
		got := kube.Condition(g.Status.Conditions, "SeedRegistered")
		if got == nil || got.Status != status || !strings.Contains(got.Message, message) {
			return fmt.Errorf("the condition is %+v, want %s with %q", got, status, message)
		}
		return nil
	})
}

// bootstrapToken checks the kubeconfig with which a gardenlet starts, and returns its token.
func (c *clusters) bootstrapToken(t *testing.T, in client.WithWatch, seed string) string {
	t.Helper()
	secret := env.Await(t, in, env.Named[*corev1.Secret]("garden", "gardenlet-kubeconfig-bootstrap"), env.Exists)
	config, err := clientcmd.Load(secret.Data["kubeconfig"])
	if err != nil {
		t.Fatal(err)
	}
	if server := config.Clusters["garden"]; server.Server != "https://api.garden.example" || len(server.CertificateAuthorityData) == 0 {
		t.Errorf("the bootstrap kubeconfig is for %s", server.Server)
	}
	id, _, _ := strings.Cut(config.AuthInfos["gardenlet"].Token, ".")
	token := env.Await(t, c.virtual, env.Named[*corev1.Secret]("kube-system", "bootstrap-token-"+id), env.Exists)
	if got := bootstraptoken.Of(string(token.Data["description"])); got.Seed != seed || id+"."+string(token.Data["token-secret"]) != config.AuthInfos["gardenlet"].Token {
		t.Errorf("the bootstrap token is for %+v", got)
	}
	return id
}
