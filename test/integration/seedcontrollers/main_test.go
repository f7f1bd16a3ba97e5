// Package seedcontrollers tests the controllers of the gardener-controller-manager that are about seeds and extensions, against
// real API servers.
package seedcontrollers

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	controllermanagerconfigv1alpha1 "gardener.cloud/gardener/api/config/controllermanager/v1alpha1"
	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/controllermanager/bastion"
	"gardener.cloud/gardener/internal/controllermanager/certificatesigningrequest"
	"gardener.cloud/gardener/internal/controllermanager/controllerdeployment"
	"gardener.cloud/gardener/internal/controllermanager/controllerregistration/extensionclusterrole"
	"gardener.cloud/gardener/internal/controllermanager/controllerregistration/finalizer"
	"gardener.cloud/gardener/internal/controllermanager/controllerregistration/installation"
	"gardener.cloud/gardener/internal/controllermanager/event"
	"gardener.cloud/gardener/internal/controllermanager/exposureclass"
	"gardener.cloud/gardener/internal/controllermanager/quota"
	"gardener.cloud/gardener/internal/controllermanager/referenceprotection"
	"gardener.cloud/gardener/internal/controllermanager/references"
	"gardener.cloud/gardener/internal/controllermanager/seed/care"
	"gardener.cloud/gardener/internal/controllermanager/seed/lifecycle"
	"gardener.cloud/gardener/internal/controllermanager/seed/secrets"
	"gardener.cloud/gardener/internal/controllermanager/shoot/conditions"
	"gardener.cloud/gardener/internal/controllermanager/shoot/hibernation"
	"gardener.cloud/gardener/internal/controllermanager/shoot/migration"
	shootquota "gardener.cloud/gardener/internal/controllermanager/shoot/quota"
	"gardener.cloud/gardener/internal/controllermanager/shoot/retry"
	"gardener.cloud/gardener/test/builder"
	"gardener.cloud/gardener/test/env"
)

// garden is the environment that the tests share.
type garden struct {
	*env.Env
	client client.WithWatch
	clock  *testingclock.FakeClock
	// cache is that of the controllers, which may be a moment behind.
	cache client.Reader
	stop  func()
}

// All controllers run in one garden, as they do in the process. Each test has a seed of its own.
func TestSeedControllers(t *testing.T) {
	e := env.Start(t, env.Lenient())
	c, err := client.NewWithWatch(e.Config, client.Options{Scheme: e.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	g := &garden{Env: e, client: c, clock: testingclock.NewFakeClock(time.Now())}
	g.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden-dev"}})
	g.start(t)
	defer func() { g.stop() }()
	t.Run("installations", g.testInstallations)
	t.Run("self-hosted shoots", g.testSelfHosted)
	t.Run("finalizers", g.testFinalizers)
	t.Run("references", g.testReferences)
	t.Run("extension cluster roles", g.testClusterRoles)
	t.Run("seed secrets", g.testSecrets)
	t.Run("care", g.testCare)
	t.Run("lifecycle", g.testLifecycle)
	t.Run("certificates", g.testCertificates)
	t.Run("hibernation", g.testHibernation)
	t.Run("retry", g.testRetry)
	t.Run("lifetime", g.testLifetime)
	t.Run("guards", g.testGuards)
	t.Run("bastions", g.testBastions)
	t.Run("events", g.testEvents)
	t.Run("restart and steady state", g.testSteadyState)
}

// start runs the controllers until stop is called.
func (g *garden) start(t testing.TB) {
	t.Helper()
	logf.SetLogger(logr.Discard())
	mgr, err := manager.New(g.Config, manager.Options{
		Scheme: g.Scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true), ReconciliationTimeout: time.Minute},
	})
	if err != nil {
		t.Fatal(err)
	}
	g.cache = mgr.GetClient()
	cfg := &controllermanagerconfigv1alpha1.ControllerManagerConfiguration{}
	cfg.Controllers.SeedExtensionsCheck = &controllermanagerconfigv1alpha1.SeedExtensionsCheckControllerConfiguration{
		ConditionThresholds: []controllermanagerconfigv1alpha1.ConditionThreshold{{Type: "ExtensionsReady", Duration: metav1.Duration{Duration: time.Minute}}},
	}
	cfg.Controllers.Event = &controllermanagerconfigv1alpha1.EventControllerConfiguration{}
	controllermanagerconfigv1alpha1.SetDefaults(cfg)
	// The tests step the clock, but the timers of the work queues are real.
	cfg.Controllers.Seed.SyncPeriod.Duration = 200 * time.Millisecond
	cfg.Controllers.SeedExtensionsCheck.SyncPeriod.Duration = 200 * time.Millisecond
	c := &cfg.Controllers
	const concurrentSyncs = 5
	for name, err := range map[string]error{
		"references":                references.Add(t.Context(), mgr.GetFieldIndexer()),
		"installation":              installation.Add(mgr, installation.Values{ConcurrentSyncs: concurrentSyncs}),
		"finalizer":                 finalizer.Add(mgr, finalizer.Values{ConcurrentSyncs: concurrentSyncs}),
		"extensionclusterrole":      extensionclusterrole.Add(mgr, extensionclusterrole.Values{ConcurrentSyncs: concurrentSyncs}),
		"controllerdeployment":      controllerdeployment.Add(mgr, controllerdeployment.Values{ConcurrentSyncs: concurrentSyncs}),
		"secrets":                   secrets.Add(mgr, secrets.Values{ConcurrentSyncs: concurrentSyncs}),
		"certificatesigningrequest": certificatesigningrequest.Add(mgr, certificatesigningrequest.Values{ConcurrentSyncs: concurrentSyncs, Clock: g.clock}),
		"quota":                     quota.Add(mgr, quota.Values{ConcurrentSyncs: concurrentSyncs}),
		"exposureclass":             exposureclass.Add(mgr, exposureclass.Values{ConcurrentSyncs: concurrentSyncs}),
		"referenceprotection":       referenceprotection.Add(mgr, referenceprotection.Values{ConcurrentSyncs: concurrentSyncs}),
		"care": care.Add(mgr, care.Values{
			BackupBuckets: care.Check{
				ConcurrentSyncs: concurrentSyncs, SyncPeriod: c.SeedBackupBucketsCheck.SyncPeriod.Duration,
				Thresholds: c.SeedBackupBucketsCheck.ConditionThresholds,
			},
			Extensions: care.Check{
				ConcurrentSyncs: concurrentSyncs, SyncPeriod: c.SeedExtensionsCheck.SyncPeriod.Duration, Thresholds: c.SeedExtensionsCheck.ConditionThresholds,
			},
			Clock: g.clock,
		}),
		"lifecycle": lifecycle.Add(mgr, lifecycle.Values{
			ConcurrentSyncs: concurrentSyncs, MonitorPeriod: c.Seed.MonitorPeriod.Duration, ShootMonitorPeriod: c.Seed.ShootMonitorPeriod.Duration,
			SyncPeriod: c.Seed.SyncPeriod.Duration, Clock: g.clock,
		}),
		"conditions": conditions.Add(mgr, conditions.Values{ConcurrentSyncs: concurrentSyncs}),
		"migration":  migration.Add(mgr, migration.Values{ConcurrentSyncs: concurrentSyncs, Clock: g.clock}),
		"hibernation": hibernation.Add(mgr, hibernation.Values{
			ConcurrentSyncs: concurrentSyncs, TriggerDeadline: c.ShootHibernation.TriggerDeadlineDuration.Duration, Clock: g.clock,
		}),
		"retry": retry.Add(mgr, retry.Values{
			ConcurrentSyncs: concurrentSyncs, Period: c.ShootRetry.RetryPeriod.Duration, Jitter: c.ShootRetry.RetryJitterPeriod.Duration, Clock: g.clock,
		}),
		"shoot quota": shootquota.Add(mgr, shootquota.Values{
			ConcurrentSyncs: concurrentSyncs, SyncPeriod: c.ShootQuota.SyncPeriod.Duration, Clock: g.clock,
		}),
		"bastion": bastion.Add(mgr, bastion.Values{
			ConcurrentSyncs: concurrentSyncs, MaxLifetime: c.Bastion.MaxLifetime.Duration, Clock: g.clock,
		}),
		"event": event.Add(mgr, event.Values{ConcurrentSyncs: concurrentSyncs, TTL: c.Event.TTLNonShootEvents.Duration, Clock: g.clock}),
	} {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	g.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("manager: %v", err)
		}
	})
}

func (g *garden) create(t testing.TB, objects ...client.Object) {
	t.Helper()
	for _, obj := range objects {
		if err := g.client.Create(t.Context(), obj); err != nil {
			t.Fatalf("create %T %s: %v", obj, client.ObjectKeyFromObject(obj), err)
		}
	}
}

func (g *garden) delete(t testing.TB, obj client.Object) {
	t.Helper()
	if err := g.client.Delete(t.Context(), obj); err != nil {
		t.Fatalf("delete %T %s: %v", obj, client.ObjectKeyFromObject(obj), err)
	}
}

// change patches an object, after reading its current version.
func change[T client.Object](t testing.TB, g *garden, obj T, mutate func(T)) {
	t.Helper()
	if err := g.client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		t.Fatal(err)
	}
	before := obj.DeepCopyObject().(client.Object)
	mutate(obj)
	if err := g.client.Patch(t.Context(), obj, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// changeStatus patches the status of an object, after reading its current version.
func changeStatus[T client.Object](t testing.TB, g *garden, obj T, mutate func(T)) {
	t.Helper()
	if err := g.client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		t.Fatal(err)
	}
	before := obj.DeepCopyObject().(client.Object)
	mutate(obj)
	if err := g.client.Status().Patch(t.Context(), obj, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// awaitCached waits until the cache of the controllers has the current version of objects.
func (g *garden) awaitCached(t testing.TB, objects ...client.Object) {
	t.Helper()
	for _, obj := range objects {
		if err := g.client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
			t.Fatal(err)
		}
	}
	env.AwaitKnown(t, g.cache, objects...)
}

// guarded waits until an object has a finalizer.
func guarded[T client.Object](t testing.TB, g *garden, obj T, finalizer string) {
	t.Helper()
	env.Await(t, g.client, obj, func(o T) error {
		if !slices.Contains(o.GetFinalizers(), finalizer) {
			return fmt.Errorf("finalizers are %v, without %s", o.GetFinalizers(), finalizer)
		}
		return nil
	})
}

// newSeed returns a Seed whose extension types are its own.
func newSeed(name string) *corev1beta1.Seed {
	return builder.Seed(name, func(s *corev1beta1.Seed) {
		s.Spec.Provider.Type = "infra-" + name
		s.Spec.DNS.Provider.Type, s.Spec.DNS.Internal.Type = "dns-"+name, "dns-"+name
	})
}

// newShoot returns a Shoot whose extension types are its own.
func newShoot(name, seed string) *corev1beta1.Shoot {
	return builder.Shoot(name, builder.Workers(1), builder.On(seed), func(s *corev1beta1.Shoot) {
		s.Spec.Provider.Type, s.Spec.Networking.Type = "infra-"+name, new("net-"+name)
	})
}

// newRegistration returns a registration for kinds and types, such as "Infrastructure", "local", "Network", "calico".
func newRegistration(name string, kindsAndTypes ...string) *corev1beta1.ControllerRegistration {
	registration := &corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for i := 0; i < len(kindsAndTypes); i += 2 {
		registration.Spec.Resources = append(registration.Spec.Resources, corev1beta1.ControllerResource{Kind: kindsAndTypes[i], Type: kindsAndTypes[i+1]})
	}
	return registration
}

func eachItem(list client.ObjectList, each func(client.Object)) error {
	return meta.EachListItem(list, func(obj runtime.Object) error {
		each(obj.(client.Object))
		return nil
	})
}

// gardenletConfig returns the gardenlet configuration of the ManagedSeed for a seed.
func gardenletConfig(t *testing.T, seed *corev1beta1.Seed) seedmanagementv1alpha1.GardenletConfig {
	t.Helper()
	raw, err := json.Marshal(&gardenletconfigv1alpha1.GardenletConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: gardenletconfigv1alpha1.SchemeGroupVersion.String(), Kind: "GardenletConfiguration"},
		SeedConfig: &gardenletconfigv1alpha1.SeedConfig{SeedTemplate: corev1beta1.SeedTemplate{Spec: *seed.Spec.DeepCopy()}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return seedmanagementv1alpha1.GardenletConfig{Config: &runtime.RawExtension{Raw: raw}}
}
