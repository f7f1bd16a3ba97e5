package worker

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/pkg/extension"
)

const pool1, formerClass = namespace + "-pool-z1", namespace + "-pool-z1-00000"

// kept is the state of a deployment in another namespace, half way through a rolling update.
func kept(t *testing.T) *runtime.RawExtension {
	t.Helper()
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "other", Name: name, UID: "1", Labels: map[string]string{"name": pool1}, Annotations: map[string]string{"a": "b"}, Finalizers: []string{"f"}}
	}
	class := machinev1alpha1.ClassSpec{Kind: "MachineClass", Name: formerClass}
	raw, err := json.Marshal(State{MachineDeployments: map[string]*DeploymentState{
		pool1: {
			Replicas: 3,
			MachineSets: []machinev1alpha1.MachineSet{{ObjectMeta: meta("set"), Spec: machinev1alpha1.MachineSetSpec{
				Replicas: 3, Template: machinev1alpha1.MachineTemplateSpec{Spec: machinev1alpha1.MachineSpec{Class: class}},
			}}},
			Machines: []machinev1alpha1.Machine{
				{ObjectMeta: meta("m1"), Spec: machinev1alpha1.MachineSpec{Class: class, ProviderID: "test:///m1"}}, {ObjectMeta: meta("m2")},
			},
		},
		namespace + "-removed": {Replicas: 1, MachineSets: []machinev1alpha1.MachineSet{{ObjectMeta: meta("removed")}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return &runtime.RawExtension{Raw: raw}
}

func machinesIn(t *testing.T, a *Actuator) map[string]machinev1alpha1.Machine {
	t.Helper()
	list := &machinev1alpha1.MachineList{}
	if err := a.Client.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	found := map[string]machinev1alpha1.Machine{}
	for _, machine := range list.Items {
		found[machine.Name] = machine
	}
	return found
}

func replicasOf(t *testing.T, a *Actuator) int32 {
	t.Helper()
	manager := &appsv1.Deployment{}
	if err := a.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "machine-controller-manager"}, manager); err != nil {
		t.Fatal(err)
	}
	return *manager.Spec.Replicas
}

func newManager() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "machine-controller-manager"}, Spec: appsv1.DeploymentSpec{Replicas: new(int32(0))}}
}

// Machines are known before the machine-controller-manager runs, also if a pass ends half way, and are not restored again.
func TestRestore(t *testing.T) {
	a, worker, cluster := newActuator(t), newWorker(), newCluster(t)
	existing := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "m2", Labels: map[string]string{"existing": "true"}}}
	for _, object := range []client.Object{newManager(), existing} {
		if err := a.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	worker.Status.State = kept(t)
	var waiting *extension.Wait
	if err := a.Restore(t.Context(), worker, cluster); !errors.As(err, &waiting) {
		t.Fatalf("error is %v, want to wait for machines", err)
	}
	if worker.Status.State != nil {
		t.Error("the state is still there, and would be restored once more")
	}
	found := machinesIn(t, a)
	want := metav1.ObjectMeta{Namespace: namespace, Name: "m1", Labels: map[string]string{"name": pool1}, Annotations: map[string]string{"a": "b"}, ResourceVersion: "1"}
	if diff := cmp.Diff(want, found["m1"].ObjectMeta); diff != "" {
		t.Errorf("machine (-want +got):\n%s", diff)
	}
	if found["m1"].Spec.ProviderID != "test:///m1" || found["m2"].Labels["existing"] == "" || len(found) != 2 {
		t.Errorf("machines are %v", found)
	}
	sets := &machinev1alpha1.MachineSetList{}
	if err := a.Client.List(t.Context(), sets, client.InNamespace(namespace)); err != nil || len(sets.Items) != 1 || sets.Items[0].Name != "set" {
		t.Errorf("sets are %v, %v", sets.Items, err)
	}
	deployments, err := a.deployments(t.Context(), namespace)
	if err != nil || deployments[pool1].Spec.Replicas != 3 {
		t.Errorf("deployment is %+v, %v", deployments[pool1], err)
	}
	if got := classes(t, a); !slices.Contains(got, formerClass) {
		t.Errorf("the class of machines that are being replaced is missing: %v", got)
	}
	if got := replicasOf(t, a); got != 1 {
		t.Errorf("the machine-controller-manager has %d replicas", got)
	}

	// The next pass goes on without the state.
	delete(found, "m1")
	if err := a.Client.Delete(t.Context(), &machinev1alpha1.Machine{ObjectMeta: want}); err != nil {
		t.Fatal(err)
	}
	a.roll(t, nil)
	if err := a.Restore(t.Context(), worker, cluster); err != nil {
		t.Fatal(err)
	}
	if got := machinesIn(t, a); len(got) != 1 {
		t.Errorf("a machine that was deleted since is back: %v", got)
	}
	if got := classes(t, a); slices.Contains(got, formerClass) {
		t.Errorf("the former class is not deleted: %v", got)
	}
}

// A state names the classes of machines that were about to be replaced, which are written again. It must not be another object that is overwritten.
func TestRestoreOverwritesNoOtherObject(t *testing.T) {
	for name, tc := range map[string]struct {
		class   string
		refused bool
	}{
		"a former class":                {class: formerClass},
		"none":                          {},
		"a Secret of the control plane": {class: "ca", refused: true},
		"the class of another pool":     {class: namespace + "-other-z1-00000", refused: true},
		"that of a pool whose name begins with the name of this one": {class: pool1 + "-b-00000", refused: true},
		"its deployment": {class: pool1, refused: true},
		"no hash":        {class: pool1 + "-", refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			a, worker := newActuator(t), newWorker()
			existing := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: tc.class}, Data: map[string][]byte{"key": []byte("value")}}
			if tc.refused {
				if err := errors.Join(client.IgnoreAlreadyExists(a.Client.Create(t.Context(), newManager())), a.Client.Create(t.Context(), existing)); err != nil {
					t.Fatal(err)
				}
			}
			state := &State{}
			if err := json.Unmarshal(kept(t).Raw, state); err != nil {
				t.Fatal(err)
			}
			state.MachineDeployments[pool1].MachineSets[0].Spec.Template.Spec.Class.Name = tc.class
			raw, err := json.Marshal(state)
			if err != nil {
				t.Fatal(err)
			}
			worker.Status.State = &runtime.RawExtension{Raw: raw}
			err = a.Restore(t.Context(), worker, newCluster(t))
			if !tc.refused {
				if waiting := new(extension.Wait); !errors.As(err, &waiting) {
					t.Errorf("error is %v", err)
				}
				return
			}
			var invalid *field.Error
			if want := "status.state.machineDeployments[" + pool1 + "].machineSets[0].spec.template.spec.class.name"; !errors.As(err, &invalid) || invalid.Field != want {
				t.Errorf("error is %v, want one of %s", err, want)
			}
			if err := a.Client.Get(t.Context(), client.ObjectKeyFromObject(existing), existing); err != nil || len(existing.Data) != 1 || existing.Labels != nil {
				t.Errorf("the Secret is %v, %v", existing, err)
			}
			if len(machinesIn(t, a)) > 0 || replicasOf(t, a) != 0 {
				t.Error("a part of the state is restored")
			}
		})
	}
}

func TestRestoreHibernated(t *testing.T) {
	a, worker, cluster := newActuator(t), newWorker(), newCluster(t)
	if err := a.Client.Create(t.Context(), newManager()); err != nil {
		t.Fatal(err)
	}
	cluster.Shoot.Spec.Hibernation = &corev1beta1.Hibernation{Enabled: new(true)}
	if err := a.Restore(t.Context(), worker, cluster); err != nil {
		t.Fatal(err)
	}
	if got := replicasOf(t, a); got != 0 {
		t.Errorf("the machine-controller-manager of a hibernated shoot has %d replicas", got)
	}
}

func TestRestoreRefusesAnInvalidState(t *testing.T) {
	a, worker := newActuator(t), newWorker()
	worker.Status.State = &runtime.RawExtension{Raw: []byte(`"H4sI"`)}
	if err := a.Restore(t.Context(), worker, newCluster(t)); err == nil || err.Error() != "status.state: it is not the state of machines" || worker.Status.State == nil {
		t.Errorf("error is %v", err)
	}
}
