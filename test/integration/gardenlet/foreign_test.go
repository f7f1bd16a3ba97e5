package gardenlet

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	resourcemanagerconfigv1alpha1 "gardener.cloud/gardener/api/config/resourcemanager/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	druidv1alpha1 "gardener.cloud/gardener/api/druid/v1alpha1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/imagevector"
	"gardener.cloud/gardener/internal/component/crds"
	resourcemanagercomponent "gardener.cloud/gardener/internal/component/resourcemanager"
	"gardener.cloud/gardener/internal/gardenlet/shoot/lifecycle"
	"gardener.cloud/gardener/internal/process"
	"gardener.cloud/gardener/internal/resourcemanager"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/pkg/extension"
	"gardener.cloud/gardener/pkg/helm"
	"gardener.cloud/gardener/test/builder"
	relied "gardener.cloud/gardener/test/constants"
	"gardener.cloud/gardener/test/env"
	"gardener.cloud/gardener/test/foreign"
	"gardener.cloud/gardener/test/ports"
)

// foreignSeed is a seed whose infrastructure has an extension that was written for the original, with the gardenlet's controller of Shoots.
type foreignSeed struct {
	*garden
	// port is that of the extension's webhook.
	port int
	// extension has the permissions of the extension.
	extension *rest.Config
	// shootAPI is the kube-apiserver of all shoots.
	shootAPI client.WithWatch
}

const (
	foreignNamespace = "extension-" + foreign.Name
	foreignShoots    = "garden-dev"
)

// startForeignSeed starts a seed with everything but the extension. All shoots have the same kube-apiserver.
func startForeignSeed(t *testing.T, concurrency int) *foreignSeed {
	t.Helper()
	logf.SetLogger(logr.Discard())
	e := env.Start(t, env.Lenient())
	if err := errors.Join(addKinds(e.Scheme), druidv1alpha1.AddToScheme(e.Scheme), gatewayv1.Install(e.Scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(e.Config, client.Options{Scheme: e.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	s := &foreignSeed{garden: &garden{Env: e, c: c}, port: ports.Free(t, 1)[0]}
	for _, read := range []func() ([]*apiextensionsv1.CustomResourceDefinition, error){
		crds.Extensions, crds.Resources, crds.Druid, crds.Machine, crds.Gateway, crds.VerticalPodAutoscaler, crds.Autoscaling, crds.Foreign,
	} {
		definitions, err := read()
		if err == nil {
			err = crds.Deploy(t.Context(), c, "test", definitions...)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s.create(t)
	(&agent{seed: c}).playExtensions(t, "")
	(&agent{seed: c}).playOthers(t)
	s.playNodes(t)
	s.install(t)
	shoot := e.AddCluster(t)
	if s.shootAPI, err = client.NewWithWatch(shoot, client.Options{Scheme: e.Scheme}); err != nil {
		t.Fatal(err)
	}
	(&garden{c: s.shootAPI}).playNodes(t)
	play(t, s.shootAPI, &appsv1.DaemonSetList{}, func(ctx context.Context, d *appsv1.DaemonSet) error {
		if d.Status.ObservedGeneration == d.Generation {
			return nil
		}
		d.Status.ObservedGeneration = d.Generation
		return s.shootAPI.Status().Update(ctx, d)
	})
	s.manageResources(t, resourcemanagercomponent.ForSeed(), e.Config)
	s.manageResources(t, resourcemanagercomponent.ForShoot(resourcemanagercomponent.ShootOptions{Namespace: "shoot--dev--crazy-botany", ClusterIdentity: "seed"}), shoot)
	s.reconcileShoots(t, concurrency)
	return s
}

// create creates what Shoots need in the garden, and a gateway.
func (s *foreignSeed) create(t *testing.T) {
	t.Helper()
	seed := builder.Seed(seedName, func(s *corev1beta1.Seed) { s.Spec.Provider.Type = foreign.Type })
	gateway := &gatewayv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{Namespace: "gateway", Name: "gateway"},
		Spec:       gatewayv1.GatewaySpec{GatewayClassName: "x", Listeners: []gatewayv1.Listener{{Name: "http", Port: 80, Protocol: gatewayv1.HTTPProtocolType}}},
	}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: foreignShoots, Labels: map[string]string{constants.ProjectName: "dev"}}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "gateway"}}, gateway, seed,
		// The label is for a probe of the webhook.
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: foreignNamespace, Labels: map[string]string{"shoot.gardener.cloud/provider": foreign.Type}}},
		&corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "dev"}, Spec: corev1beta1.ProjectSpec{Namespace: new(foreignShoots)}},
		builder.CloudProfile(builder.Local, func(p *corev1beta1.CloudProfile) { p.Spec.Type = foreign.Type }),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "dns"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: foreignShoots, Name: builder.Local}, Data: map[string][]byte{"token": []byte("secret")}},
		&securityv1alpha1.CredentialsBinding{
			ObjectMeta:     metav1.ObjectMeta{Namespace: foreignShoots, Name: builder.Local},
			CredentialsRef: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: foreignShoots, Name: builder.Local},
			Provider:       securityv1alpha1.CredentialsBindingProvider{Type: foreign.Type},
		},
	} {
		if err := s.c.Create(t.Context(), object); err != nil {
			t.Fatalf("create %T %s: %v", object, object.GetName(), err)
		}
	}
	env.EditStatus(t, s.c, seed, func(s *corev1beta1.Seed) {
		s.Status.Gardener, s.Status.ObservedGeneration = &corev1beta1.Gardener{Version: "v1", Name: "gardenlet", ID: "a"}, s.Generation
		s.Status.Conditions = []corev1beta1.Condition{{Type: corev1beta1.SeedGardenletReady, Status: corev1beta1.ConditionTrue}}
	})
	env.EditStatus(t, s.c, gateway, func(g *gatewayv1.Gateway) { g.Status.Addresses = []gatewayv1.GatewayStatusAddress{{Value: "10.0.0.1"}} })
}

// install installs the chart of the extension as the gardenlet would, and gets the token of its pods.
func (s *foreignSeed) install(t *testing.T) {
	t.Helper()
	chart, err := foreign.Chart()
	if err != nil {
		t.Fatal(err)
	}
	objects, err := helm.RenderDirectory(chart, helm.Release{Name: foreign.Name, Namespace: foreignNamespace})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if err := s.c.Create(t.Context(), object); err != nil {
			t.Fatalf("create %s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
	request := &authenticationv1.TokenRequest{}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: foreignNamespace, Name: foreign.Name}}
	if err := s.c.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}
	s.extension = env.WithToken(s.Config, request.Status.Token)
}

// runExtension runs the extension until the test ends, or until the function is called.
func (s *foreignSeed) runExtension(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := foreign.Run(ctx, foreign.Values{Config: s.extension, Namespace: foreignNamespace, Port: s.port}); err != nil && ctx.Err() == nil {
			t.Errorf("the extension ended: %v", err)
		}
	})
	stop = func() { cancel(); running.Wait() }
	t.Cleanup(stop)
	probe := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: foreignNamespace, Name: "probe", Labels: map[string]string{"gardener.cloud/purpose": "cloudprovider"}},
		Data:       map[string][]byte{"token": []byte("secret")},
	}
	env.AwaitRequest(t, func(ctx context.Context) error {
		called := probe.DeepCopy()
		if err := s.c.Create(ctx, called, client.DryRunAll); err != nil {
			return err
		}
		if len(called.Data["credentialsFile"]) == 0 {
			return errors.New("the webhook of the extension has not changed the Secret")
		}
		return nil
	})
	return stop
}

// manageResources runs a gardener-resource-manager, without its webhooks.
func (s *foreignSeed) manageResources(t *testing.T, c resourcemanagerconfigv1alpha1.ResourceManagerConfiguration, target *rest.Config) {
	t.Helper()
	c.Webhooks = resourcemanagerconfigv1alpha1.ResourceManagerWebhookConfiguration{}
	c.LeaderElection.LeaderElect = new(false)
	c.SourceClientConnection.Kubeconfig = env.KubeconfigFile(t, s.Config)
	if c.TargetClientConnection != nil {
		c.TargetClientConnection.Kubeconfig = env.KubeconfigFile(t, target)
	}
	resourcemanagerconfigv1alpha1.SetDefaults(&c)
	c.Server.HealthProbes, c.Server.Metrics = nil, nil
	component := resourcemanager.Component()
	options := component.Options
	component.Options = func(c *resourcemanagerconfigv1alpha1.ResourceManagerConfiguration, o *manager.Options) {
		options(c, o)
		o.Controller.SkipNameValidation = new(true) // one process has several of them here
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := component.Run(ctx, &c, logr.Discard()); err != nil && ctx.Err() == nil {
			t.Errorf("gardener-resource-manager ended: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
}

// playManagedResources does what the gardener-resource-manager of a shoot does, with nothing in the shoot.
func (s *foreignSeed) playManagedResources(t *testing.T, namespace string) {
	t.Helper()
	play(t, s.c, &resourcesv1alpha1.ManagedResourceList{}, func(ctx context.Context, mr *resourcesv1alpha1.ManagedResource) error {
		if mr.Namespace != namespace || mr.Status.ObservedGeneration == mr.Generation {
			return nil
		}
		mr.Status.ObservedGeneration, mr.Status.Conditions = mr.Generation, nil
		for typ, status := range map[corev1beta1.ConditionType]corev1beta1.ConditionStatus{
			resourcesv1alpha1.ResourcesApplied: corev1beta1.ConditionTrue, resourcesv1alpha1.ResourcesHealthy: corev1beta1.ConditionTrue,
			resourcesv1alpha1.ResourcesProgressing: corev1beta1.ConditionFalse,
		} {
			mr.Status.Conditions = append(mr.Status.Conditions, corev1beta1.Condition{
				Type: typ, Status: status, Reason: "Test", Message: "test", LastTransitionTime: metav1.Now(), LastUpdateTime: metav1.Now(),
			})
		}
		return s.c.Status().Update(ctx, mr)
	})
}

// reconcileShoots runs the gardenlet's controller of Shoots.
func (s *foreignSeed) reconcileShoots(t *testing.T, concurrency int) {
	t.Helper()
	mgr, err := manager.New(s.Config, manager.Options{
		Scheme: s.Scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
		Logger: process.NewLogger(t.Output(), "debug", "text"),
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}, &corev1beta1.InternalSecret{}}}},
		Cache:  cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
	})
	if err != nil {
		t.Fatal(err)
	}
	images, err := imagevector.Default()
	if err != nil {
		t.Fatal(err)
	}
	hour := &metav1.Duration{Duration: time.Hour}
	if err := lifecycle.Add(mgr, lifecycle.Values{
		SeedName: seedName, Garden: mgr, GardenAPI: s.c, SeedAPI: s.c, Images: images, Clock: clock.RealClock{},
		Connect:     func(*rest.Config) (client.WithWatch, error) { return s.shootAPI, nil },
		Discover:    func(*rest.Config) ([]*metav1.APIResourceList, error) { return nil, nil },
		Gardener:    corev1beta1.Gardener{Version: "v1", Name: "gardenlet", ID: "a"},
		SavesStates: func(context.Context) (bool, error) { return true, nil },
		Config: gardenletconfigv1alpha1.ShootControllerConfiguration{
			ConcurrentSyncs: &concurrency, SyncPeriod: hour, RetryDuration: hour, DNSEntryTTLSeconds: new(int64(120)),
		},
	}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := mgr.Start(ctx); err != nil && ctx.Err() == nil {
			t.Errorf("the gardenlet ended: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
}

// playOthers does what the extensions for networks and operating systems do.
func (a *agent) playOthers(t *testing.T) {
	t.Helper()
	play(t, a.seed, &extensionsv1alpha1.NetworkList{}, func(ctx context.Context, n *extensionsv1alpha1.Network) error { return a.operate(ctx, n) })
	play(t, a.seed, &extensionsv1alpha1.OperatingSystemConfigList{}, func(ctx context.Context, c *extensionsv1alpha1.OperatingSystemConfig) error {
		if c.Spec.Purpose == extensionsv1alpha1.OperatingSystemConfigPurposeProvision {
			data := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: "osc-result-" + c.Name}, Data: map[string][]byte{"cloud_config": []byte("#!/bin/bash")}}
			if err := a.seed.Create(ctx, data); client.IgnoreAlreadyExists(err) != nil {
				return err
			}
			c.Status.CloudConfig = &extensionsv1alpha1.CloudConfig{SecretRef: corev1.SecretReference{Namespace: data.Namespace, Name: data.Name}}
		}
		return a.operate(ctx, c)
	})
}

// deployments returns those of the control plane of the Shoot.
func (s *foreignSeed) deployments(t *testing.T) relied.Objects {
	t.Helper()
	list, objects := &appsv1.DeploymentList{}, relied.Objects{}
	if err := s.c.List(t.Context(), list, client.InNamespace("shoot--dev--crazy-botany")); err != nil {
		t.Fatal(err)
	}
	for _, d := range list.Items {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&d)
		if err != nil {
			t.Fatal(err)
		}
		objects["Deployment/"+d.Name] = content
	}
	return objects
}

func (s *foreignSeed) shoot(name string, changes ...func(*corev1beta1.Shoot)) *corev1beta1.Shoot {
	return builder.Shoot(name, slices.Concat([]func(*corev1beta1.Shoot){
		builder.In(foreignShoots), builder.Workers(1), builder.On(seedName), builder.Window, func(shoot *corev1beta1.Shoot) {
			shoot.Spec.Provider.Type = foreign.Type
			shoot.Spec.Provider.Workers[0].Zones = []string{"acme-1a"}
			shoot.Spec.Provider.Workers[0].CABundle = new(string(s.Config.CAData))
		},
	}, changes)...)
}

// TestForeignExtension reconciles a Shoot with an extension that was written for the original: the gardenlet's objects, after its webhook has changed them,
// still have what other extensions look for, and what it has written itself is applied.
func TestForeignExtension(t *testing.T) {
	s := startForeignSeed(t, 1)
	stop := s.runExtension(t)
	shoot := s.shoot("crazy-botany")
	if err := s.c.Create(t.Context(), shoot); err != nil {
		t.Fatal(err)
	}
	succeeded := func(after time.Time) func(*corev1beta1.Shoot) error {
		return func(shoot *corev1beta1.Shoot) error {
			last := shoot.Status.LastOperation
			if last == nil || last.State != corev1beta1.LastOperationStateSucceeded || last.LastUpdateTime.Time.Before(after) {
				return fmt.Errorf("last operation is %+v, errors are %+v", last, shoot.Status.LastErrors)
			}
			return nil
		}
	}
	env.Await(t, s.c, shoot, succeeded(time.Time{}))
	check := func(t *testing.T) {
		objects := relied.Read(t, s.c)
		relied.Compare(t, objects)
		for _, c := range foreignChanges {
			t.Run(c.object+" "+c.path, func(t *testing.T) {
				if got := objects.At(c.object, c.path); got != c.want {
					t.Errorf("%q, want %q", got, c.want)
				}
			})
		}
		t.Logf("%d values that the extension has written", len(foreignChanges))
	}
	t.Run("objects of the gardenlet", check)
	t.Run("nodes", s.testForeignNodes)
	t.Run("objects of the extension", s.testForeignObjects)
	t.Run("again", func(t *testing.T) {
		before := s.generations(t)
		now := time.Now().Truncate(time.Second).Add(time.Second)
		env.Edit(t, s.c, shoot, func(shoot *corev1beta1.Shoot) {
			metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, constants.GardenerOperation, constants.GardenerOperationReconcile)
		})
		env.Await(t, s.c, shoot, succeeded(now))
		if diff := cmp.Diff(before, s.generations(t)); diff != "" {
			t.Errorf("the gardenlet and the webhook change these in turn (-first +second):\n%s", diff)
		}
		check(t)
	})
	stop()
	whole := t
	t.Run("its webhook fails", func(t *testing.T) { s.testForeignFailures(t, whole) })
	t.Run("the Shoot says so, and others are not held up", func(t *testing.T) {
		s.playManagedResources(t, "shoot--dev--other")
		env.Edit(t, s.c, env.Named[*admissionregistrationv1.MutatingWebhookConfiguration]("", foreign.Configuration), func(c *admissionregistrationv1.MutatingWebhookConfiguration) {
			// The one for etcd is that of the infrastructure of the seed, which all its shoots depend on.
			c.Webhooks = slices.DeleteFunc(c.Webhooks, func(w admissionregistrationv1.MutatingWebhook) bool {
				return strings.HasPrefix(w.Name, "seedprovider.")
			})
			for i := range c.Webhooks {
				c.Webhooks[i].TimeoutSeconds = new(int32(10)) // as extensions register them
			}
		})
		now := time.Now().Truncate(time.Second).Add(time.Second)
		env.Edit(t, s.c, shoot, func(shoot *corev1beta1.Shoot) {
			metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, constants.GardenerOperation, constants.GardenerOperationReconcile)
		})
		fails := func(shoot *corev1beta1.Shoot) error {
			for _, e := range shoot.Status.LastErrors {
				if strings.Contains(e.Description, foreignAdvice) && strings.Contains(shoot.Status.LastOperation.Description, foreignAdvice) && len(e.Codes) == 0 {
					return nil
				}
			}
			return fmt.Errorf("last errors are %+v, last operation is %+v", shoot.Status.LastErrors, shoot.Status.LastOperation)
		}
		env.Await(t, s.c, shoot, fails)
		// The only worker is busy for as long as one request takes, 10 s, and not for that of five tries.
		if took := time.Since(now); took > 45*time.Second {
			t.Errorf("other Shoots had to wait for %s", took)
		}
		other := builder.Shoot("other", builder.In(foreignShoots), builder.On(seedName), builder.Window)
		if err := s.c.Create(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		env.Await(t, s.c, other, succeeded(now))
		// It is retried, as the owner cannot do anything about it, and succeeds by itself.
		stop = s.runExtension(whole)
		env.Await(t, s.c, shoot, succeeded(now))
	})
	t.Run("its webhook changes nothing any more", func(t *testing.T) {
		// What somebody else has added stays: only what nobody has goes.
		edited := env.Named[*appsv1.Deployment]("shoot--dev--crazy-botany", "kube-apiserver")
		env.Edit(t, s.c, edited, func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].Env = append(d.Spec.Template.Spec.Containers[0].Env, corev1.EnvVar{Name: "GODEBUG", Value: "x509ignoreCN=0"})
		})
		template := "spec template "
		added := []foreignChange{
			{"Deployment/kube-apiserver", template + "spec volumes [name=token-webhook] name", ""},
			{"Deployment/kube-apiserver", template + "spec containers [name=kube-apiserver] volumeMounts [name=token-webhook] name", ""},
			{"Deployment/kube-apiserver", template + "metadata labels networking.resources.gardener.cloud/to-acme-webhook-tcp-8443", ""},
			{"Deployment/kube-apiserver", template + "spec containers [name=kube-apiserver] env [name=GODEBUG] value", "x509ignoreCN=0"},
			{"Deployment/kube-controller-manager", template + "spec volumes [name=cloud-provider-config] name", ""},
			{"Deployment/machine-controller-manager", template + "spec containers [name=machine-controller-manager-provider-acme] name", ""},
		}
		before := s.deployments(t)
		for _, c := range added {
			if before.At(c.object, c.path) == "" {
				t.Errorf("%s: there is no %s before", c.object, c.path)
			}
		}
		if err := s.c.Delete(t.Context(), env.Named[*admissionregistrationv1.MutatingWebhookConfiguration]("", foreign.Configuration)); err != nil {
			t.Fatal(err)
		}
		now := time.Now().Truncate(time.Second).Add(time.Second)
		env.Edit(t, s.c, shoot, func(shoot *corev1beta1.Shoot) {
			metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, constants.GardenerOperation, constants.GardenerOperationReconcile)
		})
		env.Await(t, s.c, shoot, succeeded(now))
		after := s.deployments(t)
		for _, c := range added {
			if got := after.At(c.object, c.path); got != c.want {
				t.Errorf("%s: %s is %q, want %q", c.object, c.path, got, c.want)
			}
		}
	})
	stop()
	t.Run("it does not run", func(t *testing.T) { s.testForeignStops(t, shoot, succeeded) })
}

// testForeignStops reconciles a Shoot while the extension does not run. The Shoot says so soon, so that others of the seed are not held up, and is reconciled
// when the extension runs again.
func (s *foreignSeed) testForeignStops(t *testing.T, shoot *corev1beta1.Shoot, succeeded func(after time.Time) func(*corev1beta1.Shoot) error) {
	registration := &corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: foreign.Name}}
	for _, kind := range []string{"Infrastructure", "ControlPlane", "Worker"} {
		registration.Spec.Resources = append(registration.Spec.Resources, corev1beta1.ControllerResource{Kind: kind, Type: foreign.Type})
	}
	// What the extension has reported before is not newer than two periods later, when the heartbeat is stale.
	stale := time.Now()
	heartbeat := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: foreignNamespace, Name: extension.HeartbeatLease},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new(foreign.Name), LeaseDurationSeconds: new(int32(1)), RenewTime: new(metav1.NewMicroTime(stale))},
	}
	for _, object := range []client.Object{registration, heartbeat, &corev1beta1.ControllerInstallation{
		ObjectMeta: metav1.ObjectMeta{Name: foreign.Name},
		Spec: corev1beta1.ControllerInstallationSpec{
			SeedRef: &corev1.ObjectReference{Name: seedName}, RegistrationRef: corev1.ObjectReference{Name: foreign.Name},
		},
	}} {
		if err := s.c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	s.playManagedResources(t, "shoot--dev--another")
	now := time.Now().Truncate(time.Second).Add(time.Second)
	env.Edit(t, s.c, shoot, func(shoot *corev1beta1.Shoot) {
		metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, constants.GardenerOperation, constants.GardenerOperationReconcile)
	})
	want := fmt.Sprintf(`extension "provider-acme" does not run: it has not renewed its heartbeat, Lease "gardener-extension-heartbeat", since %s: `+
		`see its pods and their logs in namespace "extension-provider-acme" of the seed, and ControllerInstallation "provider-acme"`, stale.UTC().Format(time.RFC3339))
	env.Await(t, s.c, shoot, func(shoot *corev1beta1.Shoot) error {
		for _, e := range shoot.Status.LastErrors {
			if strings.Contains(e.Description, want) {
				return nil
			}
		}
		return fmt.Errorf("last errors are %+v, last operation is %+v", shoot.Status.LastErrors, shoot.Status.LastOperation)
	})
	if took := time.Since(now); took > 3*time.Minute { // it would be ten
		t.Errorf("the only worker of the gardenlet was busy for %s", took)
	}
	other := builder.Shoot("another", builder.In(foreignShoots), builder.On(seedName), builder.Window)
	if err := s.c.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	env.Await(t, s.c, other, succeeded(now))
	s.runExtension(t)
	env.Edit(t, s.c, heartbeat, func(l *coordinationv1.Lease) { l.Spec.RenewTime = new(metav1.NowMicro()) })
	env.Await(t, s.c, shoot, succeeded(now))
}

// foreignAdvice is what users are told when the webhook of the extension fails.
const foreignAdvice = `webhook "cloudprovider.acme.extensions.gardener.cloud" of the extension with MutatingWebhookConfiguration "gardener-extension-provider-acme"`

// testForeignFailures applies an object as the gardenlet does, in each way in which the webhook can fail. At the end it does not respond in time, until
// the whole test ends.
func (s *foreignSeed) testForeignFailures(t, whole *testing.T) {
	ended := make(chan struct{})
	serve := func(respond http.HandlerFunc) *httptest.Server {
		server := httptest.NewUnstartedServer(respond)
		server.Config.ErrorLog = log.New(io.Discard, "", 0) // of connections that the kube-apiserver refuses
		server.StartTLS()
		whole.Cleanup(server.Close)
		return server
	}
	crashes := serve(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	fails := serve(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "out of order", http.StatusInternalServerError)
	})
	slow := serve(func(http.ResponseWriter, *http.Request) { <-ended })
	recovers := serve((&admission.Webhook{Handler: admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
		return admission.Errored(http.StatusInternalServerError, errors.New("panic: nil map [recovered]"))
	})}).ServeHTTP)
	whole.Cleanup(func() { close(ended) }) // before the servers are closed, which wait for their requests
	run := &stage.Run{SeedAPI: s.c, FieldManager: "gardenlet"}
	for _, tc := range []struct {
		name string
		// server is nil if none listens.
		server *httptest.Server
		// says is what the kube-apiserver says.
		says   string
		change func(*admissionregistrationv1.WebhookClientConfig)
	}{
		{name: "it is not running", says: "connection refused"},
		{name: "its certificate is of another CA", server: fails, says: "certificate signed by unknown authority", change: func(c *admissionregistrationv1.WebhookClientConfig) {
			c.CABundle = s.Config.CAData
		}},
		{name: "it closes the connection", server: crashes, says: "EOF"},
		{name: "it responds with an error", server: fails, says: "out of order"},
		{name: "it refuses objects", server: recovers, says: "panic: nil map"},
		{name: "it is slow", server: slow, says: "context deadline exceeded"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			env.Edit(t, s.c, env.Named[*admissionregistrationv1.MutatingWebhookConfiguration]("", foreign.Configuration), func(c *admissionregistrationv1.MutatingWebhookConfiguration) {
				for i := range c.Webhooks {
					if w := &c.Webhooks[i]; tc.server != nil {
						w.ClientConfig.URL = new(tc.server.URL + "/" + w.Name)
						w.ClientConfig.CABundle = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tc.server.Certificate().Raw})
						w.TimeoutSeconds = new(int32(1))
						if tc.change != nil {
							tc.change(&w.ClientConfig)
						}
					}
				}
			})
			var err error
			env.AwaitRequest(t, func(ctx context.Context) error { // until the kube-apiserver has observed the change of the registration
				err = run.Apply(ctx, &corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: foreignNamespace, Name: "probe", Labels: map[string]string{"gardener.cloud/purpose": "cloudprovider"}},
				})
				if err == nil || !strings.Contains(err.Error(), tc.says) {
					return fmt.Errorf("apply a Secret: %v, want an error with %q", err, tc.says) //nolint:errorlint // it may be nil
				}
				return nil
			})
			want := foreignAdvice + map[bool]string{false: " does not respond as it should", true: " refuses the request"}[tc.server == recovers] +
				`: see its pods and their logs in namespace "extension-provider-acme" of the seed, and ControllerInstallation "provider-acme"`
			if !strings.HasSuffix(err.Error(), want) || len(errorcode.Of(err)) > 0 {
				t.Errorf("error is %v\nwant: %s", err, want)
			}
		})
	}
}

// foreignChanges are what the extension has changed, by its own rules.
var foreignChanges = func() []foreignChange {
	const (
		server, manager = "Deployment/kube-apiserver", "Deployment/kube-controller-manager"
		machines        = "Deployment/machine-controller-manager"
		sidecar         = "machine-controller-manager-provider-acme"
		shoot           = "shoot--dev--crazy-botany"
	)
	in := func(container, path string) string {
		return "spec template spec containers [name=" + container + "] " + path
	}
	return []foreignChange{
		{server, in("kube-apiserver", "args [--feature-gates=]"), "--feature-gates=ImageVolume=true"},
		{server, in("kube-apiserver", "args [--authentication-token-webhook-cache-ttl=]"), "--authentication-token-webhook-cache-ttl=10s"},
		{server, in("kube-apiserver", "volumeMounts [name=token-webhook] mountPath"), "/etc/webhook/config"},
		{server, "spec template spec volumes [name=token-webhook] secret secretName", "token-webhook"},
		{server, "spec template metadata labels networking.resources.gardener.cloud/to-acme-webhook-tcp-8443", "allowed"},
		{manager, in("kube-controller-manager", "command [--cloud-provider=]"), "--cloud-provider=external"},
		{manager, in("kube-controller-manager", "command [--allocate-node-cidrs=]"), "--allocate-node-cidrs=false"},
		{manager, in("kube-controller-manager", "command [--configure-cloud-routes=]"), "--configure-cloud-routes=false"},
		{manager, in("kube-controller-manager", "command [--profiling=]"), ""},
		{manager, "spec template spec volumes [name=cloud-provider-config] configMap name", "cloud-provider-config"},
		{"Deployment/kube-scheduler", in("kube-scheduler", "command [--feature-gates=]"), "--feature-gates=ImageVolume=true"},
		{"Deployment/cluster-autoscaler", in("cluster-autoscaler", "command [--feature-gates=]"), "--feature-gates=ImageVolume=true"},
		{"Deployment/cluster-autoscaler", in("cluster-autoscaler", "command [--nodes=]"), "--nodes=1:3:" + shoot + "." + shoot + "-a-z1"},
		{machines, "spec template spec containers #", "2"},
		{machines, in(sidecar, "args [--target-kubeconfig=]"), "--target-kubeconfig=/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig/kubeconfig"},
		{machines, in(sidecar, "args [--namespace=]"), "--namespace=" + shoot},
		{"VerticalPodAutoscaler/machine-controller-manager-vpa", "spec resourcePolicy containerPolicies [containerName=" + sidecar + "] controlledValues", "RequestsOnly"},
		{"Secret/cloudprovider", "data credentialsFile", base64.StdEncoding.EncodeToString([]byte("token = secret\n"))},
	}
}()

type foreignChange struct{ object, path, want string }

// testForeignNodes checks what nodes get: the OperatingSystemConfig as the webhook has changed it, in the Secret that gardener-node-agent reads.
func (s *foreignSeed) testForeignNodes(t *testing.T) {
	worker := &extensionsv1alpha1.Worker{}
	if err := s.c.Get(t.Context(), client.ObjectKey{Namespace: "shoot--dev--crazy-botany", Name: "crazy-botany"}, worker); err != nil {
		t.Fatal(err)
	}
	secret := env.Await(t, s.shootAPI, env.Named[*corev1.Secret]("kube-system", *worker.Spec.Pools[0].NodeAgentSecretName), env.Exists)
	osc := &extensionsv1alpha1.OperatingSystemConfig{}
	if err := yaml.Unmarshal(secret.Data["osc.yaml"], osc); err != nil {
		t.Fatal(err)
	}
	contents := map[string]string{}
	for _, u := range osc.Spec.Units {
		contents[u.Name] = ptr.Deref(u.Content, "")
	}
	for _, f := range osc.Spec.Files {
		if f.Content.Inline == nil {
			continue
		}
		data, err := []byte(f.Content.Inline.Data), error(nil)
		if f.Content.Inline.Encoding == "b64" {
			data, err = base64.StdEncoding.DecodeString(f.Content.Inline.Data)
		}
		if err != nil {
			t.Fatal(err)
		}
		contents[f.Path] = string(data)
	}
	for at, want := range map[string]string{
		"kubelet.service":                     "--cloud-provider=external",
		"/var/lib/kubelet/config/kubelet":     "enableControllerAttachDetach: true",
		"/etc/sysctl.d/99-k8s-general.conf":   "net.ipv4.neigh.default.gc_thresh1 = 0",
		"/var/lib/kubelet/cloudprovider.conf": "region = acme-1",
		"acme-metadata.service":               "ExecStart=/usr/bin/acme-metadata",
	} {
		if !strings.Contains(contents[at], want) {
			t.Errorf("%s does not have %q:\n%s", at, want, contents[at])
		}
	}
	if n := strings.Count(contents["kubelet.service"], "--cloud-provider"); n != 1 {
		t.Errorf("the flag is there %d times", n)
	}
}

// testForeignObjects checks what became of the objects that the extension has written: in the seed, and in the shoot.
func (s *foreignSeed) testForeignObjects(t *testing.T) {
	const namespace = "shoot--dev--crazy-botany"
	token := env.Await(t, s.c, env.Named[*corev1.Secret](namespace, "shoot-access-cloud-controller-manager"), func(secret *corev1.Secret) error {
		if len(secret.Data["token"]) == 0 {
			return errors.New("it has no token")
		}
		return nil
	})
	if account := token.Annotations["serviceaccount.resources.gardener.cloud/name"]; account != "cloud-controller-manager" {
		t.Errorf("the token is for %q", account)
	}
	config := env.Await(t, s.c, env.Named[*corev1.ConfigMap](namespace, "cloud-provider-config"), env.Exists)
	if want := "region: local\nnetwork: network-of-" + namespace + "\n"; config.Data["cloudprovider.conf"] != want {
		t.Errorf("the configuration of the cloud provider is %q", config.Data)
	}
	manager := env.Await(t, s.c, env.Named[*appsv1.Deployment](namespace, "cloud-controller-manager"), env.Exists)
	for _, source := range manager.Spec.Template.Spec.Volumes[0].Projected.Sources {
		mounted := env.Await(t, s.c, env.Named[*corev1.Secret](namespace, source.Secret.Name), env.Exists)
		if key := source.Secret.Items[0].Key; len(mounted.Data[key]) == 0 {
			t.Errorf("Secret %q has no key %q", mounted.Name, key)
		}
	}
	for _, object := range []struct{ apiVersion, kind, namespace, name string }{
		{"monitoring.coreos.com/v1", "ServiceMonitor", namespace, "shoot-cloud-controller-manager"},
		{"autoscaling.k8s.io/v1", "VerticalPodAutoscaler", namespace, "cloud-controller-manager-vpa"},
		{"fluentbit.fluent.io/v1alpha2", "ClusterFilter", "", "cloud-controller-manager-acme"},
		{"machine.sapcloud.io/v1alpha1", "MachineClass", namespace, namespace + "-a-z1"},
		{"machine.sapcloud.io/v1alpha1", "MachineDeployment", namespace, namespace + "-a-z1"},
	} {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion(object.apiVersion)
		u.SetKind(object.kind)
		if err := s.c.Get(t.Context(), client.ObjectKey{Namespace: object.namespace, Name: object.name}, u); err != nil {
			t.Error(err)
		}
	}
	env.Await(t, s.shootAPI, env.Named[*rbacv1.ClusterRole]("", "acme:cloud-controller-manager"), env.Exists)
	env.Await(t, s.shootAPI, env.Named[*storagev1.StorageClass]("", "default"), env.Exists)
	etcd := env.Await(t, s.c, env.Named[*druidv1alpha1.Etcd](namespace, "etcd-main"), env.Exists)
	if class, capacity := ptr.Deref(etcd.Spec.StorageClass, ""), etcd.Spec.StorageCapacity; class != "acme-fast" || capacity == nil || capacity.String() != "33Gi" {
		t.Errorf("volumes of etcd are of class %q with %v", class, capacity)
	}
	// What the infrastructure has reported goes to the machines, and to the status of the Shoot.
	class := &machinev1alpha1.MachineClass{}
	if err := s.c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: namespace + "-a-z1"}, class); err != nil {
		t.Fatal(err)
	}
	if spec := string(class.ProviderSpec.Raw); !strings.Contains(spec, `"network":"network-of-`+namespace+`"`) || !strings.Contains(spec, `"sshKey":"ssh-`) {
		t.Errorf("the class has %s", spec)
	}
	shoot := &corev1beta1.Shoot{}
	if err := s.c.Get(t.Context(), client.ObjectKey{Namespace: foreignShoots, Name: "crazy-botany"}, shoot); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"203.0.113.7/32"}, shoot.Status.Networking.EgressCIDRs); diff != "" {
		t.Errorf("egress addresses (-want +got):\n%s", diff)
	}
}

// generations are those of the objects that the webhook changes.
func (s *foreignSeed) generations(t *testing.T) map[string]int64 {
	t.Helper()
	all := map[string]int64{}
	for _, list := range []client.ObjectList{&appsv1.DeploymentList{}, &extensionsv1alpha1.OperatingSystemConfigList{}, &druidv1alpha1.EtcdList{}} {
		if err := s.c.List(t.Context(), list, client.InNamespace("shoot--dev--crazy-botany")); err != nil {
			t.Fatal(err)
		}
		if err := meta.EachListItem(list, func(item runtime.Object) error {
			object := item.(client.Object) //nolint:forcetypeassert // items of lists are objects
			all[fmt.Sprintf("%T %s", object, object.GetName())] = object.GetGeneration()
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	return all
}
