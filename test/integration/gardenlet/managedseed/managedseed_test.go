// Package managedseed tests how a gardenlet deploys gardenlets into its shoots, with real API servers for the garden and a shoot. It has the rights of
// a gardenlet in the garden.
package managedseed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	crconfig "sigs.k8s.io/controller-runtime/pkg/config"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/component/gardenrbac"
	"gardener.cloud/gardener/internal/gardenlet/managedseed"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/internal/kube/bootstraptoken"
	"gardener.cloud/gardener/pkg/secrets"
	"gardener.cloud/gardener/test/builder"
	"gardener.cloud/gardener/test/env"
)

const (
	image = "registry.example/gardener:v1"
	// The Secrets in the shoot: that with its certificate, which the gardenlet writes, and that with which it starts.
	kubeconfigSecret, bootstrapSecret = "gardenlet-kubeconfig", "gardenlet-kubeconfig-bootstrap"
)

type clusters struct {
	*env.Env
	garden, shoot client.WithWatch
	shootConfig   *rest.Config
	// seed is where the control planes of the shoots are.
	seed  client.Client
	clock clock.PassiveClock
	// stop stops the controller.
	stop func()
}

func TestManagedSeeds(t *testing.T) {
	logf.SetLogger(logr.Discard())
	c := start(t, clock.RealClock{})
	step := env.Story(t)

	step("a ManagedSeed waits for its Shoot")
	c.create(t, managedSeed(t, "child", "a"))
	c.awaitCondition(t, "child", seedmanagementv1alpha1.ManagedSeedShootReconciled, corev1beta1.ConditionFalse, "Waiting for shoot a to be reconciled")

	step("the gardenlet is deployed when it is reconciled")
	c.succeed(t, "a")
	c.awaitCondition(t, "child", seedmanagementv1alpha1.ManagedSeedSeedRegistered, corev1beta1.ConditionProgressing, "has not registered Seed child yet")
	pod := env.Await(t, c.shoot, env.Named[*appsv1.Deployment]("garden", "gardenlet"), env.Exists).Spec.Template
	container := pod.Spec.Containers[0]
	if container.Image != image || pod.Annotations["checksum/seed-backup-secret"] == "" {
		t.Errorf("its pods have image %s and annotations %v", container.Image, pod.Annotations)
	}
	if host := container.Env[len(container.Env)-1]; host.Name != "KUBERNETES_SERVICE_HOST" || host.Value != "api.a.example.com" {
		t.Errorf("its environment is %v", container.Env)
	}
	config := c.configuration(t)
	if config.SeedConfig.Name != "child" || config.SeedConfig.Spec.Ingress.Domain != "ingress.a.example.com" || config.LogLevel != "debug" {
		t.Errorf("its configuration is for %+v, with log level %q", config.SeedConfig, config.LogLevel)
	}
	if got := env.Await(t, c.shoot, env.Named[*corev1.Namespace]("", "garden"), env.Exists); got.Labels["gardener.cloud/role"] != "garden" {
		t.Errorf("the namespace has labels %v", got.Labels)
	}
	token := c.bootstrapKubeconfig(t)
	id, secret, _ := strings.Cut(token, ".")
	stored := env.Await(t, c.garden, env.Named[*corev1.Secret]("kube-system", "bootstrap-token-"+id), env.Exists)
	of := bootstraptoken.Of(string(stored.Data["description"]))
	if string(stored.Data["token-secret"]) != secret || of.Seed != "child" || of.Kind != "ManagedSeed" {
		t.Errorf("the bootstrap token is for %+v", of)
	}

	step("it is done when the Seed is registered")
	c.registerSeed(t, "child")
	c.awaitCondition(t, "child", seedmanagementv1alpha1.ManagedSeedSeedRegistered, corev1beta1.ConditionTrue, "Seed child has been registered")
	env.Await(t, c.garden, env.Named[*seedmanagementv1alpha1.ManagedSeed]("garden", "child"), func(m *seedmanagementv1alpha1.ManagedSeed) error {
		if m.Status.ObservedGeneration != m.Generation || m.Labels["name.seed.gardener.cloud/parent"] != "true" {
			return fmt.Errorf("generation %d, observed %d, labels %v", m.Generation, m.Status.ObservedGeneration, m.Labels)
		}
		return nil
	})

	step("a gardenlet with a certificate gets no bootstrap kubeconfig again")
	c.bootstrapped(t)
	env.Edit(t, c.garden, env.Named[*seedmanagementv1alpha1.ManagedSeed]("garden", "child"), func(m *seedmanagementv1alpha1.ManagedSeed) {
		m.Spec.Gardenlet.Deployment.PodAnnotations = map[string]string{"changed": "yes"}
	})
	env.Await(t, c.shoot, env.Named[*appsv1.Deployment]("garden", "gardenlet"), func(d *appsv1.Deployment) error {
		if d.Spec.Template.Annotations["changed"] != "yes" {
			return errors.New("the change is not deployed")
		}
		return nil
	})
	env.AwaitList(t, c.shoot, func(found []*corev1.Secret) error {
		for _, s := range found {
			if s.Name == bootstrapSecret {
				t.Error("it has a bootstrap kubeconfig")
			}
		}
		return nil
	}, client.InNamespace("garden"))

	step("an operator renews its certificate")
	env.Edit(t, c.garden, env.Named[*seedmanagementv1alpha1.ManagedSeed]("garden", "child"), func(m *seedmanagementv1alpha1.ManagedSeed) {
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, "gardener.cloud/operation", "renew-kubeconfig")
	})
	env.AwaitGone(t, c.shoot, env.Named[*corev1.Secret]("garden", kubeconfigSecret))
	c.bootstrapKubeconfig(t)
	env.Await(t, c.shoot, env.Named[*appsv1.Deployment]("garden", "gardenlet"), func(d *appsv1.Deployment) error {
		if d.Spec.Template.Annotations["seedmanagement.gardener.cloud/bootstrapped-at"] == "" {
			return errors.New("its pods do not start again")
		}
		return nil
	})
	if m := env.Await(t, c.garden, env.Named[*seedmanagementv1alpha1.ManagedSeed]("garden", "child"), env.Exists); m.Annotations["gardener.cloud/operation"] == "" {
		t.Error("the operation is done, without a new certificate")
	}
	c.bootstrapped(t)
	env.Edit(t, c.shoot, env.Named[*appsv1.Deployment]("garden", "gardenlet"), func(d *appsv1.Deployment) {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, "its", "pod is ready")
	})
	env.Await(t, c.garden, env.Named[*seedmanagementv1alpha1.ManagedSeed]("garden", "child"), func(m *seedmanagementv1alpha1.ManagedSeed) error {
		if m.Annotations["gardener.cloud/operation"] != "" || m.Annotations["seedmanagement.gardener.cloud/renewal"] != "" {
			return errors.New("the operation is requested still")
		}
		return nil
	})
	env.Await(t, c.shoot, env.Named[*corev1.Secret]("garden", kubeconfigSecret), env.Exists)

	step("a cluster is one seed only, and another ManagedSeed does not delete its gardenlet")
	c.create(t, managedSeed(t, "second", "b"))
	c.succeed(t, "b")
	c.awaitCondition(t, "second", seedmanagementv1alpha1.ManagedSeedSeedRegistered, corev1beta1.ConditionFalse, `the gardenlet of seed "child" already runs`)
	if err := c.garden.Delete(t.Context(), env.Named[*seedmanagementv1alpha1.ManagedSeed]("garden", "second")); err != nil {
		t.Fatal(err)
	}
	env.AwaitGone(t, c.garden, env.Named[*seedmanagementv1alpha1.ManagedSeed]("garden", "second"))

	step("the Seed is deleted first, then the gardenlet")
	c.remove(t, "child")
	env.AwaitGone(t, c.shoot, env.Named[*rbacv1.ClusterRole]("", "gardener.cloud:system:gardenlet"))

	step("a gardenlet is bootstrapped with a ServiceAccount")
	c.create(t, managedSeed(t, "second", "b", func(m *seedmanagementv1alpha1.ManagedSeed) {
		m.Spec.Gardenlet.Bootstrap = new(seedmanagementv1alpha1.BootstrapServiceAccount)
	}))
	c.awaitCondition(t, "second", seedmanagementv1alpha1.ManagedSeedSeedRegistered, corev1beta1.ConditionProgressing, "has not registered Seed second yet")
	if token := c.bootstrapKubeconfig(t); strings.Count(token, ".") != 2 {
		t.Error("the kubeconfig has no token of a ServiceAccount")
	}
	binding := env.Await(t, c.garden, env.Named[*rbacv1.ClusterRoleBinding]("", "gardener.cloud:system:seed-bootstrapper:garden:gardenlet-bootstrap-second"), env.Exists)
	if len(binding.Subjects) != 1 || binding.Subjects[0].Name != "gardenlet-bootstrap-second" {
		t.Errorf("the subjects are %v", binding.Subjects)
	}
	gardenlet, err := client.New(c.Gardenlet(t, "parent"), client.Options{Scheme: c.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	binding.Subjects[0].Name = "default"
	if err := gardenlet.Update(t.Context(), binding); !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
		t.Errorf("the gardenlet gives the binding to another account: %v", err)
	}
	c.registerSeed(t, "second")
	c.awaitCondition(t, "second", seedmanagementv1alpha1.ManagedSeedSeedRegistered, corev1beta1.ConditionTrue, "Seed second has been registered")

	step("its certificate expires during the deletion, for which it is needed")
	c.bootstrapped(t)
	expires := func(after time.Duration) {
		t.Helper()
		env.EditStatus(t, c.garden, env.Named[*corev1beta1.Seed]("", "second"), func(s *corev1beta1.Seed) {
			s.Status.ClientCertificateExpirationTimestamp = new(metav1.NewTime(c.clock.Now().Add(after).Truncate(time.Second)))
		})
	}
	expires(-time.Hour)
	if err := errors.Join(
		c.garden.Delete(t.Context(), env.Named[*seedmanagementv1alpha1.ManagedSeed]("garden", "second")),
		c.shoot.Delete(t.Context(), env.Named[*corev1.Secret]("garden", kubeconfigSecret)),
	); err != nil {
		t.Fatal(err)
	}
	c.awaitCondition(t, "second", seedmanagementv1alpha1.ManagedSeedSeedRegistered, corev1beta1.ConditionFalse, "Its gardenlet gets a new client certificate for that")
	env.Edit(t, c.shoot, env.Named[*appsv1.Deployment]("garden", "gardenlet"), func(d *appsv1.Deployment) {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, "its", "pod restarts")
	})
	c.bootstrapKubeconfig(t)
	c.bootstrapped(t)
	expires(time.Hour)
	c.remove(t, "second")
}

// start starts a garden, the cluster of a shoot and the controller.
func start(t *testing.T, clk clock.PassiveClock) *clusters {
	t.Helper()
	e := env.Start(t, env.Lenient("ManagedSeed", "SeedMutator", "SeedRestriction"), env.WithAdmissionController())
	shootConfig := e.AddCluster(t)
	c := &clusters{Env: e, shootConfig: shootConfig, clock: clk}
	for _, into := range []struct {
		client *client.WithWatch
		config *rest.Config
	}{{&c.garden, e.Config}, {&c.shoot, shootConfig}} {
		var err error
		if *into.client, err = client.NewWithWatch(into.config, client.Options{Scheme: e.Scheme}); err != nil {
			t.Fatal(err)
		}
	}
	for _, object := range gardenrbac.Objects() {
		if err := c.garden.Create(t.Context(), object); client.IgnoreAlreadyExists(err) != nil {
			t.Fatalf("create %T %s: %v", object, object.GetName(), err)
		}
	}
	e.CallWebhooks(t)
	c.create(t, builder.CloudProfile("local"), builder.Seed("parent"), secret("dns"), secret("backup"), shoot("a"), shoot("b"))
	c.seed = fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(&appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "gardenlet"},
		Spec:       appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: image}}}}},
	}).Build()
	for _, name := range []string{"a", "b"} {
		c.controlPlane(t, c.seed, name)
	}
	c.stop = c.run(t)
	t.Cleanup(c.stop)
	return c
}

// run runs the controller until the returned function is called, which may happen twice.
func (c *clusters) run(t *testing.T) (stop func()) {
	t.Helper()
	e, gardenlet := c.Env, c.Gardenlet(t, "parent")
	gardenAPI, err := client.NewWithWatch(gardenlet, client.Options{Scheme: e.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	own := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{"name.seed.gardener.cloud/parent": "true"})}
	garden, err := cluster.New(gardenlet, func(o *cluster.Options) {
		o.Scheme = e.Scheme
		o.Cache.ByObject = map[client.Object]cache.ByObject{&seedmanagementv1alpha1.ManagedSeed{}: own, &corev1beta1.Shoot{}: own}
	})
	if err != nil {
		t.Fatal(err)
	}
	mgr, err := manager.New(c.shootConfig, manager.Options{
		Scheme: e.Scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: crconfig.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	parent := &gardenletconfigv1alpha1.GardenletConfiguration{LogLevel: "debug"}
	gardenletconfigv1alpha1.DefaultGardenletConfiguration(parent)
	parent.Controllers.ManagedSeed.WaitSyncPeriod.Duration = time.Second
	parent.Controllers.ManagedSeed.SyncJitterPeriod.Duration = 0
	if err := errors.Join(mgr.Add(garden), managedseed.Add(mgr, managedseed.Values{
		SeedName: "parent", Garden: garden, GardenAPI: gardenAPI, SeedAPI: c.seed, Parent: parent, Config: *parent.Controllers.ManagedSeed, Clock: c.clock,
		Connect: func(config *rest.Config) (client.WithWatch, error) {
			if !strings.HasPrefix(config.Host, "https://kube-apiserver.shoot--garden--") {
				return nil, fmt.Errorf("the host is %s", config.Host)
			}
			return c.shoot, nil
		},
	})); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	return sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the manager failed: %v", err)
		}
	})
}

func secret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name}, Data: map[string][]byte{"a": []byte("b")}}
}

// shoot returns a Shoot that can be a seed.
func shoot(name string) *corev1beta1.Shoot {
	return builder.Shoot(name, builder.In("garden"), builder.Workers(1), builder.On("parent"), func(s *corev1beta1.Shoot) {
		s.Spec.DNS = &corev1beta1.DNS{Domain: new(name + ".example.com")}
		s.Spec.Kubernetes.VerticalPodAutoscaler = &corev1beta1.VerticalPodAutoscaler{Enabled: true}
		s.Spec.Provider.Workers[0].Zones = []string{"a"}
	})
}

// managedSeed returns a ManagedSeed whose Seed has backups.
func managedSeed(t *testing.T, name, shoot string, changes ...func(*seedmanagementv1alpha1.ManagedSeed)) *seedmanagementv1alpha1.ManagedSeed {
	t.Helper()
	credentials := map[string]any{"apiVersion": "v1", "kind": "Secret", "namespace": "garden", "name": "backup"}
	config, err := json.Marshal(map[string]any{
		"apiVersion": "gardenlet.config.gardener.cloud/v1alpha1", "kind": "GardenletConfiguration",
		"seedConfig": map[string]any{"spec": map[string]any{
			"backup":   map[string]any{"provider": "local", "credentialsRef": credentials},
			"provider": map[string]any{"type": "local", "region": "local"},
			"dns": map[string]any{
				"provider": map[string]any{"type": "local", "credentialsRef": credentials},
				"internal": map[string]any{"type": "local", "domain": "internal.example.com", "credentialsRef": credentials},
			},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	object := &seedmanagementv1alpha1.ManagedSeed{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name},
		Spec: seedmanagementv1alpha1.ManagedSeedSpec{
			Shoot:     &seedmanagementv1alpha1.Shoot{Name: shoot},
			Gardenlet: seedmanagementv1alpha1.GardenletConfig{Config: &runtime.RawExtension{Raw: config}},
		},
	}
	for _, change := range changes {
		change(object)
	}
	return object
}

// controlPlane puts the CAs of a shoot into the seed, and says in its status where they are.
func (c *clusters) controlPlane(t *testing.T, seed client.Client, shoot string) {
	t.Helper()
	namespace := "shoot--garden--" + shoot
	owner := env.Await(t, c.garden, env.Named[*corev1beta1.Shoot]("garden", shoot), env.Exists)
	if err := seed.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: namespace, Annotations: map[string]string{constants.ShootUIDAnnotation: string(owner.UID)},
	}}); err != nil {
		t.Fatal(err)
	}
	manager, err := secrets.New(t.Context(), secrets.Values{Client: seed, Namespace: namespace, Identity: "gardenlet", Clock: clock.RealClock{}})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ca", "ca-client"} {
		if _, err := manager.Generate(t.Context(), &secrets.CertificateAuthority{Name: name, CommonName: name}); err != nil {
			t.Fatal(err)
		}
	}
	env.EditStatus(t, c.garden, env.Named[*corev1beta1.Shoot]("garden", shoot), func(s *corev1beta1.Shoot) {
		s.Status.TechnicalID, s.Status.SeedName = namespace, new("parent")
	})
}

// succeed says that a Shoot is reconciled.
func (c *clusters) succeed(t *testing.T, shoot string) {
	t.Helper()
	env.EditStatus(t, c.garden, env.Named[*corev1beta1.Shoot]("garden", shoot), func(s *corev1beta1.Shoot) {
		s.Status.ObservedGeneration = s.Generation
		s.Status.LastOperation = &corev1beta1.LastOperation{
			Type: corev1beta1.LastOperationTypeCreate, State: corev1beta1.LastOperationStateSucceeded, Progress: 100, LastUpdateTime: metav1.Now(),
		}
	})
}

// registerSeed does what the gardenlet in the shoot does.
func (c *clusters) registerSeed(t *testing.T, name string) {
	t.Helper()
	gardenlet, err := client.NewWithWatch(c.Gardenlet(t, name), client.Options{Scheme: c.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	domain := c.configuration(t).SeedConfig.Spec.Ingress.Domain
	seed := builder.Seed(name, func(s *corev1beta1.Seed) {
		s.Spec.Ingress.Domain = domain
		s.Spec.DNS.Provider.CredentialsRef.Name, s.Spec.DNS.Internal.CredentialsRef.Name = "backup", "backup"
		s.Finalizers = []string{"gardener"}
	})
	if err := gardenlet.Create(t.Context(), seed); err != nil {
		t.Fatalf("register the Seed: %v", err)
	}
}

// bootstrapKubeconfig returns the token in the kubeconfig with which the gardenlet starts.
func (c *clusters) bootstrapKubeconfig(t *testing.T) string {
	t.Helper()
	secret := env.Await(t, c.shoot, env.Named[*corev1.Secret]("garden", bootstrapSecret), env.Exists)
	config, err := clientcmd.Load(secret.Data["kubeconfig"])
	if err != nil {
		t.Fatal(err)
	}
	if server := config.Clusters["garden"]; server.Server != c.Config.Host || len(server.CertificateAuthorityData) == 0 {
		t.Errorf("the bootstrap kubeconfig is for %s", server.Server)
	}
	return config.AuthInfos["gardenlet"].Token
}

// bootstrapped does what a gardenlet does when it has got its certificate.
func (c *clusters) bootstrapped(t *testing.T) {
	t.Helper()
	ca, err := secrets.New(t.Context(), secrets.Values{
		Client: fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).Build(), Namespace: "a", Identity: "gardenlet", Clock: clock.RealClock{},
	})
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ca.Generate(t.Context(), &secrets.CertificateAuthority{Name: "ca", CommonName: "ca"})
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := secrets.IssueKubeconfig(&secrets.Kubeconfig{
		Name: "garden", Server: c.Config.Host, CA: signer.Data[secrets.DataKeyCertificateCA],
		Certificate: &secrets.Certificate{CommonName: "gardenlet", Usage: secrets.ClientCert, Validity: time.Hour},
	}, signer, c.clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	own := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: kubeconfigSecret}, Data: map[string][]byte{"kubeconfig": kubeconfig}}
	if err := errors.Join(c.shoot.Create(t.Context(), own), c.shoot.Delete(t.Context(), env.Named[*corev1.Secret]("garden", bootstrapSecret))); err != nil {
		t.Fatal(err)
	}
}

// configuration returns that of the gardenlet in the shoot.
func (c *clusters) configuration(t *testing.T) *gardenletconfigv1alpha1.GardenletConfiguration {
	t.Helper()
	file := env.Await(t, c.shoot, env.Named[*corev1.ConfigMap]("garden", "gardenlet"), env.Exists).Data["config.yaml"]
	config := &gardenletconfigv1alpha1.GardenletConfiguration{}
	if err := yaml.UnmarshalStrict([]byte(file), config); err != nil {
		t.Fatal(err)
	}
	return config
}

// remove deletes a ManagedSeed. It does what the gardenlet in the shoot does, and Kubernetes.
func (c *clusters) remove(t *testing.T, name string) {
	t.Helper()
	managedSeed := env.Named[*seedmanagementv1alpha1.ManagedSeed]("garden", name)
	if err := c.garden.Delete(t.Context(), managedSeed); err != nil {
		t.Fatal(err)
	}
	c.awaitCondition(t, name, seedmanagementv1alpha1.ManagedSeedSeedRegistered, corev1beta1.ConditionFalse, "Waiting until Seed "+name+" is deleted")
	env.Await(t, c.shoot, env.Named[*appsv1.Deployment]("garden", "gardenlet"), env.Exists) // it deletes the Seed
	env.Edit(t, c.garden, env.Named[*corev1beta1.Seed]("", name), func(s *corev1beta1.Seed) { s.Finalizers = nil })
	env.AwaitGone(t, c.shoot, env.Named[*appsv1.Deployment]("garden", "gardenlet"))
	namespace := env.Await(t, c.shoot, env.Named[*corev1.Namespace]("", "garden"), func(n *corev1.Namespace) error {
		if n.DeletionTimestamp == nil {
			return errors.New("it is not deleted")
		}
		return nil
	})
	for _, object := range []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}} {
		if err := c.shoot.DeleteAllOf(t.Context(), object, client.InNamespace("garden")); err != nil {
			t.Fatal(err)
		}
	}
	namespace.Spec.Finalizers = nil
	if err := c.shoot.SubResource("finalize").Update(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	env.AwaitGone(t, c.shoot, namespace)
	env.AwaitGone(t, c.garden, managedSeed)
}

func (c *clusters) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := c.garden.Create(t.Context(), object); err != nil {
			t.Fatalf("create %T %q: %v", object, object.GetName(), err)
		}
	}
}

func (c *clusters) awaitCondition(t *testing.T, name string, condition corev1beta1.ConditionType, status corev1beta1.ConditionStatus, message string) {
	t.Helper()
	env.Await(t, c.garden, env.Named[*seedmanagementv1alpha1.ManagedSeed]("garden", name), func(m *seedmanagementv1alpha1.ManagedSeed) error {
		got := kube.Condition(m.Status.Conditions, condition)
		if got == nil || got.Status != status || !strings.Contains(got.Message, message) {
			return fmt.Errorf("the condition is %+v, want %s with %q", got, status, message)
		}
		return nil
	})
}
