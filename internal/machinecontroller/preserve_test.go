package machinecontroller

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/test/env"
)

// testPreserve keeps failed machines, automatically and because a user wants it.
func testPreserve(t *testing.T, s *scenario) {
	step := env.Story(t)
	s.joins = s.join(t)
	s.startGeneric(t)
	s.startProvider(t, func(o *ProviderOptions) { o.HealthTimeout = 500 * time.Millisecond })
	deployment := s.deploy(t, 2)
	s.edit(t, deployment, func(d *machinev1alpha1.MachineDeployment) {
		d.Spec.AutoPreserveFailedMachineMax = new(int32(1))
		d.Spec.Template.Spec.MachinePreserveTimeout = &metav1.Duration{Duration: 12 * time.Hour}
	})
	before := s.running(t, 2)
	a, b := before[0], before[1]
	pod := func(name, owner string) *corev1.Pod {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name, OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: owner, Name: owner, UID: "1", Controller: new(true),
			}}},
			Spec: corev1.PodSpec{NodeName: a.Name, TerminationGracePeriodSeconds: new(int64(0)), Containers: []corev1.Container{{Name: name, Image: name}}},
		}
		s.create(t, pod)
		return pod
	}
	app, agent := pod("app", "ReplicaSet"), pod("agent", "DaemonSet")

	step("a machine that fails is kept automatically, and not replaced")
	s.ready(t, a.Name, corev1.ConditionUnknown)
	s.kept(t, a.Name, machinev1alpha1.PreservedByMCM)
	s.counts(t, deployment, 2, 1, 1)
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(app), app); !apierrors.IsNotFound(err) {
		t.Errorf("pod: %v", err)
	}
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(agent), agent); err != nil {
		t.Errorf("pod of a DaemonSet: %v", err)
	}

	step("another one is for its user, also if no more are kept automatically")
	s.annotateNode(t, b.Name, "when-failed")
	s.ready(t, b.Name, corev1.ConditionFalse)
	s.kept(t, b.Name, machinev1alpha1.PreservedByUser)
	s.counts(t, deployment, 2, 0, 2)

	step("one that recovers runs again")
	s.ready(t, a.Name, corev1.ConditionTrue)
	s.machines(t, func(found []*machinev1alpha1.Machine) error {
		m, err := named(found, a.Name)
		if err == nil && (m.Status.CurrentStatus.Phase != machinev1alpha1.MachineRunning || m.Status.CurrentStatus.PreserveExpiryTime != nil || m.Annotations[machinev1alpha1.PreserveMachine] != "") {
			return fmt.Errorf("%+v with %v", m.Status.CurrentStatus, m.Annotations)
		}
		return err
	})
	s.node(t, a.Name, false, machinev1alpha1.PreservationStopped)

	step("the user does not need the other one any more")
	s.annotateNode(t, b.Name, "false")
	after := s.replaced(t, 2, b.Name)
	s.counts(t, deployment, 2, 2, 0)

	// A machine that changes as often as a did is written rarely.
	a = after[slices.IndexFunc(after, func(m *machinev1alpha1.Machine) bool { return m.Name != a.Name })]
	step("a running one is kept until its time is over")
	s.annotateNode(t, a.Name, "now")
	s.machines(t, func(found []*machinev1alpha1.Machine) error {
		if m, err := named(found, a.Name); err != nil || m.Status.CurrentStatus.PreserveExpiryTime == nil {
			return fmt.Errorf("it is not kept yet (%w)", err)
		}
		return nil
	})
	s.node(t, a.Name, false, machinev1alpha1.PreservedByUser)
	s.expire(t, a.Name)
	env.Await(t, s.site, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: a.Name}}, func(node *corev1.Node) error {
		if value, ok := node.Annotations[machinev1alpha1.PreserveMachine]; ok {
			return fmt.Errorf("the annotation is still %q", value)
		}
		return nil
	})
	s.node(t, a.Name, false, machinev1alpha1.PreservationStopped)
	s.machines(t, func(found []*machinev1alpha1.Machine) error {
		if m, err := named(found, a.Name); err != nil || m.Status.CurrentStatus.PreserveExpiryTime != nil || len(m.Annotations) > 0 {
			return fmt.Errorf("it is still kept (%w)", err)
		}
		return nil
	})

	step("a failed one is replaced when its time is over")
	s.ready(t, a.Name, corev1.ConditionUnknown)
	s.kept(t, a.Name, machinev1alpha1.PreservedByMCM)
	s.expire(t, a.Name)
	after = s.replaced(t, 2, a.Name)
	after = slices.DeleteFunc(after, func(m *machinev1alpha1.Machine) bool {
		return slices.ContainsFunc(before, func(b *machinev1alpha1.Machine) bool { return b.Name == m.Name })
	})

	step("an update replaces all of them, also those that are kept")
	s.ready(t, after[0].Name, corev1.ConditionUnknown)
	s.kept(t, after[0].Name, machinev1alpha1.PreservedByMCM)
	s.edit(t, deployment, func(d *machinev1alpha1.MachineDeployment) { d.Spec.Template.Spec.Class.Name = "new" })
	after = s.replaced(t, 2, after[0].Name, before[0].Name)

	step("a hibernated cluster has none")
	s.annotateNode(t, after[0].Name, "when-failed")
	s.ready(t, after[0].Name, corev1.ConditionUnknown)
	s.kept(t, after[0].Name, machinev1alpha1.PreservedByUser)
	s.edit(t, deployment, func(d *machinev1alpha1.MachineDeployment) { d.Spec.Replicas = 0 })
	s.machines(t, func(found []*machinev1alpha1.Machine) error { return allRunning(found, 0) })
}

func named(machines []*machinev1alpha1.Machine, name string) (*machinev1alpha1.Machine, error) {
	at := slices.IndexFunc(machines, func(m *machinev1alpha1.Machine) bool { return m.Name == name })
	if at < 0 {
		return nil, fmt.Errorf("machine %s is gone", name)
	}
	return machines[at], nil
}

// kept waits until a machine has failed and is kept.
func (s *scenario) kept(t *testing.T, name, reason string) {
	t.Helper()
	s.machines(t, func(found []*machinev1alpha1.Machine) error {
		m, err := named(found, name)
		if err == nil && (m.Status.CurrentStatus.Phase != machinev1alpha1.MachineFailed || m.Status.CurrentStatus.PreserveExpiryTime == nil || m.DeletionTimestamp != nil) {
			return fmt.Errorf("%+v", m.Status.CurrentStatus)
		}
		return err
	})
	s.node(t, name, true, reason)
}

// node waits until a Node has the condition, and all that belongs to it.
func (s *scenario) node(t *testing.T, name string, failed bool, reason string) {
	t.Helper()
	env.Await(t, s.site, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, func(node *corev1.Node) error {
		message, tainted := "", slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == machinev1alpha1.NodePreservedKey })
		for _, c := range node.Status.Conditions {
			if c.Type == machinev1alpha1.NodePreserved && c.Reason == reason {
				message = c.Message
			}
		}
		_, disabled := node.Annotations[machinev1alpha1.ScaleDownDisabled]
		if message == "" || failed && message != "The machine has failed. Its node is drained." || tainted != failed || node.Spec.Unschedulable != failed ||
			disabled != (reason != machinev1alpha1.PreservationStopped) {
			return fmt.Errorf("conditions: %+v; taints: %v; cordoned: %t; annotations: %v", node.Status.Conditions, node.Spec.Taints, node.Spec.Unschedulable, node.Annotations)
		}
		return nil
	})
}

// counts waits until a deployment has a number of replicas, of which some are available, and the others are kept, so that nothing more has to be done.
func (s *scenario) counts(t *testing.T, deployment *machinev1alpha1.MachineDeployment, replicas, available, kept int32) {
	t.Helper()
	env.Await(t, s.site, deployment, func(d *machinev1alpha1.MachineDeployment) error {
		done := slices.ContainsFunc(d.Status.Conditions, func(c machinev1alpha1.MachineDeploymentCondition) bool {
			return c.Type == machinev1alpha1.MachineDeploymentProgressing && c.Reason == "NewMachineSetAvailable"
		})
		if d.Status.Replicas != replicas || d.Status.AvailableReplicas != available || d.Status.PreservedFailedReplicas != kept || !done {
			return fmt.Errorf("%+v", d.Status)
		}
		return nil
	})
}

// replaced waits until all machines run, and none of the names is left.
func (s *scenario) replaced(t *testing.T, number int, names ...string) []*machinev1alpha1.Machine {
	t.Helper()
	return s.machines(t, func(found []*machinev1alpha1.Machine) error {
		for _, name := range names {
			if _, err := named(found, name); err == nil {
				return fmt.Errorf("machine %s is left", name)
			}
		}
		return allRunning(found, number)
	})
}

func (s *scenario) annotateNode(t *testing.T, name, value string) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, machinev1alpha1.PreserveMachine, value)
	if err := s.Patch(t.Context(), node, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		t.Fatal(err)
	}
}

// expire shortens the time for which a machine is kept, as an operator does.
func (s *scenario) expire(t *testing.T, name string) {
	t.Helper()
	machine := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
	patch := fmt.Appendf(nil, `{"status":{"currentStatus":{"preserveExpiryTime":%q}}}`, time.Now().UTC().Format(time.RFC3339))
	if err := s.Status().Patch(t.Context(), machine, client.RawPatch("application/merge-patch+json", patch)); err != nil {
		t.Fatal(err)
	}
}
