package managedseed

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/gardenlet/upgrade/trial"
	"gardener.cloud/gardener/test/env"
)

const healthy = seedmanagementv1alpha1.ManagedSeedGardenletHealthy

// A gardenlet that does not work is rolled back to the last one that did, and a later change is tried.
func TestRollBack(t *testing.T) {
	logf.SetLogger(logr.Discard())
	// Pods are created by the clock of the API server, after the clock of the controller.
	clk := clocktesting.NewFakePassiveClock(time.Now().Add(-time.Hour))
	c := start(t, clk)
	step := env.Story(t)

	step("nothing is deployed while the update of the parent may be rolled back")
	parent, err := trial.Read(t.Context(), c.seed)
	if err != nil {
		t.Fatal(err)
	}
	parent.ID, parent.State = "update", trial.Trying
	parent.Previous = []trial.Previous{{Object: &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}}}
	if err := parent.Write(t.Context(), c.seed); err != nil {
		t.Fatal(err)
	}
	c.create(t, managedSeed(t, "child", "a"))
	c.succeed(t, "a")
	c.awaitCondition(t, "child", seedmanagementv1alpha1.ManagedSeedSeedRegistered, corev1beta1.ConditionProgressing, "Waiting until the update")
	if err := c.shoot.Get(t.Context(), client.ObjectKey{Namespace: "garden", Name: "gardenlet"}, &appsv1.Deployment{}); !apierrors.IsNotFound(err) {
		t.Errorf("the gardenlet was deployed: %v", err)
	}
	parent.State = trial.Succeeded
	if err := parent.Write(t.Context(), c.seed); err != nil {
		t.Fatal(err)
	}
	env.Edit(t, c.garden, env.Named[*seedmanagementv1alpha1.ManagedSeed]("garden", "child"), func(m *seedmanagementv1alpha1.ManagedSeed) {
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, "gardener.cloud/operation", "reconcile")
	})

	step("the first gardenlet is healthy when it leads and has reached the garden")
	c.awaitCondition(t, "child", healthy, corev1beta1.ConditionProgressing, "has been deployed")
	c.bootstrapped(t)
	c.registerSeed(t, "child")
	c.pod(t, "first")
	c.lead(t, "first")
	c.complete(t)
	clk.SetTime(clk.Now().Add(2 * time.Minute))
	c.touch(t, "first")
	c.awaitCondition(t, "child", healthy, corev1beta1.ConditionProgressing, `condition GardenletReady of Seed "child" is Unknown`)
	env.EditStatus(t, c.garden, env.Named[*corev1beta1.Seed]("", "child"), func(s *corev1beta1.Seed) {
		s.Status.Conditions = append(s.Status.Conditions, corev1beta1.Condition{Type: corev1beta1.SeedGardenletReady, Status: corev1beta1.ConditionTrue})
		s.Status.Gardener = &corev1beta1.Gardener{Name: "first"}
	})
	c.awaitCondition(t, "child", healthy, corev1beta1.ConditionTrue, "works")

	step("one that crashes is rolled back")
	c.setTag(t, "bad")
	c.awaitImage(t, "registry.example/other:bad")
	c.awaitCondition(t, "child", healthy, corev1beta1.ConditionProgressing, "It is rolled back if it does not work")
	c.crash(t, "second")
	c.awaitCondition(t, "child", healthy, corev1beta1.ConditionFalse, "rolled back to the one before: Pod \"second\"")
	c.awaitCondition(t, "child", healthy, corev1beta1.ConditionFalse, "exit code 1 (Error): error: no such setting. It is not tried again until")
	c.awaitImage(t, image)
	env.AwaitList(t, c.garden, func(found []*eventsv1.Event) error {
		for _, e := range found {
			if e.Reason == "RolledBack" && e.Type == corev1.EventTypeWarning && e.Regarding.Name == "child" {
				return nil
			}
		}
		return errors.New("no event")
	}, client.InNamespace("garden"))

	step("another process keeps it rolled back, whatever changes in the shoot")
	c.stop()
	env.Edit(t, c.shoot, env.Named[*appsv1.Deployment]("garden", "gardenlet"), func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].Image = "registry.example/by:hand"
	})
	c.stop = c.run(t)
	t.Cleanup(c.stop)
	c.awaitImage(t, image)
	c.awaitCondition(t, "child", healthy, corev1beta1.ConditionFalse, "no such setting")
	env.Edit(t, c.shoot, env.Named[*appsv1.Deployment]("garden", "gardenlet"), func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].Image = "registry.example/by:hand"
	})
	c.awaitImage(t, image) // by the watch of the Deployment

	step("an operator has it tried again")
	c.removePod(t, "second")
	env.Edit(t, c.garden, env.Named[*seedmanagementv1alpha1.ManagedSeed]("garden", "child"), func(m *seedmanagementv1alpha1.ManagedSeed) {
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, "gardener.cloud/operation", "reconcile")
	})
	c.awaitImage(t, "registry.example/other:bad")
	c.awaitCondition(t, "child", healthy, corev1beta1.ConditionProgressing, "It is rolled back if it does not work")

	step("a change during the trial is tried instead, and rolled back to the last one that worked")
	c.setTag(t, "worse")
	c.awaitImage(t, "registry.example/other:worse")
	c.crash(t, "third")
	c.awaitCondition(t, "child", healthy, corev1beta1.ConditionFalse, "rolled back to the one before: Pod \"third\"")
	c.awaitImage(t, image)
	c.removePod(t, "third")

	step("a change after it is tried, and works")
	c.setTag(t, "v2")
	c.awaitImage(t, "registry.example/other:v2")
	c.awaitCondition(t, "child", healthy, corev1beta1.ConditionProgressing, "It is rolled back if it does not work")
	c.removePod(t, "first")
	c.pod(t, "fourth")
	c.lead(t, "fourth")
	c.complete(t)
	env.EditStatus(t, c.garden, env.Named[*corev1beta1.Seed]("", "child"), func(s *corev1beta1.Seed) {
		s.Status.Gardener = &corev1beta1.Gardener{Name: "fourth"}
	})
	clk.SetTime(clk.Now().Add(2 * time.Minute))
	c.touch(t, "fourth")
	c.awaitCondition(t, "child", healthy, corev1beta1.ConditionTrue, "works")
	c.awaitImage(t, "registry.example/other:v2")

	step("the parent is updated with another image vector overwrite, and the child gets it")
	c.stop()
	overwrite := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "gardenlet-imagevector-overwrite"}, Data: map[string]string{"images_overwrite.yaml": "images: []\n"},
	}
	if err := c.seed.Create(t.Context(), overwrite); err != nil {
		t.Fatal(err)
	}
	deployment := &appsv1.Deployment{}
	if err := c.seed.Get(t.Context(), client.ObjectKey{Namespace: "garden", Name: "gardenlet"}, deployment); err != nil {
		t.Fatal(err)
	}
	deployment.Spec.Template.Spec.Volumes = []corev1.Volume{{
		Name: overwrite.Name, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: overwrite.Name}}},
	}}
	if err := c.seed.Update(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	c.stop = c.run(t) // by its new process
	t.Cleanup(c.stop)
	env.Await(t, c.shoot, env.Named[*corev1.ConfigMap]("garden", overwrite.Name), func(got *corev1.ConfigMap) error {
		if text := got.Data["images_overwrite.yaml"]; text != "images: []\n" {
			return fmt.Errorf("it is %q", text)
		}
		return nil
	})
}

// setTag does what a user does who wants another version.
func (c *clusters) setTag(t *testing.T, tag string) {
	t.Helper()
	env.Edit(t, c.garden, env.Named[*seedmanagementv1alpha1.ManagedSeed]("garden", "child"), func(m *seedmanagementv1alpha1.ManagedSeed) {
		m.Spec.Gardenlet.Deployment.Image = &seedmanagementv1alpha1.Image{Repository: new("registry.example/other"), Tag: &tag}
	})
}

func (c *clusters) awaitImage(t *testing.T, want string) {
	t.Helper()
	env.Await(t, c.shoot, env.Named[*appsv1.Deployment]("garden", "gardenlet"), func(d *appsv1.Deployment) error {
		if got := d.Spec.Template.Spec.Containers[0].Image; got != want {
			return fmt.Errorf("the image is %s, want %s", got, want)
		}
		return nil
	})
}

// pod creates a pod of the gardenlet that is ready.
func (c *clusters) pod(t *testing.T, name string) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: name, Labels: map[string]string{"app": "gardener", "role": "gardenlet"}},
		Spec:       corev1.PodSpec{ServiceAccountName: "gardenlet", Containers: []corev1.Container{{Name: "gardenlet", Image: image}}},
	}
	if err := c.shoot.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	env.EditStatus(t, c.shoot, pod, func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "gardenlet", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(c.clock.Now())}},
		}}
	})
}

// crash creates a pod of the gardenlet that crashes.
func (c *clusters) crash(t *testing.T, name string) {
	t.Helper()
	c.pod(t, name)
	env.EditStatus(t, c.shoot, env.Named[*corev1.Pod]("garden", name), func(p *corev1.Pod) {
		p.Status.Conditions[0].Status = corev1.ConditionFalse
		s := &p.Status.ContainerStatuses[0]
		s.Ready, s.RestartCount, s.State = false, 3, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
		s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error", Message: "starting\nerror: no such setting\n"}
	})
}

func (c *clusters) removePod(t *testing.T, name string) {
	t.Helper()
	pod := env.Named[*corev1.Pod]("garden", name)
	if err := c.shoot.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	env.AwaitGone(t, c.shoot, pod)
}

// touch has the gardenlet checked.
func (c *clusters) touch(t *testing.T, pod string) {
	t.Helper()
	env.Edit(t, c.shoot, env.Named[*corev1.Pod]("garden", pod), func(p *corev1.Pod) {
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, "touched", c.clock.Now().String())
	})
}

// lead has a pod hold the Lease of the gardenlet.
func (c *clusters) lead(t *testing.T, pod string) {
	t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "gardenlet-leader-election"}}
	if err := client.IgnoreAlreadyExists(c.shoot.Create(t.Context(), lease)); err != nil {
		t.Fatal(err)
	}
	env.Edit(t, c.shoot, lease, func(l *coordinationv1.Lease) {
		l.Spec.HolderIdentity, l.Spec.AcquireTime = new(pod+"_uid"), new(metav1.NewMicroTime(c.clock.Now()))
	})
}

// complete does what the controller of Deployments does.
func (c *clusters) complete(t *testing.T) {
	t.Helper()
	env.EditStatus(t, c.shoot, env.Named[*appsv1.Deployment]("garden", "gardenlet"), func(d *appsv1.Deployment) {
		n := *d.Spec.Replicas
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n}
	})
}
