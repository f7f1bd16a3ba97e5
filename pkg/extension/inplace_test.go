package extension

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/event"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	machinev1alpha1 "gardener.cloud/gardener/api/machine/v1alpha1"
)

// Another hash for the same state would update all nodes.
func TestInPlaceHash(t *testing.T) {
	at := new(metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)))
	elsewhere := new(metav1.NewTime(at.In(time.FixedZone("elsewhere", 3600))))
	rotated := func(at *metav1.Time, pending ...corev1beta1.PendingWorkersRollout) *corev1beta1.ShootCredentials {
		return &corev1beta1.ShootCredentials{Rotation: &corev1beta1.ShootCredentialsRotation{
			CertificateAuthorities: &corev1beta1.CARotation{LastInitiationTime: at, PendingWorkersRollouts: pending},
		}}
	}
	kubelet := &corev1beta1.KubeletConfig{
		CPUManagerPolicy: new("static"), KubeReserved: &corev1beta1.KubeletConfigReserved{CPU: new(resource.MustParse("80m"))},
		EvictionHard: &corev1beta1.KubeletConfigEviction{MemoryAvailable: new("100Mi")},
	}
	plain := "d9295eeecfd1ab75"
	for name, tc := range map[string]struct {
		version, image string
		kubelet        *corev1beta1.KubeletConfig
		credentials    *corev1beta1.ShootCredentials
		want           string
	}{
		"plain":                          {version: "1.36.3", image: "1.0.0", want: plain},
		"a patch version":                {version: "1.36.4", image: "1.0.0", want: plain},
		"a minor version":                {version: "1.37.0", image: "1.0.0", want: "d256369e6365122f"},
		"an image":                       {version: "1.36.3", image: "2.0.0", want: "faa34b86248f0dda"},
		"settings of the kubelet":        {version: "1.36.3", image: "1.0.0", kubelet: kubelet, want: "c3e9ba7bea563350"},
		"other settings":                 {version: "1.36.3", image: "1.0.0", kubelet: &corev1beta1.KubeletConfig{MaxPods: new(int32(50))}, want: plain},
		"rotated CAs":                    {version: "1.36.3", image: "1.0.0", credentials: rotated(at), want: "b9f7e3cc1ac3c32f"},
		"rotated CAs in another zone":    {version: "1.36.3", image: "1.0.0", credentials: rotated(elsewhere), want: "b9f7e3cc1ac3c32f"},
		"a rollout that is pending":      {version: "1.36.3", image: "1.0.0", credentials: rotated(at, corev1beta1.PendingWorkersRollout{Name: "a"}), want: plain},
		"one that is pending for others": {version: "1.36.3", image: "1.0.0", credentials: rotated(at, corev1beta1.PendingWorkersRollout{Name: "b"}), want: "b9f7e3cc1ac3c32f"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := InPlaceHash("a", tc.version, tc.image, tc.kubelet, tc.credentials)
			if err != nil || got != tc.want {
				t.Errorf("InPlaceHash() = %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}

// The second hash is that of extensions with the library of the original. In each Shoot, CPU, memory and processes are reserved by default.
func TestInPlaceHashes(t *testing.T) {
	quantity := func(value string) *resource.Quantity { return new(resource.MustParse(value)) }
	defaulted := corev1beta1.KubeletConfigReserved{CPU: quantity("80m"), Memory: quantity("1Gi"), PID: quantity("20k")}
	all := defaulted
	all.EphemeralStorage = quantity("1Gi")
	for name, tc := range map[string]struct {
		kubelet *corev1beta1.KubeletConfig
		want    []string
	}{
		"nothing is reserved":    {want: []string{"d9295eeecfd1ab75", "d9295eeecfd1ab75"}},
		"what is by default":     {kubelet: &corev1beta1.KubeletConfig{KubeReserved: &defaulted}, want: []string{"96d53d8b3ea726af", "7d36c4b98a8be608"}},
		"everything is reserved": {kubelet: &corev1beta1.KubeletConfig{KubeReserved: &all}, want: []string{"cc9a70bbf9225efa", "cc9a70bbf9225efa"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := InPlaceHashes("a", "1.36.3", "1.0.0", tc.kubelet, nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("InPlaceHashes() (-want +got):\n%s", diff)
			}
			if own, err := InPlaceHash("a", "1.36.3", "1.0.0", tc.kubelet, nil); err != nil || own != got[0] {
				t.Errorf("InPlaceHash() is %q, %v", own, err)
			}
		})
	}
}

func TestUpdateStrategy(t *testing.T) {
	surge, unavailable := intstr.FromInt32(2), intstr.FromInt32(1)
	for strategy, want := range map[corev1beta1.MachineUpdateStrategy]string{
		"": "RollingUpdate  2 1", corev1beta1.AutoRollingUpdate: "RollingUpdate  2 1",
		corev1beta1.AutoInPlaceUpdate: "InPlaceUpdate Auto 2 1", corev1beta1.ManualInPlaceUpdate: "InPlaceUpdate Manual 0 0",
	} {
		got := UpdateStrategy(&extensionsv1alpha1.WorkerPool{UpdateStrategy: &strategy}, surge, unavailable)
		orchestration, limits := "", machinev1alpha1.UpdateConfiguration{}
		if got.InPlaceUpdate != nil {
			orchestration, limits = string(got.InPlaceUpdate.OrchestrationType), got.InPlaceUpdate.UpdateConfiguration
		} else {
			limits = got.RollingUpdate.UpdateConfiguration
		}
		if text := string(got.Type) + " " + orchestration + " " + limits.MaxSurge.String() + " " + limits.MaxUnavailable.String(); text != want {
			t.Errorf("the strategy of %q is %q, want %q", strategy, text, want)
		}
	}
}

func TestInPlaceStatus(t *testing.T) {
	deployment := func(pool, hash string, updated, available int32, orchestration machinev1alpha1.OrchestrationType) machinev1alpha1.MachineDeployment {
		d := machinev1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{
			Generation: 2, Labels: map[string]string{constants.WorkerPool: pool}, Annotations: map[string]string{AnnotationInPlaceHash: hash},
		}}
		d.Spec.Replicas = 2
		d.Spec.Strategy.InPlaceUpdate = &machinev1alpha1.InPlaceUpdateMachineDeployment{OrchestrationType: orchestration}
		d.Status = machinev1alpha1.MachineDeploymentStatus{ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: updated, AvailableReplicas: available}
		return d
	}
	const auto, manual = machinev1alpha1.OrchestrationTypeAuto, machinev1alpha1.OrchestrationTypeManual
	unobserved := deployment("a", "new", 2, 2, auto)
	unobserved.Status.ObservedGeneration = 1
	kept := deployment("a", "new", 2, 1, auto)
	kept.Status.PreservedFailedReplicas = 1
	for name, tc := range map[string]struct {
		deployments []machinev1alpha1.MachineDeployment
		// changing is set if the pool has no hash, as its machines are being changed.
		changing bool
		want     string
	}{
		"none exists":                        {want: "old"},
		"all are updated":                    {deployments: []machinev1alpha1.MachineDeployment{deployment("a", "new", 2, 2, auto), deployment("a", "new", 2, 2, auto)}, want: "new"},
		"one zone is not":                    {deployments: []machinev1alpha1.MachineDeployment{deployment("a", "new", 2, 2, auto), deployment("a", "new", 1, 2, auto)}},
		"one zone has another template":      {deployments: []machinev1alpha1.MachineDeployment{deployment("a", "new", 2, 2, auto), deployment("a", "other", 2, 2, auto)}},
		"one zone has the former template":   {deployments: []machinev1alpha1.MachineDeployment{deployment("a", "new", 2, 2, auto), deployment("a", "old", 2, 2, auto)}},
		"one machine is not available":       {deployments: []machinev1alpha1.MachineDeployment{deployment("a", "new", 2, 1, auto)}},
		"except for those that are kept":     {deployments: []machinev1alpha1.MachineDeployment{kept}, want: "new"},
		"except for those that users select": {deployments: []machinev1alpha1.MachineDeployment{deployment("a", "new", 2, 1, manual)}, want: "new"},
		"the template was not observed yet":  {deployments: []machinev1alpha1.MachineDeployment{unobserved}},
		"others do not matter":               {deployments: []machinev1alpha1.MachineDeployment{deployment("a", "new", 2, 2, auto), deployment("b", "x", 0, 0, auto)}, want: "new"},
		"machines are added":                 {deployments: []machinev1alpha1.MachineDeployment{deployment("a", "old", 1, 1, auto)}, want: "old"},
		"no hash is known":                   {deployments: []machinev1alpha1.MachineDeployment{deployment("a", "", 1, 1, auto)}, want: "old"},
		"a change is taken back":             {changing: true, deployments: []machinev1alpha1.MachineDeployment{deployment("a", "old", 1, 2, auto)}},
		"it is undone on all machines":       {changing: true, deployments: []machinev1alpha1.MachineDeployment{deployment("a", "old", 2, 2, auto)}, want: "old"},
	} {
		t.Run(name, func(t *testing.T) {
			worker := &extensionsv1alpha1.Worker{}
			worker.Spec.Pools = []extensionsv1alpha1.WorkerPool{{Name: "a", UpdateStrategy: new(corev1beta1.AutoInPlaceUpdate)}, {Name: "b"}}
			worker.Status.InPlaceUpdates = &extensionsv1alpha1.InPlaceUpdatesWorkerStatus{WorkerPoolToHashMap: map[string]string{"a": "old", "gone": "old"}}
			if tc.changing {
				delete(worker.Status.InPlaceUpdates.WorkerPoolToHashMap, "a")
			}
			var want *extensionsv1alpha1.InPlaceUpdatesWorkerStatus
			if tc.want != "" {
				want = &extensionsv1alpha1.InPlaceUpdatesWorkerStatus{WorkerPoolToHashMap: map[string]string{"a": tc.want}}
			}
			if diff := cmp.Diff(want, inPlaceStatus(worker, tc.deployments)); diff != "" {
				t.Errorf("inPlaceStatus() (-want +got):\n%s", diff)
			}
		})
	}
}

// Hashes that were written while the cache was behind are corrected. Other parts of the status have another writer.
func TestInPlaceChanged(t *testing.T) {
	with := func(change func(*extensionsv1alpha1.WorkerStatus)) *extensionsv1alpha1.Worker {
		w := &extensionsv1alpha1.Worker{}
		change(&w.Status)
		return w
	}
	for name, tc := range map[string]struct {
		change func(*extensionsv1alpha1.WorkerStatus)
		want   bool
	}{
		"a hash": {func(s *extensionsv1alpha1.WorkerStatus) {
			s.InPlaceUpdates = &extensionsv1alpha1.InPlaceUpdatesWorkerStatus{WorkerPoolToHashMap: map[string]string{"a": "1"}}
		}, true},
		"the last operation": {func(s *extensionsv1alpha1.WorkerStatus) { s.LastOperation = &corev1beta1.LastOperation{} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := inPlaceChanged().Update(event.UpdateEvent{ObjectOld: &extensionsv1alpha1.Worker{}, ObjectNew: with(tc.change)}); got != tc.want {
				t.Errorf("the update is passed: %t, want %t", got, tc.want)
			}
		})
	}
}
