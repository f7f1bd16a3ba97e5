// Package upgrade tests how a gardenlet updates itself, and how that is rolled back, with real API servers for the garden and the seed, and a registry.
package upgrade

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/config"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	gardencorev1 "gardener.cloud/gardener/api/core/v1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/charts"
	"gardener.cloud/gardener/internal/chart/charttest"
	"gardener.cloud/gardener/internal/component/gardenlet/release"
	"gardener.cloud/gardener/internal/gardenlet/upgrade"
	"gardener.cloud/gardener/internal/gardenlet/upgrade/guard"
	"gardener.cloud/gardener/internal/gardenlet/upgrade/trial"
	"gardener.cloud/gardener/internal/kube"
	"gardener.cloud/gardener/test/builder"
	"gardener.cloud/gardener/test/env"
)

const (
	seedName  = "local"
	address   = "https://api.garden.example"
	first     = "registry.example/gardener:v1" // the image that gardener-operator deploys
	guardRole = "gardener.cloud:system:gardenlet-guard"
)

// fixture is a garden with a seed, in which the gardenlet is deployed but does not run: the test runs its controller.
type fixture struct {
	env          *env.Env
	garden, seed client.WithWatch
	seedConfig   *rest.Config
	clock        *clocktesting.FakePassiveClock
}

func TestUpgrade(t *testing.T) {
	logf.SetLogger(logr.Discard())
	f := start(t, release.Values{Image: first})
	stop := f.runController(t)
	step := env.Story(t)

	step("what gardener-operator has deployed stays")
	f.awaitCondition(t, corev1beta1.ConditionTrue, "Reconciled", "has been deployed")
	f.awaitImage(t, first)
	if got := f.trial(t); got.State != "" {
		t.Errorf("a trial is recorded: %+v", got)
	}

	step("a change is deployed when the guard runs")
	f.edit(t, image("v2"))
	endGuard := f.runGuard(t)
	f.awaitImage(t, "registry.example/gardener:v2")
	f.awaitCondition(t, corev1beta1.ConditionProgressing, "Reconciling", "rolled back if it does not work")

	step("it works when it has led for a minute")
	f.complete(t, "gardenlet")
	f.pod(t, "v2", 0)
	f.lead(t, "v2")
	f.pass(t, 2*time.Minute, "v2")
	f.awaitCondition(t, corev1beta1.ConditionTrue, "Reconciled", "has been deployed")
	env.AwaitGone(t, f.seed, env.Named[*rbacv1.ClusterRole]("", guardRole))
	if got := f.trial(t); got.State != trial.Succeeded || len(got.Previous) > 0 {
		t.Errorf("the trial is %+v", got)
	}
	endGuard()

	step("what others change is applied again, without a trial")
	env.Edit(t, f.seed, env.Named[*corev1.ConfigMap]("garden", "gardenlet"), func(c *corev1.ConfigMap) { c.Data["config.yaml"] = "a: b" })
	f.edit(t, operation("reconcile"))
	env.Await(t, f.seed, env.Named[*corev1.ConfigMap]("garden", "gardenlet"), func(c *corev1.ConfigMap) error {
		if c.Data["config.yaml"] == "a: b" {
			return errors.New("the ConfigMap is as it was changed")
		}
		return nil
	})
	f.awaitCondition(t, corev1beta1.ConditionTrue, "Reconciled", "has been deployed")
	env.AwaitGone(t, f.seed, env.Named[*appsv1.Deployment]("garden", "gardenlet-guard"))

	step("nothing is applied if the seed refuses one of the objects")
	before := env.Await(t, f.seed, env.Named[*corev1.ConfigMap]("garden", "gardenlet"), env.Exists).Data["config.yaml"]
	raw := f.get(t).Spec.Config.Raw
	f.edit(t, func(g *seedmanagementv1alpha1.Gardenlet) {
		g.Spec.Deployment.Env = []corev1.EnvVar{{Name: "a=b", Value: "1"}}
		g.Spec.Config.Raw = []byte(strings.Replace(string(g.Spec.Config.Raw), `"kind"`, `"logLevel":"debug","kind"`, 1))
	})
	f.awaitCondition(t, corev1beta1.ConditionFalse, "ReconcileError", `Deployment "garden/gardenlet"`)
	if after := env.Await(t, f.seed, env.Named[*corev1.ConfigMap]("garden", "gardenlet"), env.Exists).Data["config.yaml"]; after != before {
		t.Errorf("the configuration is\n%s\nwant\n%s", after, before)
	}
	if got := f.trial(t); got.State != trial.Succeeded {
		t.Errorf("the trial is %+v", got)
	}
	f.edit(t, func(g *seedmanagementv1alpha1.Gardenlet) { g.Spec.Deployment.Env, g.Spec.Config.Raw = nil, raw })
	f.awaitCondition(t, corev1beta1.ConditionTrue, "Reconciled", "has been deployed")

	step("one that crashes is rolled back, with all its objects")
	before = env.Await(t, f.seed, env.Named[*corev1.ConfigMap]("garden", "gardenlet"), env.Exists).Data["config.yaml"]
	f.edit(t, image("v3"), func(g *seedmanagementv1alpha1.Gardenlet) {
		g.Spec.Deployment.ImageVectorOverwrite = new("images: []\n") // a ConfigMap more
		g.Spec.Deployment.Env = []corev1.EnvVar{{Name: "NEW", Value: "1"}}
		g.Spec.Config.Raw = []byte(strings.Replace(string(g.Spec.Config.Raw), `"kind"`, `"logLevel":"debug","kind"`, 1))
	})
	endGuard = f.runGuard(t)
	f.awaitImage(t, "registry.example/gardener:v3")
	env.Await(t, f.seed, env.Named[*corev1.ConfigMap]("garden", "gardenlet-imagevector-overwrite"), env.Exists)
	// The gardenlet that began it is replaced: it does nothing any more.
	stop()
	f.pod(t, "v3", 3)
	f.awaitImage(t, "registry.example/gardener:v2")
	env.AwaitGone(t, f.seed, env.Named[*corev1.ConfigMap]("garden", "gardenlet-imagevector-overwrite"))
	env.AwaitGone(t, f.seed, env.Named[*rbacv1.ClusterRole]("", guardRole))
	deployment := env.Await(t, f.seed, env.Named[*appsv1.Deployment]("garden", "gardenlet"), env.Exists)
	for _, variable := range deployment.Spec.Template.Spec.Containers[0].Env {
		if variable.Name == "NEW" {
			t.Error("a variable of the new one is left")
		}
	}
	if after := env.Await(t, f.seed, env.Named[*corev1.ConfigMap]("garden", "gardenlet"), env.Exists).Data["config.yaml"]; after != before {
		t.Errorf("the configuration is\n%s\nwant\n%s", after, before)
	}
	endGuard()

	step("the gardenlet before reports why, and does not try it again")
	stop = f.runController(t)
	f.awaitCondition(t, corev1beta1.ConditionFalse, "RolledBack", `container "gardenlet" has restarted 3 times`)
	if version := env.Await(t, f.seed, env.Named[*appsv1.Deployment]("garden", "gardenlet"), env.Exists).ResourceVersion; version != deployment.ResourceVersion {
		t.Error("the Deployment has been written again")
	}

	step("unless it is requested")
	if err := f.seed.Delete(t.Context(), env.Named[*corev1.Pod]("garden", "v3"), client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	f.edit(t, operation("reconcile"))
	f.awaitCondition(t, corev1beta1.ConditionProgressing, "Reconciling", "")
	endGuard = f.runGuard(t)
	f.awaitImage(t, "registry.example/gardener:v3")

	step("a guard that is deleted is deployed again")
	deleted := env.Await(t, f.seed, env.Named[*appsv1.Deployment]("garden", "gardenlet-guard"), env.Exists)
	for _, object := range []client.Object{env.Named[*rbacv1.ClusterRole]("", guardRole), deleted} {
		if err := f.seed.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	env.Await(t, f.seed, env.Named[*appsv1.Deployment]("garden", "gardenlet-guard"), func(d *appsv1.Deployment) error {
		if d.UID == deleted.UID {
			return errors.New("it is not deleted yet")
		}
		return nil
	})
	env.Await(t, f.seed, env.Named[*rbacv1.ClusterRole]("", guardRole), env.Exists)
	f.complete(t, "gardenlet-guard")

	step("another change while one is tried keeps what was before both")
	f.edit(t, image("v4"))
	f.awaitImage(t, "registry.example/gardener:v4")
	f.pod(t, "v4", 3)
	f.awaitImage(t, "registry.example/gardener:v2")
	f.awaitCondition(t, corev1beta1.ConditionFalse, "RolledBack", `Pod "v4"`)
	endGuard()

	step("a new kubeconfig is requested, and what was rolled back is not tried again")
	f.create(t, f.seed, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "gardenlet-kubeconfig"}})
	f.edit(t, operation("renew-kubeconfig"))
	f.awaitNoOperation(t)
	if secret := env.Await(t, f.seed, env.Named[*corev1.Secret]("garden", "gardenlet-kubeconfig"), env.Exists); secret.Annotations["gardener.cloud/operation"] != "renew" {
		t.Errorf("the Secret has annotations %v", secret.Annotations)
	}
	f.awaitCondition(t, corev1beta1.ConditionFalse, "RolledBack", `Pod "v4"`)

	step("what cannot be rendered is reported")
	f.edit(t, func(g *seedmanagementv1alpha1.Gardenlet) {
		g.Spec.Deployment.Helm.OCIRepository.Ref = new("127.0.0.1:1/charts/gardenlet:v1")
	})
	f.awaitCondition(t, corev1beta1.ConditionFalse, "ReconcileError", "the log of the gardenlet has the error")

	step("a new kubeconfig is requested once, though nothing can be deployed")
	env.Edit(t, f.seed, env.Named[*corev1.Secret]("garden", "gardenlet-kubeconfig"), func(s *corev1.Secret) { s.Annotations = nil })
	f.edit(t, operation("renew-kubeconfig"))
	f.awaitNoOperation(t)
	if secret := env.Await(t, f.seed, env.Named[*corev1.Secret]("garden", "gardenlet-kubeconfig"), env.Exists); secret.Annotations["gardener.cloud/operation"] != "renew" {
		t.Errorf("the Secret has annotations %v", secret.Annotations)
	}

	step("what gardener-operator is to deploy is not deployed by the gardenlet")
	env.Edit(t, f.garden, gardenlet(), func(g *seedmanagementv1alpha1.Gardenlet) {
		metav1.SetMetaDataAnnotation(&g.ObjectMeta, "gardener.cloud/operation", "force-redeploy")
	})
	f.awaitImage(t, "registry.example/gardener:v2")
	stop()
}

// A gardenlet that gardener-operator has deployed with its image vector overwrite gets that of another release by its Gardenlet: it must not keep the former one.
func TestImageVectorOverwrite(t *testing.T) {
	logf.SetLogger(logr.Discard())
	f := start(t, release.Values{Image: first, ImageVectorOverwrite: "images: [] # former\n"})
	defer f.runController(t)()
	step := env.Story(t)
	set := func(text string) func(*seedmanagementv1alpha1.Gardenlet) {
		return func(g *seedmanagementv1alpha1.Gardenlet) { g.Spec.Deployment.ImageVectorOverwrite = &text }
	}

	step("the same one in its Gardenlet changes nothing")
	f.edit(t, set("images: [] # former\n"))
	f.awaitCondition(t, corev1beta1.ConditionTrue, "Reconciled", "has been deployed")
	if got := f.trial(t); got.State != "" {
		t.Errorf("a trial is recorded: %+v", got)
	}

	step("another one is deployed with the gardenlet")
	f.edit(t, image("v2"), set("images: [] # new\n"))
	endGuard := f.runGuard(t)
	f.awaitImage(t, "registry.example/gardener:v2")
	env.Await(t, f.seed, env.Named[*corev1.ConfigMap]("garden", "gardenlet-imagevector-overwrite"), func(c *corev1.ConfigMap) error {
		if text := c.Data["images_overwrite.yaml"]; text != "images: [] # new\n" {
			return fmt.Errorf("it is %q", text)
		}
		return nil
	})
	f.awaitCondition(t, corev1beta1.ConditionProgressing, "Reconciling", "rolled back if it does not work")
	f.complete(t, "gardenlet")
	f.pod(t, "v2", 0)
	f.lead(t, "v2")
	f.pass(t, 2*time.Minute, "v2")
	f.awaitCondition(t, corev1beta1.ConditionTrue, "Reconciled", "has been deployed")
	env.AwaitGone(t, f.seed, env.Named[*rbacv1.ClusterRole]("", guardRole))
	endGuard()

	step("an empty one means none")
	f.edit(t, set(""))
	defer f.runGuard(t)()
	env.Await(t, f.seed, env.Named[*appsv1.Deployment]("garden", "gardenlet"), func(d *appsv1.Deployment) error {
		for _, volume := range d.Spec.Template.Spec.Volumes {
			if volume.Name == "gardenlet-imagevector-overwrite" {
				return errors.New("it has the overwrite")
			}
		}
		return nil
	})
}

// A gardenlet that was installed by hand creates its Gardenlet, which an operator has to approve before a change is deployed.
func TestOwnGardenlet(t *testing.T) {
	logf.SetLogger(logr.Discard())
	f := start(t, release.Values{Image: first})
	own := env.Await(t, f.garden, gardenlet(), env.Exists)
	if err := f.garden.Delete(t.Context(), own); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": "seedmanagement.gardener.cloud/v1alpha1", "kind": "Gardenlet", "metadata": map[string]any{"name": seedName, "namespace": "garden"}, "spec": own.Spec,
	})
	if err != nil {
		t.Fatal(err)
	}
	f.create(t, f.seed, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "gardenlet-selfupgrade-config"},
		Data:       map[string]string{"gardenlet.yaml": strings.Replace(string(text), `"name":"`+seedName+`"`, `"name":"other"`, 1)},
	})
	stop := f.runController(t)
	env.Edit(t, f.seed, env.Named[*corev1.ConfigMap]("garden", "gardenlet-selfupgrade-config"), func(c *corev1.ConfigMap) {
		c.Data["gardenlet.yaml"] = string(text)
	})
	f.awaitCondition(t, corev1beta1.ConditionTrue, "Reconciled", "has been deployed")
	stop()
	f.edit(t, func(g *seedmanagementv1alpha1.Gardenlet) { // the admission of the garden does it
		metav1.SetMetaDataAnnotation(&g.ObjectMeta, seedmanagementv1alpha1.AnnotationCreatedByGardenlet, "true")
	})
	stop = f.runController(t)
	f.edit(t, image("v2"))
	f.awaitCondition(t, corev1beta1.ConditionFalse, "NotApproved", "removed the annotation")
	f.edit(t, func(g *seedmanagementv1alpha1.Gardenlet) {
		delete(g.Annotations, seedmanagementv1alpha1.AnnotationCreatedByGardenlet)
	})
	f.awaitCondition(t, corev1beta1.ConditionProgressing, "Reconciling", "")
	stop()
}

// start starts a garden and a seed, with the gardenlet that gardener-operator deploys for its Gardenlet.
func start(t *testing.T, deployed release.Values) *fixture {
	t.Helper()
	f := &fixture{env: env.Start(t, env.Lenient()), clock: clocktesting.NewFakePassiveClock(time.Now())}
	f.seedConfig = f.env.AddCluster(t)
	f.garden, f.seed = f.client(t, f.env.Config), f.client(t, f.seedConfig)
	archive, err := charts.Archive(charts.Gardenlet)
	if err != nil {
		t.Fatal(err)
	}
	configuration, err := json.Marshal(map[string]any{
		"apiVersion": "gardenlet.config.gardener.cloud/v1alpha1", "kind": "GardenletConfiguration", "seedConfig": map[string]any{"spec": builder.Seed(seedName).Spec},
	})
	if err != nil {
		t.Fatal(err)
	}
	object := &seedmanagementv1alpha1.Gardenlet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: seedName},
		Spec: seedmanagementv1alpha1.GardenletSpec{
			Config: &runtime.RawExtension{Raw: configuration},
			Deployment: seedmanagementv1alpha1.GardenletSelfDeployment{
				GardenletDeployment: seedmanagementv1alpha1.GardenletDeployment{ReplicaCount: new(int32(1))},
				Helm:                seedmanagementv1alpha1.GardenletHelm{OCIRepository: gardencorev1.OCIRepository{Ref: new(charttest.Push(t, archive))}},
			},
		},
	}
	f.create(t, f.garden, object)
	f.create(t, f.seed, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden"}})
	config, err := release.ReadConfiguration(object)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := config.Connect(address); err != nil {
		t.Fatal(err)
	}
	values, err := deployed.Chart(object, config)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := release.Objects(archive, version.Info{GitVersion: "v1.36.3", Major: "1", Minor: "36"}, values)
	if err != nil {
		t.Fatal(err)
	}
	if err := kube.Apply(t.Context(), f.seed, release.FieldOwner, objects...); err != nil {
		t.Fatal(err)
	}
	return f
}

func gardenlet() *seedmanagementv1alpha1.Gardenlet {
	return env.Named[*seedmanagementv1alpha1.Gardenlet]("garden", seedName)
}

func (f *fixture) client(t *testing.T, config *rest.Config) client.WithWatch {
	t.Helper()
	c, err := client.NewWithWatch(config, client.Options{Scheme: f.env.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (f *fixture) create(t *testing.T, in client.Client, object client.Object) {
	t.Helper()
	if err := in.Create(t.Context(), object); err != nil {
		t.Fatalf("create %T %q: %v", object, object.GetName(), err)
	}
}

// as returns the configuration of a process in the seed, with its permissions only.
func (f *fixture) as(account string) *rest.Config {
	config := rest.CopyConfig(f.seedConfig)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:garden:" + account, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:garden", "system:authenticated"},
	}
	return config
}

// run runs a manager in the seed until stop is called.
func (f *fixture) run(t *testing.T, config *rest.Config, options manager.Options, add func(manager.Manager) error) (stop func()) {
	t.Helper()
	mgr, err := manager.New(config, options)
	if err == nil {
		err = add(mgr)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stop = func() {
		if cancel(); done != nil {
			if err := <-done; err != nil {
				t.Errorf("the manager failed: %v", err)
			}
			done = nil
		}
	}
	t.Cleanup(stop)
	return stop
}

func (f *fixture) options() manager.Options {
	return manager.Options{
		Scheme: f.env.Scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
	}
}

// runController runs what a gardenlet runs to update itself, until stop is called.
func (f *fixture) runController(t *testing.T) (stop func()) {
	t.Helper()
	seedConfig := f.as("gardenlet")
	return f.run(t, seedConfig, f.options(), func(mgr manager.Manager) error {
		garden, err := cluster.New(f.env.Config, func(o *cluster.Options) { o.Scheme = f.env.Scheme })
		if err != nil {
			return err
		}
		versions, err := discovery.NewDiscoveryClientForConfig(seedConfig)
		if err != nil {
			return err
		}
		return errors.Join(mgr.Add(garden), upgrade.Add(mgr, upgrade.Values{
			SeedName: seedName, Garden: garden, GardenAPI: f.garden, SeedAPI: f.client(t, seedConfig), SeedVersion: versions,
			KubeconfigSecret: &corev1.SecretReference{Namespace: "garden", Name: "gardenlet-kubeconfig"},
			Pod:              "v2", ReachesGarden: func() bool { return true },
			HostsGarden: func(context.Context) (bool, error) { return false, nil }, SyncPeriod: time.Hour, Clock: f.clock,
		}))
	})
}

// runGuard runs the guard when its Deployment exists, as a kubelet would, until end is called, which deletes it as the garbage collector would.
func (f *fixture) runGuard(t *testing.T) (end func()) {
	t.Helper()
	env.Await(t, f.seed, env.Named[*appsv1.Deployment]("garden", "gardenlet-guard"), env.Exists)
	options := f.options()
	options.Cache.ByObject = guard.Cache()
	stop := f.run(t, f.as("gardenlet-guard"), options, func(mgr manager.Manager) error { return guard.Add(mgr, f.clock) })
	f.complete(t, "gardenlet-guard")
	return func() {
		stop()
		if err := f.seed.Delete(t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "gardenlet-guard"}}); err != nil {
			t.Error(err)
		}
	}
}

// complete reports that all pods of a Deployment run.
func (f *fixture) complete(t *testing.T, name string) {
	t.Helper()
	env.EditStatus(t, f.seed, env.Named[*appsv1.Deployment]("garden", name), func(d *appsv1.Deployment) {
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
	})
}

// pod creates a pod of the gardenlet whose container has restarted some times.
func (f *fixture) pod(t *testing.T, name string, restarts int32) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name, Labels: map[string]string{"app": "gardener", "role": "gardenlet"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "gardenlet", Image: "i"}}},
	}
	f.create(t, f.seed, pod)
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: "gardenlet", RestartCount: restarts, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(f.clock.Now())}},
		}},
	}
	if err := f.seed.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
}

// lead has a pod hold the Lease.
func (f *fixture) lead(t *testing.T, pod string) {
	t.Helper()
	f.create(t, f.seed, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "gardenlet-leader-election"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new(pod + "_uid"), AcquireTime: &metav1.MicroTime{Time: f.clock.Now()}},
	})
}

// pass lets time pass, and then something happen to a pod.
func (f *fixture) pass(t *testing.T, d time.Duration, pod string) {
	t.Helper()
	f.clock.SetTime(f.clock.Now().Add(d))
	env.Edit(t, f.seed, env.Named[*corev1.Pod]("garden", pod), func(p *corev1.Pod) { metav1.SetMetaDataAnnotation(&p.ObjectMeta, "passed", d.String()) })
}

func image(tag string) func(*seedmanagementv1alpha1.Gardenlet) {
	return func(g *seedmanagementv1alpha1.Gardenlet) {
		g.Spec.Deployment.Image = &seedmanagementv1alpha1.Image{Ref: new("registry.example/gardener:" + tag)}
	}
}

func operation(name string) func(*seedmanagementv1alpha1.Gardenlet) {
	return func(g *seedmanagementv1alpha1.Gardenlet) {
		metav1.SetMetaDataAnnotation(&g.ObjectMeta, "gardener.cloud/operation", name)
	}
}

func (f *fixture) get(t *testing.T) *seedmanagementv1alpha1.Gardenlet {
	t.Helper()
	return env.Await(t, f.garden, gardenlet(), env.Exists)
}

func (f *fixture) awaitNoOperation(t *testing.T) {
	t.Helper()
	env.Await(t, f.garden, gardenlet(), func(g *seedmanagementv1alpha1.Gardenlet) error {
		if operation := g.Annotations["gardener.cloud/operation"]; operation != "" {
			return fmt.Errorf("operation %s is requested still", operation)
		}
		return nil
	})
}

func (f *fixture) edit(t *testing.T, changes ...func(*seedmanagementv1alpha1.Gardenlet)) {
	t.Helper()
	f.clock.SetTime(time.Now()) // that of the API server, which creates pods
	env.Edit(t, f.garden, gardenlet(), func(g *seedmanagementv1alpha1.Gardenlet) {
		for _, change := range changes {
			change(g)
		}
	})
}

func (f *fixture) trial(t *testing.T) *trial.Trial {
	t.Helper()
	got, err := trial.Read(t.Context(), f.seed)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func (f *fixture) awaitImage(t *testing.T, want string) {
	t.Helper()
	env.Await(t, f.seed, env.Named[*appsv1.Deployment]("garden", "gardenlet"), func(d *appsv1.Deployment) error {
		if got := d.Spec.Template.Spec.Containers[0].Image; got != want {
			return fmt.Errorf("the image is %s", got)
		}
		return nil
	})
}

// awaitCondition waits for a condition for the current generation.
func (f *fixture) awaitCondition(t *testing.T, status corev1beta1.ConditionStatus, reason, message string) {
	t.Helper()
	env.Await(t, f.garden, gardenlet(), func(g *seedmanagementv1alpha1.Gardenlet) error {
		got := kube.Condition(g.Status.Conditions, seedmanagementv1alpha1.GardenletReconciled)
		if got == nil || got.Status != status || got.Reason != reason || !strings.Contains(got.Message, message) || g.Status.ObservedGeneration != g.Generation {
			return fmt.Errorf("the condition is %+v for generation %d of %d, want %s with %q", got, g.Status.ObservedGeneration, g.Generation, status, message)
		}
		return nil
	})
}
