package contract

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/pkg/extension/worker"
)

// restoredMachine is the name of the machine that a Worker takes along to another seed.
const restoredMachine = "contract-restored"

// RunWorker runs a suite for Workers, whose Client needs the kinds of machine.sapcloud.io and Deployments. It plays the machine-controller-manager. Besides
// what the suite checks, each MachineDeployment in the status exists, with its class and Secret; nothing of them is left after the deletion; machines stay
// when the control plane moves to another seed, and are known there before a machine-controller-manager runs.
func RunWorker(t *testing.T, suite Suite) {
	t.Helper()
	w := &workers{client: suite.Client, fulfilled: suite.Fulfilled, gone: suite.Gone, kept: suite.Kept}
	suite.Fulfilled, suite.Gone, suite.Kept, suite.State, suite.Restored = w.checkFulfilled, w.checkGone, w.checkKept, w.state, w.checkRestored
	create := suite.New
	suite.New = func() extensionsv1alpha1.Object {
		obj := create()
		w.play(t, obj.GetNamespace())
		return obj
	}
	Run(t, suite)
}

type workers struct {
	client                client.WithWatch
	fulfilled, gone, kept func(*testing.T, extensionsv1alpha1.Object)
	played                []string
}

// play makes the machines of all MachineDeployments in a namespace ready at once.
func (w *workers) play(t *testing.T, namespace string) {
	t.Helper()
	if slices.Contains(w.played, namespace) {
		return
	}
	w.played = append(w.played, namespace)
	changes, err := w.client.Watch(t.Context(), &machinev1alpha1.MachineDeploymentList{}, client.InNamespace(namespace))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(changes.Stop)
	ctx := t.Context()
	go func() {
		for change := range changes.ResultChan() {
			d, ok := change.Object.(*machinev1alpha1.MachineDeployment)
			if !ok || change.Type == watch.Deleted || d.Status.ObservedGeneration == d.Generation && d.Status.Replicas == d.Spec.Replicas {
				continue
			}
			before, n := d.DeepCopy(), d.Spec.Replicas
			d.Status = machinev1alpha1.MachineDeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, AvailableReplicas: n, ReadyReplicas: n}
			if err := w.client.Status().Patch(ctx, d, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil && ctx.Err() == nil {
				t.Errorf("play the machine-controller-manager: %v", err)
			}
		}
	}()
}

func statusOf(t *testing.T, obj extensionsv1alpha1.Object) extensionsv1alpha1.WorkerStatus {
	t.Helper()
	w, ok := obj.(*extensionsv1alpha1.Worker)
	if !ok {
		t.Fatalf("Suite.New returns a %T, not a Worker", obj)
	}
	return w.Status
}

func (w *workers) checkFulfilled(t *testing.T, obj extensionsv1alpha1.Object) {
	t.Helper()
	status := statusOf(t, obj)
	if len(status.MachineDeployments) == 0 || status.MachineDeploymentsLastUpdateTime == nil {
		t.Errorf("status has machineDeployments %v, updated at %v", status.MachineDeployments, status.MachineDeploymentsLastUpdateTime)
	}
	for _, published := range status.MachineDeployments {
		deployment, class := &machinev1alpha1.MachineDeployment{}, &machinev1alpha1.MachineClass{}
		if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: obj.GetNamespace(), Name: published.Name}, deployment); err != nil {
			t.Errorf("MachineDeployment in the status: %v", err)
			continue
		}
		if n := deployment.Spec.Replicas; n < published.Minimum || n > published.Maximum {
			t.Errorf("MachineDeployment %q has %d replicas, want from %d to %d", published.Name, n, published.Minimum, published.Maximum)
		}
		if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: obj.GetNamespace(), Name: deployment.Spec.Template.Spec.Class.Name}, class); err != nil {
			t.Errorf("class of MachineDeployment %q: %v", published.Name, err)
		}
	}
	if w.fulfilled != nil {
		w.fulfilled(t, obj)
	}
}

func (w *workers) checkGone(t *testing.T, obj extensionsv1alpha1.Object) {
	t.Helper()
	for _, list := range []client.ObjectList{&machinev1alpha1.MachineDeploymentList{}, &machinev1alpha1.MachineClassList{}} {
		if err := w.client.List(t.Context(), list, client.InNamespace(obj.GetNamespace())); err != nil {
			t.Errorf("list %T: %v", list, err)
			continue
		}
		if left := itemsOf(list); left > 0 {
			t.Errorf("%d objects are left in a %T", left, list)
		}
	}
	if w.gone != nil {
		w.gone(t, obj)
	}
}

// checkKept checks that the objects of machines exist after the migration. Then the gardenlet of the seed removes them, without their machines.
func (w *workers) checkKept(t *testing.T, obj extensionsv1alpha1.Object) {
	t.Helper()
	deployments := &machinev1alpha1.MachineDeploymentList{}
	if err := w.client.List(t.Context(), deployments, client.InNamespace(obj.GetNamespace())); err != nil || len(deployments.Items) == 0 {
		t.Errorf("%d MachineDeployments are left (%v)", len(deployments.Items), err)
	}
	if w.kept != nil {
		w.kept(t, obj)
	}
	for _, kind := range []client.Object{&machinev1alpha1.MachineDeployment{}, &machinev1alpha1.MachineClass{}} {
		if err := w.client.DeleteAllOf(t.Context(), kind, client.InNamespace(obj.GetNamespace())); err != nil {
			t.Error(err)
		}
	}
}

func itemsOf(list client.ObjectList) int {
	switch l := list.(type) {
	case *machinev1alpha1.MachineDeploymentList:
		return len(l.Items)
	case *machinev1alpha1.MachineClassList:
		return len(l.Items)
	}
	return 0
}

// state is that of a machine of the first deployment, as the gardenlet has saved it in the other seed. The machine-controller-manager does not run yet.
func (w *workers) state(obj extensionsv1alpha1.Object, _ *runtime.RawExtension) *runtime.RawExtension {
	status := obj.(*extensionsv1alpha1.Worker).Status //nolint:forcetypeassert // Fulfilled has checked it
	if len(status.MachineDeployments) == 0 {
		return nil
	}
	name := status.MachineDeployments[0].Name
	labels := map[string]string{"name": name, machinev1alpha1.NodeLabelKey: restoredMachine}
	raw, err := json.Marshal(worker.State{MachineDeployments: map[string]*worker.DeploymentState{name: {
		Replicas:    status.MachineDeployments[0].Maximum,
		MachineSets: []machinev1alpha1.MachineSet{{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: name + "-set", Labels: labels}}},
		Machines:    []machinev1alpha1.Machine{{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: restoredMachine, Labels: labels}}},
	}}})
	if err != nil {
		return nil
	}
	return &runtime.RawExtension{Raw: raw}
}

func (w *workers) checkRestored(t *testing.T, obj extensionsv1alpha1.Object) {
	t.Helper()
	machine := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: obj.GetNamespace(), Name: restoredMachine}}
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(machine), machine); err != nil {
		t.Errorf("the machine is not restored: %v", err)
	}
	if state := obj.GetExtensionStatus().GetState(); state != nil {
		t.Errorf("the state is not emptied: %s", state.Raw)
	}
	name := statusOf(t, obj).MachineDeployments[0]
	deployment := &machinev1alpha1.MachineDeployment{}
	if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: obj.GetNamespace(), Name: name.Name}, deployment); err != nil || deployment.Spec.Replicas != name.Maximum {
		t.Errorf("MachineDeployment %q has %d replicas, want those of the state, %d (%v)", name.Name, deployment.Spec.Replicas, name.Maximum, err)
	}
	if err := w.managerRuns(t.Context(), obj.GetNamespace()); err != nil {
		t.Error(err)
	}
	// There is none that would delete it.
	if err := w.client.Delete(t.Context(), machine); client.IgnoreNotFound(err) != nil {
		t.Error(err)
	}
}

// managerRuns checks the replicas of the machine-controller-manager, if there is one.
func (w *workers) managerRuns(ctx context.Context, namespace string) error {
	manager := &appsv1.Deployment{}
	err := w.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "machine-controller-manager"}, manager)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil && (manager.Spec.Replicas == nil || *manager.Spec.Replicas == 0) {
		err = errors.New("the machine-controller-manager is not scaled up")
	}
	return err
}
