// Package scheduler tests the gardener-scheduler against real API servers.
package scheduler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	crconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	schedulerconfigv1alpha1 "gardener.cloud/gardener/api/config/scheduler/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/scheduler/shoot"
	"gardener.cloud/gardener/test/builder"
	"gardener.cloud/gardener/test/env"
)

const namespace = "garden-dev"

func TestScheduler(t *testing.T) {
	g := newGarden(t)
	for name, test := range map[string]func(*testing.T, *garden){
		"a shoot gets the seed with the least shoots":              leastUsed,
		"the reason why a shoot has no seed is reported once":      pending,
		"a shoot of another scheduler is ignored":                  otherScheduler,
		"a seed is never overbooked":                               capacity,
		"a seed that a shoot has left gets another one":            roomAgain,
		"a deleted seed is not counted any more":                   seedDeleted,
		"a binding is repeated after a conflict":                   conflict,
		"a rejected binding is reported and its place is released": rejected,
		"a restarted scheduler counts the shoots on seeds":         restart,
		"two schedulers bind each shoot once":                      twoSchedulers,
		"configured distances decide":                              configuredDistances,
		"a profile's selector decides, and a change of it counts":  profileSelector,
	} {
		t.Run(name, func(t *testing.T) {
			g.clean(t)
			test(t, g)
		})
	}
}

func leastUsed(t *testing.T, g *garden) {
	g.profile(t, "local", nil)
	g.seed(t, "a")
	g.seed(t, "b")
	g.shoot(t, "old", func(s *corev1beta1.Shoot) { s.Spec.SeedName = new("a") })
	g.schedule(t)
	for range 3 {
		g.shoot(t, "new-")
	}
	g.await(t, placed(map[string]int{"a": 2, "b": 2}))
	env.AwaitList(t, g.watch, func(events []*eventsv1.Event) error {
		bound := 0
		for _, event := range events {
			if event.Reason == "SchedulingSuccessful" && event.Regarding.Kind == "Shoot" && strings.HasPrefix(event.Regarding.Name, "new-") {
				bound++
			}
		}
		if bound != 3 {
			return fmt.Errorf("%d events about shoots that were bound, want 3", bound)
		}
		return nil
	})
}

func pending(t *testing.T, g *garden) {
	g.profile(t, "local", nil)
	seed := g.seed(t, "a", func(s *corev1beta1.Seed) { s.Spec.Settings.Scheduling.Visible = false })
	g.shoot(t, "first")
	writes := g.schedule(t)
	const hidden = "Failed to schedule Shoot: none of 1 seeds fits: 1 hidden from the scheduler"
	g.await(t, reported("first", hidden))
	before := writes.Load()
	// A heartbeat causes no write. It has been handled when the report of the second shoot, which was created later, is written.
	seed.Status.Conditions[0].Message = "another heartbeat"
	if err := g.Client.Status().Update(t.Context(), seed); err != nil {
		t.Fatal(err)
	}
	g.shoot(t, "second")
	g.await(t, reported("second", hidden))
	if got := writes.Load() - before; got != 1 {
		t.Errorf("%d writes, want the second shoot's report only", got)
	}
	seed.Spec.Settings.Scheduling.Visible = true
	if err := g.Client.Update(t.Context(), seed); err != nil {
		t.Fatal(err)
	}
	g.await(t, placed(map[string]int{"a": 2}))
	env.AwaitList(t, g.watch, func(events []*eventsv1.Event) error {
		var failed []string
		for _, event := range events {
			if event.Reason == "SchedulingFailed" && event.Note == hidden {
				failed = append(failed, event.Regarding.Name)
			}
		}
		if slices.Sort(failed); !slices.Equal(failed, []string{"first", "second"}) {
			return fmt.Errorf("events about shoots %v, want one for each", failed)
		}
		return nil
	})
}

func otherScheduler(t *testing.T, g *garden) {
	g.profile(t, "local", nil)
	g.seed(t, "a")
	g.shoot(t, "other", func(s *corev1beta1.Shoot) { s.Spec.SchedulerName = new("mine") })
	writes := g.schedule(t)
	g.shoot(t, "own")
	g.await(t, func(shoots []*corev1beta1.Shoot) error {
		return errors.Join(on("own", "a")(shoots), on("other", "")(shoots))
	})
	if got := writes.Load(); got != 1 {
		t.Errorf("%d writes, want one binding", got)
	}
}

func capacity(t *testing.T, g *garden) {
	g.profile(t, "local", nil)
	for _, name := range []string{"a", "b", "c"} {
		g.seed(t, name, room(5))
	}
	for range 10 {
		g.shoot(t, "before-")
	}
	g.schedule(t)
	for range 10 {
		g.shoot(t, "after-")
	}
	g.await(t, func(shoots []*corev1beta1.Shoot) error {
		waiting := 0
		for _, s := range shoots {
			if last := s.Status.LastOperation; s.Spec.SeedName == nil && last != nil && strings.HasSuffix(last.Description, "3 without room for another shoot") {
				waiting++
			}
		}
		if waiting != 5 {
			return fmt.Errorf("%d shoots report that there is no room, want 5", waiting)
		}
		return placed(map[string]int{"a": 5, "b": 5, "c": 5, "": 5})(shoots)
	})
}

func roomAgain(t *testing.T, g *garden) {
	g.profile(t, "local", nil)
	g.seed(t, "a", room(1))
	first := g.shoot(t, "first")
	g.schedule(t)
	g.await(t, on("first", "a"))
	g.shoot(t, "second")
	g.await(t, reported("second", "Failed to schedule Shoot: none of 1 seeds fits: 1 without room for another shoot"))
	if err := g.Client.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	g.await(t, on("second", "a"))
}

func seedDeleted(t *testing.T, g *garden) {
	g.profile(t, "local", nil)
	seed := g.seed(t, "a", room(0))
	g.schedule(t)
	g.shoot(t, "shoot")
	g.await(t, reported("shoot", "Failed to schedule Shoot: none of 1 seeds fits: 1 without room for another shoot"))
	if err := g.Client.Delete(t.Context(), seed); err != nil {
		t.Fatal(err)
	}
	g.await(t, reported("shoot", "Failed to schedule Shoot: there are no seeds"))
	g.seed(t, "b")
	g.await(t, on("shoot", "b"))
}

func conflict(t *testing.T, g *garden) {
	g.profile(t, "local", nil)
	g.seed(t, "a", room(1))
	shoot := g.shoot(t, "shoot")
	var bindings atomic.Int64
	g.schedule(t, func(ctx context.Context, _ client.Object) error {
		if bindings.Add(1) > 1 {
			return nil
		}
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"another":"writer"}}}`))
		return g.Client.Patch(ctx, shoot, patch)
	})
	g.await(t, on("shoot", "a"))
	if got := bindings.Load(); got < 2 {
		t.Errorf("%d attempts, want a conflict first", got)
	}
}

func rejected(t *testing.T, g *garden) {
	g.profile(t, "local", nil)
	g.seed(t, "a", room(1))
	g.shoot(t, "first")
	g.schedule(t, func(_ context.Context, shoot client.Object) error {
		if shoot.GetName() == "first" {
			return forbidden
		}
		return nil
	})
	g.await(t, reported("first", `Failed to schedule Shoot: seed "a": `+forbidden.Error()))
	g.shoot(t, "second")
	g.await(t, on("second", "a"))
}

func restart(t *testing.T, g *garden) {
	g.profile(t, "local", nil)
	g.seed(t, "a", room(2))
	g.shoot(t, "first")
	t.Run("before", func(t *testing.T) {
		g.schedule(t)
		g.await(t, on("first", "a"))
	})
	g.shoot(t, "second")
	t.Run("after", func(t *testing.T) {
		g.schedule(t)
		g.await(t, on("second", "a"))
		g.shoot(t, "third")
		g.await(t, reported("third", "Failed to schedule Shoot: none of 1 seeds fits: 1 without room for another shoot"))
	})
	t.Run("with nothing to do", func(t *testing.T) {
		writes := g.schedule(t)
		g.shoot(t, "fourth")
		g.await(t, reported("fourth", "Failed to schedule Shoot: none of 1 seeds fits: 1 without room for another shoot"))
		if got := writes.Load(); got != 1 {
			t.Errorf("%d writes, want the fourth shoot's report only", got)
		}
	})
}

func twoSchedulers(t *testing.T, g *garden) {
	g.profile(t, "local", nil)
	for _, name := range []string{"a", "b"} {
		g.seed(t, name)
	}
	for range 10 {
		g.shoot(t, "before-")
	}
	g.schedule(t)
	g.schedule(t)
	for range 10 {
		g.shoot(t, "after-")
	}
	g.await(t, func(shoots []*corev1beta1.Shoot) error {
		for _, s := range shoots {
			if s.Spec.SeedName == nil {
				return fmt.Errorf("shoot %q has no seed", s.Name)
			}
			if s.Generation != 2 {
				t.Errorf("the spec of shoot %q was changed %d times, want once", s.Name, s.Generation-1)
			}
		}
		return nil
	})
}

func configuredDistances(t *testing.T, g *garden) {
	g.profile(t, "local", nil)
	region := func(name string) func(*corev1beta1.Seed) {
		return func(s *corev1beta1.Seed) { s.Spec.Provider.Region = name }
	}
	g.seed(t, "a", region("local-2"))
	g.seed(t, "b", region("elsewhere"))
	for name, data := range map[string]string{"1-of-others": "local-2: 1", "2-first": "elsewhere: 10\nlocal-2: 20", "3-second": "local-2: 1"} {
		profiles := "one,local"
		if name == "1-of-others" {
			profiles = "one,two"
		}
		m := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "garden", Name: name,
				Labels:      map[string]string{"scheduling.gardener.cloud/purpose": "region-config"},
				Annotations: map[string]string{"scheduling.gardener.cloud/cloudprofiles": profiles},
			},
			Data: map[string]string{"local": data, "broken": "{"},
		}
		if err := g.Client.Create(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = g.Client.Delete(context.WithoutCancel(t.Context()), m) })
	}
	g.shoot(t, "shoot")
	g.scheduleBy(t, schedulerconfigv1alpha1.MinimalDistance)
	g.await(t, on("shoot", "b"))
}

func profileSelector(t *testing.T, g *garden) {
	selector := &corev1beta1.SeedSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"for": "local"}}}
	profile := g.profile(t, "local", selector)
	g.seed(t, "a")
	g.shoot(t, "shoot")
	g.schedule(t)
	g.await(t, reported("shoot", "Failed to schedule Shoot: none of 1 seeds fits: 1 not matching the seed selector of the cloud profile"))
	profile.Spec.SeedSelector = nil
	if err := g.Client.Update(t.Context(), profile); err != nil {
		t.Fatal(err)
	}
	g.await(t, on("shoot", "a"))
}

// forbidden is the error of an admission plugin that rejects a binding.
var forbidden = apierrors.NewForbidden(corev1beta1.Resource("shoots"), "first", errors.New("not on this seed"))

// garden is the environment that the tests share.
type garden struct {
	*env.Env
	watch client.WithWatch
}

func newGarden(t *testing.T) *garden {
	g := &garden{Env: env.Start(t, env.Lenient())}
	var err error
	if g.watch, err = client.NewWithWatch(g.Config, client.Options{Scheme: g.Scheme}); err != nil {
		t.Fatal(err)
	}
	err = errors.Join(
		g.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}),
		g.Client.Create(t.Context(), &corev1beta1.Project{
			ObjectMeta: metav1.ObjectMeta{Name: "dev"}, Spec: corev1beta1.ProjectSpec{Namespace: new(namespace)},
		}),
		g.Client.Create(t.Context(), &corev1beta1.ControllerRegistration{
			ObjectMeta: metav1.ObjectMeta{Name: "local"},
			Spec: corev1beta1.ControllerRegistrationSpec{Resources: []corev1beta1.ControllerResource{
				{Kind: "ControlPlane", Type: "local"}, {Kind: "DNSRecord", Type: "local"},
			}},
		}),
	)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// clean deletes the objects of the previous test.
func (g *garden) clean(t *testing.T) {
	t.Helper()
	err := errors.Join(
		g.Client.DeleteAllOf(t.Context(), &corev1beta1.Shoot{}, client.InNamespace(namespace)),
		g.Client.DeleteAllOf(t.Context(), &corev1beta1.Seed{}),
		g.Client.DeleteAllOf(t.Context(), &corev1beta1.CloudProfile{}),
		g.Client.DeleteAllOf(t.Context(), &eventsv1.Event{}, client.InNamespace(namespace)),
	)
	if err != nil {
		t.Fatal(err)
	}
}

// schedule starts a scheduler that stops with the test, and returns the number of its writes. Functions are called before each binding.
func (g *garden) schedule(t *testing.T, beforeBinding ...func(context.Context, client.Object) error) (writes *atomic.Int64) {
	t.Helper()
	return g.scheduleBy(t, schedulerconfigv1alpha1.SameRegion, beforeBinding...)
}

func (g *garden) scheduleBy(
	t *testing.T, strategy schedulerconfigv1alpha1.CandidateDeterminationStrategy, beforeBinding ...func(context.Context, client.Object) error,
) (writes *atomic.Int64) {
	t.Helper()
	writes = &atomic.Int64{}
	mgr, err := manager.New(rest.CopyConfig(g.Config), manager.Options{
		Scheme:     g.Scheme,
		Cache:      cache.Options{ByObject: shoot.Cached()},
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: crconfig.Controller{SkipNameValidation: new(true)}, // for several schedulers, one after another and at once
		Logger:     logr.Discard(),
		NewClient: func(config *rest.Config, options client.Options) (client.Client, error) {
			direct, err := client.NewWithWatch(config, options)
			if err != nil {
				return nil, err
			}
			return interceptor.NewClient(direct, interceptor.Funcs{
				SubResourcePatch: func(
					ctx context.Context, c client.Client, subresource string, obj client.Object, patch client.Patch, options ...client.SubResourcePatchOption,
				) error {
					writes.Add(1)
					for _, before := range beforeBinding {
						if subresource != "binding" {
							break
						}
						if err := before(ctx, obj); err != nil {
							return err
						}
					}
					return c.SubResource(subresource).Patch(ctx, obj, patch, options...)
				},
			}), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	err = shoot.Add(mgr, shoot.Values{
		ConcurrentSyncs: 5,
		Strategy:        strategy,
		Metrics:         prometheus.NewRegistry(),
		FirstRetry:      time.Hour, // so that only events cause a retry
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("scheduler: %v", err)
		}
	})
	return writes
}

func (g *garden) profile(t *testing.T, name string, selector *corev1beta1.SeedSelector) *corev1beta1.CloudProfile {
	t.Helper()
	p := builder.CloudProfile(name, func(p *corev1beta1.CloudProfile) { p.Spec.SeedSelector = selector })

	if err := g.Client.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	return p
}

func room(shoots int64) func(*corev1beta1.Seed) {
	return func(s *corev1beta1.Seed) {
		s.Status.Allocatable = corev1.ResourceList{"shoots": *resource.NewQuantity(shoots, resource.DecimalSI)}
	}
}

func (g *garden) seed(t *testing.T, name string, change ...func(*corev1beta1.Seed)) *corev1beta1.Seed {
	t.Helper()
	s := builder.Seed(name, func(s *corev1beta1.Seed) {
		s.Spec.Networks.ShootDefaults = &corev1beta1.ShootNetworks{Pods: new("10.3.0.0/16"), Services: new("10.4.0.0/16")}
		s.Spec.Settings = &corev1beta1.SeedSettings{Scheduling: &corev1beta1.SeedSettingScheduling{Visible: true}}
	})

	status := corev1beta1.SeedStatus{
		LastOperation: &corev1beta1.LastOperation{
			Type: corev1beta1.LastOperationTypeReconcile, State: corev1beta1.LastOperationStateSucceeded, LastUpdateTime: metav1.Now(),
		},
		Conditions: []corev1beta1.Condition{{
			Type: corev1beta1.SeedGardenletReady, Status: corev1beta1.ConditionTrue, Reason: "Ready", Message: "It is ready.",
			LastTransitionTime: metav1.Now(), LastUpdateTime: metav1.Now(),
		}},
	}
	s.Status = status
	for _, c := range change {
		c(s)
	}
	status = s.Status
	if err := g.Client.Create(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	s.Status = status
	if err := g.Client.Status().Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return s
}

// shoot creates a workerless Shoot. A name that ends in a dash is used as generateName.
func (g *garden) shoot(t *testing.T, name string, change ...func(*corev1beta1.Shoot)) *corev1beta1.Shoot {
	t.Helper()
	s := builder.Shoot(name, builder.Confirmed)

	if strings.HasSuffix(name, "-") {
		s.Name, s.GenerateName = "", name
	}
	for _, c := range change {
		c(s)
	}
	if err := g.Client.Create(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	return s
}

// await waits until a check of the Shoots succeeds.
func (g *garden) await(t *testing.T, check func([]*corev1beta1.Shoot) error) {
	t.Helper()
	env.AwaitList(t, g.watch, check, client.InNamespace(namespace))
}

// placed checks how many Shoots each seed has.
func placed(want map[string]int) func([]*corev1beta1.Shoot) error {
	return func(shoots []*corev1beta1.Shoot) error {
		got := map[string]int{}
		for _, s := range shoots {
			got[seedOf(s)]++
		}
		if !maps.Equal(want, got) {
			return fmt.Errorf("shoots by seed (-want +got):\n%s", cmp.Diff(want, got))
		}
		return nil
	}
}

// on checks the seed of a Shoot.
func on(name, seed string) func([]*corev1beta1.Shoot) error {
	return func(shoots []*corev1beta1.Shoot) error {
		for _, s := range shoots {
			if s.Name == name && seedOf(s) == seed {
				return nil
			}
		}
		return fmt.Errorf("shoot %q is not on seed %q", name, seed)
	}
}

// reported checks the reported reason why a Shoot has no seed.
func reported(name, want string) func([]*corev1beta1.Shoot) error {
	return func(shoots []*corev1beta1.Shoot) error {
		got := "nothing"
		for _, s := range shoots {
			if last := s.Status.LastOperation; s.Name == name && last != nil {
				got = last.Description
				if got == want && last.State == corev1beta1.LastOperationStatePending && last.Type == corev1beta1.LastOperationTypeCreate {
					return nil
				}
			}
		}
		return fmt.Errorf("the status of shoot %q is %q, want %q", name, got, want)
	}
}

func seedOf(s *corev1beta1.Shoot) string {
	return ptr.Deref(s.Spec.SeedName, "")
}
