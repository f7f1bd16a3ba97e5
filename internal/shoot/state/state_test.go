package state

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/pkg/extension/worker"
)

const namespace = "shoot--dev--a"

func object(name string, labels map[string]string, owner ...string) metav1.ObjectMeta {
	out := metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels, UID: "1", Finalizers: []string{"f"}}
	if len(owner) == 2 {
		out.OwnerReferences = []metav1.OwnerReference{{Kind: owner[0], Name: owner[1]}}
	}
	return out
}

func containerRuntime(typ, pool string) *extensionsv1alpha1.ContainerRuntime {
	return &extensionsv1alpha1.ContainerRuntime{ObjectMeta: object(typ+"-"+pool, nil), Spec: extensionsv1alpha1.ContainerRuntimeSpec{
		DefaultSpec: extensionsv1alpha1.DefaultSpec{Type: typ}, WorkerPool: extensionsv1alpha1.ContainerRuntimeWorkerPool{Name: pool},
	}}
}

func newSeed(t *testing.T) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, extensionsv1alpha1.AddToScheme, machinev1alpha1.AddToScheme, corev1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	state := extensionsv1alpha1.DefaultStatus{State: &runtime.RawExtension{Raw: []byte(`{"x":1}`)}}
	secret := func(name string, labels map[string]string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: object(name, labels), Type: corev1.SecretTypeOpaque, Data: map[string][]byte{"k": []byte("v")}}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		secret("ca", map[string]string{"managed-by": "secrets-manager", "persist": "true"}),
		secret("of-an-extension", map[string]string{"persist": "true"}),
		secret("server", map[string]string{"managed-by": "secrets-manager"}),
		&extensionsv1alpha1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Name: namespace + "--1"}, Status: extensionsv1alpha1.BackupEntryStatus{DefaultStatus: state}},
		&extensionsv1alpha1.BackupEntry{ObjectMeta: metav1.ObjectMeta{Name: "shoot--dev--b--1"}, Status: extensionsv1alpha1.BackupEntryStatus{DefaultStatus: state}},
		&extensionsv1alpha1.SelfHostedShootExposure{ObjectMeta: object("a", nil), Status: extensionsv1alpha1.SelfHostedShootExposureStatus{DefaultStatus: state}},
		&extensionsv1alpha1.Network{ObjectMeta: object("a", nil)},
		containerRuntime("kata", "a"), containerRuntime("kata", "b"), containerRuntime("gvisor", "a"),
		&machinev1alpha1.MachineDeployment{ObjectMeta: object("d", nil), Spec: machinev1alpha1.MachineDeploymentSpec{Replicas: 3}},
		&machinev1alpha1.MachineDeployment{ObjectMeta: object("without-sets", nil)},
		&machinev1alpha1.MachineSet{ObjectMeta: object("d-2", map[string]string{"name": "d"}, "MachineDeployment", "d"), Status: machinev1alpha1.MachineSetStatus{Replicas: 3}},
		&machinev1alpha1.MachineSet{ObjectMeta: object("d-1", nil, "MachineDeployment", "d")},
		&machinev1alpha1.Machine{ObjectMeta: object("d-2-b", map[string]string{"node": "n"}, "MachineSet", "d-2")},
		&machinev1alpha1.Machine{ObjectMeta: object("d-1-a", nil, "MachineSet", "d-1"), Spec: machinev1alpha1.MachineSpec{ProviderID: "local:///x/y"}},
		&machinev1alpha1.Machine{ObjectMeta: object("not-created-yet", nil, "MachineSet", "d-2")},
	).Build()
}

// All that is saved can be read again for the next seed.
func TestCollectedStateIsRead(t *testing.T) {
	workers := []corev1beta1.Worker{
		{Name: "a", CRI: &corev1beta1.CRI{ContainerRuntimes: []corev1beta1.ContainerRuntime{{Type: "kata"}}}}, {Name: "b"},
	}
	spec, err := Collect(t.Context(), newSeed(t), namespace, namespace+"--1", workers)
	if err != nil {
		t.Fatal(err)
	}
	secrets, err := Secrets(spec, "next")
	if err != nil {
		t.Fatal(err)
	}
	content := map[string][]byte{"k": []byte("v")}
	if diff := cmp.Diff([]*corev1.Secret{
		{
			ObjectMeta: metav1.ObjectMeta{Namespace: "next", Name: "ca", Labels: map[string]string{"managed-by": "secrets-manager", "persist": "true"}},
			Type:       corev1.SecretTypeOpaque, Data: content,
		},
		{
			ObjectMeta: metav1.ObjectMeta{Namespace: "next", Name: "of-an-extension", Labels: map[string]string{"persist": "true"}},
			Type:       corev1.SecretTypeOpaque, Data: content,
		},
	}, secrets); diff != "" {
		t.Errorf("Secrets (-want +got):\n%s", diff)
	}
	kept := func(name string, labels map[string]string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}
	}
	raw, err := Machines(spec)
	if err != nil {
		t.Fatal(err)
	}
	got, err := worker.DecodeState(raw.Raw)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&worker.State{MachineDeployments: map[string]*worker.DeploymentState{"d": {
		Replicas:    3,
		MachineSets: []machinev1alpha1.MachineSet{{ObjectMeta: kept("d-1", nil)}, {ObjectMeta: kept("d-2", map[string]string{"name": "d"})}},
		Machines: []machinev1alpha1.Machine{
			{ObjectMeta: kept("d-1-a", nil), Spec: machinev1alpha1.MachineSpec{ProviderID: "local:///x/y"}},
			{ObjectMeta: kept("d-2-b", map[string]string{"node": "n"})},
		},
	}}}, got); diff != "" {
		t.Errorf("machines (-want +got):\n%s", diff)
	}
	if len(spec.Extensions) != 2 || Extension(spec, "BackupEntry", namespace+"--1") == nil || Extension(spec, "SelfHostedShootExposure", "a") == nil {
		t.Errorf("states of extensions: %+v", spec.Extensions)
	}
	var removed []string
	for _, r := range ContainerRuntimes(spec) {
		removed = append(removed, r.Type+" of "+r.WorkerPool.Name)
	}
	if diff := cmp.Diff([]string{"gvisor of a", "kata of b"}, removed); diff != "" {
		t.Errorf("ContainerRuntimes that no pool has (-want +got):\n%s", diff)
	}
	if Extension(spec, "Network", "a") != nil {
		t.Error("a Network without state has one")
	}
}

func TestNoMachinesAreNotWritten(t *testing.T) {
	if data, err := encodeMachines(&worker.State{}); data != nil || err != nil {
		t.Errorf("got %v, %v", data, err)
	}
	if raw, err := Machines(&corev1beta1.ShootStateSpec{}); raw != nil || err != nil {
		t.Errorf("got %v, %v", raw, err)
	}
}

func TestSecretsOfEarlierVersions(t *testing.T) {
	for name, tc := range map[string]struct {
		raw  string
		want *corev1.Secret // nil if it is an error
	}{
		"wrapped": {
			`{"data":{"k":"dg=="},"type":"kubernetes.io/tls"}`,
			&corev1.Secret{Type: corev1.SecretTypeTLS, Data: map[string][]byte{"k": []byte("v")}},
		},
		"plain": {`{"k":"dg=="}`, &corev1.Secret{Type: corev1.SecretTypeOpaque, Immutable: new(true), Data: map[string][]byte{"k": []byte("v")}}},
		"plain with a key data": {
			`{"data":"dg==","k":"dg=="}`,
			&corev1.Secret{Type: corev1.SecretTypeOpaque, Immutable: new(true), Data: map[string][]byte{"data": []byte("v"), "k": []byte("v")}},
		},
		"not base64": {`{"data":{"k":"~secret~"}}`, nil},
		"nothing":    {`null`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			secrets, err := Secrets(&corev1beta1.ShootStateSpec{Gardener: []corev1beta1.GardenerResourceData{
				{Name: "s", Type: "secret", Data: runtime.RawExtension{Raw: []byte(tc.raw)}},
			}}, "")
			if tc.want == nil {
				if err == nil || strings.Contains(err.Error(), "~secret~") {
					t.Errorf("error is %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			tc.want.Name = "s"
			if diff := cmp.Diff([]*corev1.Secret{tc.want}, secrets); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMerge(t *testing.T) {
	data := func(name, value string) corev1beta1.GardenerResourceData {
		return corev1beta1.GardenerResourceData{Name: name, Type: "secret", Data: runtime.RawExtension{Raw: []byte(value)}}
	}
	extension := func(kind, value string) corev1beta1.ExtensionResourceState {
		return corev1beta1.ExtensionResourceState{Kind: kind, Name: new("a"), State: &runtime.RawExtension{Raw: []byte(value)}}
	}
	got, err := Merge(
		&corev1beta1.ShootStateSpec{
			Gardener:   []corev1beta1.GardenerResourceData{data("deleted", "old"), data("kept", "old")},
			Extensions: []corev1beta1.ExtensionResourceState{extension("Network", "old"), extension("Worker", "old")},
		},
		&corev1beta1.ShootStateSpec{
			Gardener:   []corev1beta1.GardenerResourceData{data("kept", "new")},
			Extensions: []corev1beta1.ExtensionResourceState{extension("Worker", "new")},
		},
		false,
	)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&corev1beta1.ShootStateSpec{
		Gardener:   []corev1beta1.GardenerResourceData{data("kept", "new"), data("deleted", "old")},
		Extensions: []corev1beta1.ExtensionResourceState{extension("Network", "old"), extension("Worker", "new")},
	}, got); diff != "" {
		t.Errorf("Merge() (-want +got):\n%s", diff)
	}
}

// A ContainerRuntime that was deleted in the shoot does not return on the next seed, but one that is being released does.
func TestMergeRemovedContainerRuntimes(t *testing.T) {
	runtimeOf := func(name string) corev1beta1.GardenerResourceData {
		return corev1beta1.GardenerResourceData{Name: name, Type: constants.DataTypeContainerRuntime, Data: runtime.RawExtension{Raw: []byte("{}")}}
	}
	saved := &corev1beta1.ShootStateSpec{Gardener: []corev1beta1.GardenerResourceData{runtimeOf("a"), runtimeOf("b")}}
	collected := &corev1beta1.ShootStateSpec{Gardener: []corev1beta1.GardenerResourceData{runtimeOf("b")}}
	for released, want := range map[bool][]corev1beta1.GardenerResourceData{false: {runtimeOf("b")}, true: {runtimeOf("b"), runtimeOf("a")}} {
		got, err := Merge(saved, collected, released)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got.Gardener); diff != "" {
			t.Errorf("nodes are released: %t (-want +got):\n%s", released, diff)
		}
	}
	if len(saved.Gardener) != 2 {
		t.Error("Merge has changed the saved state")
	}
}

// A machine that is being deleted is restored as the one that its set deletes first.
func TestMachineInDeletion(t *testing.T) {
	owned := func(name, kind, owner string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Labels: map[string]string{"node": name}, Annotations: map[string]string{"k": "v"}, OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: owner}}}
	}
	d := machinev1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Name: "d"}}
	set := machinev1alpha1.MachineSet{ObjectMeta: owned("s", "MachineDeployment", "d")}
	stays, goes := machinev1alpha1.Machine{ObjectMeta: owned("a", "MachineSet", "s")}, machinev1alpha1.Machine{ObjectMeta: owned("b", "MachineSet", "s")}
	goes.DeletionTimestamp = new(metav1.Now())
	state := machineState([]machinev1alpha1.MachineDeployment{d}, []machinev1alpha1.MachineSet{set}, []machinev1alpha1.Machine{stays, goes})
	got := map[string]map[string]string{}
	for _, machine := range state.MachineDeployments["d"].Machines {
		got[machine.Name] = machine.Annotations
	}
	if diff := cmp.Diff(map[string]map[string]string{"a": {"k": "v"}, "b": {"k": "v", machinev1alpha1.MachinePriority: "1"}}, got); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if len(goes.Annotations) != 1 {
		t.Error("the Machine itself has changed")
	}
}

// When objects of machines are being removed, what is left of them does not replace the machines that were saved. Before, it does: a machine that is gone for good
// is not restored.
func TestMergeMachines(t *testing.T) {
	deployment := func(replicas int32, machines ...string) *worker.DeploymentState {
		d := &worker.DeploymentState{Replicas: replicas, MachineSets: []machinev1alpha1.MachineSet{{ObjectMeta: metav1.ObjectMeta{Name: "s"}}}}
		for _, name := range machines {
			d.Machines = append(d.Machines, machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		return d
	}
	type state = map[string]*worker.DeploymentState
	for name, tc := range map[string]struct {
		saved, collected, want state
		released               bool
	}{
		"none":            {},
		"the first ones":  {collected: state{"d": deployment(1, "a")}, want: state{"d": deployment(1, "a")}},
		"all are removed": {saved: state{"d": deployment(1, "a")}, want: state{"d": deployment(1, "a")}, released: true},
		"a deployment is removed": {
			saved: state{"d": deployment(1, "a"), "e": deployment(1, "b")}, collected: state{"e": deployment(1, "b")},
			want: state{"d": deployment(1, "a"), "e": deployment(1, "b")}, released: true,
		},
		"a machine is removed": {
			saved: state{"d": deployment(2, "a", "b")}, collected: state{"d": deployment(2, "b")}, want: state{"d": deployment(2, "a", "b")}, released: true,
		},
		"a machine is gone for good": {saved: state{"d": deployment(2, "a", "b")}, collected: state{"d": deployment(2, "b")}, want: state{"d": deployment(2, "b")}},
		"a machine was replaced":     {saved: state{"d": deployment(2, "a", "b")}, collected: state{"d": deployment(2, "b", "c")}, want: state{"d": deployment(2, "b", "c")}},
		"there are fewer replicas":   {saved: state{"d": deployment(2, "a", "b")}, collected: state{"d": deployment(1, "b")}, want: state{"d": deployment(1, "b")}},
		"there are more replicas":    {saved: state{"d": deployment(1, "a")}, collected: state{"d": deployment(2, "a", "b")}, want: state{"d": deployment(2, "a", "b")}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := func(s state) *corev1beta1.ShootStateSpec {
				data, err := encodeMachines(&worker.State{MachineDeployments: s})
				if err != nil {
					t.Fatal(err)
				}
				if data == nil {
					return &corev1beta1.ShootStateSpec{}
				}
				return &corev1beta1.ShootStateSpec{Gardener: []corev1beta1.GardenerResourceData{*data}}
			}
			merged, err := Merge(spec(tc.saved), spec(tc.collected), tc.released)
			if err != nil {
				t.Fatal(err)
			}
			got, err := machinesOf(merged)
			if diff := cmp.Diff(tc.want, got.MachineDeployments); diff != "" || err != nil {
				t.Errorf("machines (-want +got), %v:\n%s", err, diff)
			}
		})
	}
	broken := &corev1beta1.ShootStateSpec{Gardener: []corev1beta1.GardenerResourceData{{
		Name: machineStateName, Type: machineStateName, Data: runtime.RawExtension{Raw: []byte(`{}`)},
	}}}
	if _, err := Merge(broken, &corev1beta1.ShootStateSpec{}, true); err == nil {
		t.Error("machines that cannot be read are replaced")
	}
}

// The periodic state replaces the one before, also what is gone since.
func TestWriteReplaces(t *testing.T) {
	c := newSeed(t)
	shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "a"}}
	for _, name := range []string{"old", "new"} {
		if err := Write(t.Context(), c, shoot, time.Now(), func(*corev1beta1.ShootStateSpec) (*corev1beta1.ShootStateSpec, error) {
			return &corev1beta1.ShootStateSpec{Gardener: []corev1beta1.GardenerResourceData{{Name: name}}}, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	saved := &corev1beta1.ShootState{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(shoot), saved); err != nil {
		t.Fatal(err)
	}
	if len(saved.Spec.Gardener) != 1 || saved.Spec.Gardener[0].Name != "new" || saved.Annotations["gardener.cloud/timestamp"] == "" {
		t.Errorf("saved: %+v", saved)
	}
}
