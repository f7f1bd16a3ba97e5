package attack

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/component/crds"
	"gardener.cloud/gardener/internal/configfile"
	"gardener.cloud/gardener/internal/gardenlet"
	"gardener.cloud/gardener/internal/gardenlet/seed/system"
	"gardener.cloud/gardener/internal/gardenlet/shoot/lifecycle"
	"gardener.cloud/gardener/test/builder"
	"gardener.cloud/gardener/test/env"
)

const (
	// patience is how long a test waits for something to become so. It takes a second or two on an idle machine.
	patience = 60 * time.Second

	seedName        = "local"
	gardenerVersion = "1.0.0"
	// attackers is the namespace of the project of the attacker.
	attackers = "garden-attacker"
)

// garden is a garden that is its own seed. It has the project "attacker" and what a Shoot needs.
type garden struct {
	*env.Env
	c client.WithWatch
}

// start starts a garden with some admission plugins.
func start(t *testing.T, plugins ...string) *garden {
	t.Helper()
	return startWith(t, env.Lenient(plugins...))
}

// startWith starts a garden with some options.
func startWith(t *testing.T, options ...env.Option) *garden {
	t.Helper()
	e := env.Start(t, append(options, env.Flags(
		"--workload-identity-token-issuer=https://garden.example.com/issuer", "--workload-identity-signing-key-file="+signingKey(t),
	))...)
	for _, add := range []func(*runtime.Scheme) error{
		extensionsv1alpha1.AddToScheme, resourcesv1alpha1.AddToScheme, druidv1alpha1.AddToScheme, machinev1alpha1.AddToScheme, apiextensionsv1.AddToScheme,
		gatewayv1.Install,
	} {
		if err := add(e.Scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.NewWithWatch(e.Config, client.Options{Scheme: e.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	g := &garden{Env: e, c: c}
	seed := builder.Seed(seedName)
	g.create(t,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: attackers, Labels: map[string]string{constants.ProjectName: "attacker"}}},
		namespace("seed-"+seedName),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "dns"}},
		&corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "attacker"}, Spec: corev1beta1.ProjectSpec{Namespace: new(attackers)}},
		builder.CloudProfile(builder.Local),

		&securityv1alpha1.CredentialsBinding{
			ObjectMeta:     metav1.ObjectMeta{Namespace: attackers, Name: "evil"},
			CredentialsRef: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: attackers, Name: "evil"},
			Provider:       securityv1alpha1.CredentialsBindingProvider{Type: "local"},
		},
		seed,
	)
	env.EditStatus(t, c, seed, func(seed *corev1beta1.Seed) {
		seed.Status.ObservedGeneration, seed.Status.Gardener = seed.Generation, &corev1beta1.Gardener{Version: gardenerVersion}
		seed.Status.Conditions = []corev1beta1.Condition{{Type: corev1beta1.SeedGardenletReady, Status: corev1beta1.ConditionTrue}}
	})
	return g
}

// signingKey returns a file with a key for tokens of WorkloadIdentities.
func signingKey(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// reconcileShoots runs the gardenlet's controller for Shoots until the test ends.
func (g *garden) reconcileShoots(t *testing.T) {
	t.Helper()
	gateway, err := crds.Gateway()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(system.DeployCRDs(t.Context(), g.c), crds.Deploy(t.Context(), g.c, "test", gateway...)); err != nil {
		t.Fatal(err)
	}
	component := gardenlet.Component()
	settings, err := configfile.Kind[gardenlet.Config]{AddToScheme: component.Config.AddToScheme}.From(nil)
	if err != nil {
		t.Fatal(err)
	}
	mgr, err := manager.New(g.Config, manager.Options{
		Scheme: g.Scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}, &corev1beta1.InternalSecret{}}}},
		Cache:  cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := lifecycle.Add(mgr, lifecycle.Values{
		SeedName: seedName, Garden: mgr, GardenAPI: g.c, SeedAPI: g.c, Gardener: corev1beta1.Gardener{Version: gardenerVersion},
		Connect: func(config *rest.Config) (client.WithWatch, error) {
			return client.NewWithWatch(config, client.Options{Scheme: g.Scheme})
		},
		Discover: func(*rest.Config) ([]*metav1.APIResourceList, error) { return nil, nil },
		Config:   *settings.Controllers.Shoot, Clock: clock.RealClock{},
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := mgr.Start(ctx); err != nil {
			t.Errorf("the controller ended: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
}

// newShoot returns a Shoot of the attacker. Its credentials are in the Secret "evil", which does not exist yet.
func newShoot(name string) *corev1beta1.Shoot {
	return builder.Shoot(name, builder.In(attackers), builder.Workers(1), builder.On(seedName), func(s *corev1beta1.Shoot) {
		s.Spec.CredentialsBindingName = new("evil")
	})
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func (g *garden) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := g.c.Create(t.Context(), object); err != nil {
			t.Fatalf("create %T %s: %v", object, object.GetName(), err)
		}
	}
}
