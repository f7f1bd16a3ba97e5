package nodes

import (
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
	"gardener.cloud/gardener/internal/component/machinecontrollermanager"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/internal/stage/stagetest"
)

func TestReplicasOfMachineControllerManager(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: stagetest.Namespace, Name: "pool"}
	machine := &machinev1alpha1.Machine{ObjectMeta: meta}
	idle := &machinev1alpha1.MachineDeployment{ObjectMeta: meta}
	set := &machinev1alpha1.MachineSet{ObjectMeta: meta, Spec: machinev1alpha1.MachineSetSpec{Replicas: 1}}
	full, unobserved, deleted := idle.DeepCopy(), idle.DeepCopy(), idle.DeepCopy()
	full.Status.Replicas = 1
	unobserved.Generation = 2
	deleted.DeletionTimestamp, deleted.Finalizers = new(metav1.Now()), []string{machinev1alpha1.MCMFinalizerName}
	manager := func(replicas int32, annotations map[string]string) client.Object {
		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: stagetest.Namespace, Name: "machine-controller-manager", Annotations: annotations},
			Spec:       appsv1.DeploymentSpec{Replicas: new(replicas)},
		}
	}
	protected := map[string]string{"dependency-watchdog.gardener.cloud/meltdown-protection-active": ""}
	for name, tc := range map[string]struct {
		in       Inputs
		existing []client.Object
		want     int32
	}{
		"a new cluster":                           {want: 2},
		"it runs":                                 {existing: []client.Object{full, manager(2, nil)}, want: 2},
		"it wakes up":                             {existing: []client.Object{idle, manager(0, nil)}, want: 2},
		"protected from a meltdown":               {existing: []client.Object{full, manager(0, protected)}, want: 0},
		"protected, without machines":             {existing: []client.Object{idle, manager(0, protected)}, want: 2},
		"hibernating, with machines":              {in: Inputs{Hibernates: true}, existing: []client.Object{full, manager(1, nil)}, want: 1},
		"hibernating, machines are being deleted": {in: Inputs{Hibernates: true}, existing: []client.Object{idle, machine, manager(0, nil)}, want: 2},
		"hibernating, a machine may still come":   {in: Inputs{Hibernates: true}, existing: []client.Object{idle, set, manager(1, nil)}, want: 1},
		"hibernating, a change is not observed":   {in: Inputs{Hibernates: true}, existing: []client.Object{unobserved, manager(1, nil)}, want: 1},
		"hibernating, a pool is being deleted":    {in: Inputs{Hibernates: true}, existing: []client.Object{deleted, manager(1, nil)}, want: 1},
		"hibernating, protected before":           {in: Inputs{Hibernates: true}, existing: []client.Object{full, manager(0, protected)}, want: 2},
		"hibernating, no machines":                {in: Inputs{Hibernates: true}, existing: []client.Object{idle, manager(1, nil)}, want: 0},
		"created hibernated":                      {in: Inputs{Hibernates: true}, want: 0},
		"deleted":                                 {in: Inputs{Deletes: true}, existing: []client.Object{full, manager(0, protected)}, want: 2},
		"deleted while hibernated":                {in: Inputs{Deletes: true}, existing: []client.Object{idle, manager(0, nil)}, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			in := tc.in
			in.Run = &stage.Run{SeedAPI: fake.NewClientBuilder().WithScheme(stagetest.Scheme(t)).WithObjects(tc.existing...).Build(), Namespace: stagetest.Namespace, Protected: !in.Hibernates}
			in.Replicas = 2
			got, err := in.managerReplicas(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got != tc.want {
				t.Errorf("%d replicas, want %d", got, tc.want)
			}
		})
	}
}

// TestMachineControllerManagerOfExtensionIsTakenOver has what provider-local deployed in earlier versions.
func TestMachineControllerManagerOfExtensionIsTakenOver(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: stagetest.Namespace, Name: "machine-controller-manager"}
	for name, tc := range map[string]struct {
		address string
		gone    bool
	}{
		"a Service with an address is created again": {"10.0.0.1", true}, "one without stays": {"None", false},
	} {
		t.Run(name, func(t *testing.T) {
			deployment, service := &appsv1.Deployment{ObjectMeta: meta}, &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{ClusterIP: tc.address}}
			for _, manager := range []string{"gardenlet", "provider-local"} {
				deployment.ManagedFields = append(deployment.ManagedFields, metav1.ManagedFieldsEntry{
					Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "apps/v1", FieldsType: "FieldsV1",
					FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{"f:replicas":{}}}`)},
				})
			}
			seed := fake.NewClientBuilder().WithScheme(stagetest.Scheme(t)).WithReturnManagedFields().WithObjects(deployment, service).Build()
			in := Inputs{Run: &stage.Run{SeedAPI: seed, Namespace: stagetest.Namespace, FieldManager: "gardenlet"}}
			if err := in.takeManagerOver(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := seed.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment); err != nil {
				t.Fatal(err)
			}
			for _, entry := range deployment.ManagedFields {
				if entry.Manager == "provider-local" {
					t.Errorf("provider-local still owns fields: %s", entry.FieldsV1)
				}
			}
			if err := seed.Get(t.Context(), client.ObjectKeyFromObject(service), service); apierrors.IsNotFound(err) != tc.gone {
				t.Errorf("the Service: %v", err)
			}
		})
	}
}

func TestMachineControllerManagerIsDeployed(t *testing.T) {
	clusters := stagetest.New(t)
	in := Inputs{Run: clusters.Run(), Replicas: 1, MachineControllerManager: func(replicas int32) (machinecontrollermanager.Values, error) {
		return machinecontrollermanager.Values{Namespace: stagetest.Namespace, Image: "gardener", Replicas: replicas, GenericKubeconfig: "generic"}, nil
	}}
	deployed := func(t *testing.T) int32 {
		t.Helper()
		deployment := &appsv1.Deployment{}
		if err := clusters.Seed.Get(t.Context(), client.ObjectKey{Namespace: stagetest.Namespace, Name: "machine-controller-manager"}, deployment); err != nil {
			t.Fatal(err)
		}
		return *deployment.Spec.Replicas
	}
	if err := MachineControllerManager(in).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := deployed(t); got != 1 {
		t.Errorf("%d replicas", got)
	}
	machine := &machinev1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: stagetest.Namespace, Name: "left"}}
	if err := clusters.Seed.Create(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	if err := StopMachineControllerManager(in)(t.Context()); err == nil || deployed(t) != 1 {
		t.Errorf("it is stopped before its machine is deleted: %v", err)
	}
	if err := clusters.Seed.Delete(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	if err := StopMachineControllerManager(in)(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := deployed(t); got != 0 {
		t.Errorf("%d replicas after it was stopped", got)
	}
	in.MachineControllerManager = func(int32) (machinecontrollermanager.Values, error) {
		return machinecontrollermanager.Values{}, errors.New("no image")
	}
	if err := MachineControllerManager(in).Run(t.Context()); err == nil {
		t.Error("a missing image is no error")
	}
}
