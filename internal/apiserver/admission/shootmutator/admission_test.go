package shootmutator

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	clocktesting "k8s.io/utils/clock/testing"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/apiserver/admission/admissiontest"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const allTasks = "deployInfrastructure,deployDNSRecordInternal,deployDNSRecordExternal,deployDNSRecordIngress"

func newProfile() *corev1beta1.CloudProfile {
	image := func(version string, architectures ...string) corev1beta1.MachineImageVersion {
		return corev1beta1.MachineImageVersion{ExpirableVersion: corev1beta1.ExpirableVersion{Version: version}, Architectures: architectures}
	}
	return &corev1beta1.CloudProfile{ObjectMeta: metav1.ObjectMeta{Name: "cloud"}, Spec: corev1beta1.CloudProfileSpec{
		Kubernetes: corev1beta1.KubernetesSettings{Versions: []corev1beta1.ExpirableVersion{
			{Version: "1.36.1"},
			{Version: "1.35.4"},
			{Version: "1.35.2"},
		}},
		MachineImages: []corev1beta1.MachineImage{
			{Name: "os", Versions: []corev1beta1.MachineImageVersion{image("1.1.0", "amd64"), image("1.2.0", "amd64")}},
			{Name: "arm-os", Versions: []corev1beta1.MachineImageVersion{image("3.1.0", "arm64")}},
		},
		MachineTypes: []corev1beta1.MachineType{{Name: "small", Architecture: new("amd64")}, {Name: "arm", Architecture: new("arm64")}},
	}}
}

func newShoot(change ...func(*corev1beta1.Shoot)) *corev1beta1.Shoot {
	shoot := &corev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "shoot"},
		Spec: corev1beta1.ShootSpec{
			CloudProfile: &corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "cloud"},
			Networking:   &corev1beta1.Networking{IPFamilies: []corev1beta1.IPFamily{corev1beta1.IPFamilyIPv4}},
			Provider:     corev1beta1.Provider{Workers: []corev1beta1.Worker{{Name: "pool", Machine: corev1beta1.Machine{Type: "small"}}}},
		},
	}
	for _, c := range change {
		c(shoot)
	}
	return shoot
}

func withImage(name, version string) func(*corev1beta1.Shoot) {
	return func(s *corev1beta1.Shoot) {
		s.Spec.Provider.Workers[0].Machine.Image = &corev1beta1.ShootMachineImage{Name: name, Version: &version}
	}
}

func admit(t *testing.T, shoot, old *corev1beta1.Shoot) error {
	t.Helper()
	seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "seed"}, Spec: corev1beta1.SeedSpec{Networks: corev1beta1.SeedNetworks{
		ShootDefaults: &corev1beta1.ShootNetworks{Pods: new("100.96.0.0/11"), Services: new("fd00::/112")},
	}}}
	p := &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update), clock: clocktesting.NewFakePassiveClock(now)}
	p.GardenCache = admissiontest.Reader(t, newProfile(), seed)
	request := admissiontest.Request{Object: shoot, Resource: "shoots"}
	if old != nil {
		request.Old = old
	}
	return p.Admit(t.Context(), request.Attributes(), nil)
}

func TestNewShootIsCompleted(t *testing.T) {
	shoot := newShoot(func(s *corev1beta1.Shoot) {
		s.Annotations = map[string]string{constants.GardenCreatedBy: "mallory", constants.ShootTasks: "custom"}
		s.Spec.SeedName, s.Spec.Kubernetes.Version = new("seed"), "1.35"
		s.Spec.Provider.Workers[0].Kubernetes = &corev1beta1.WorkerKubernetes{Version: new("")}
	})
	want := newShoot(withImage("os", "1.2.0"), func(s *corev1beta1.Shoot) {
		s.Annotations = map[string]string{constants.GardenCreatedBy: "alice", constants.ShootTasks: "custom," + allTasks}
		s.Spec.SeedName, s.Spec.Kubernetes.Version = new("seed"), "1.35.4"
		s.Spec.Provider.Workers[0].Kubernetes = &corev1beta1.WorkerKubernetes{Version: new("1.36.1")}
		s.Spec.Provider.Workers[0].Machine.Architecture = new("amd64")
		s.Spec.Networking.Pods = new("100.96.0.0/11") // the services are of another IP family
		s.Spec.Maintenance = &corev1beta1.Maintenance{AutoRotation: &corev1beta1.MaintenanceAutoRotation{
			Credentials: &corev1beta1.MaintenanceCredentialsAutoRotation{ETCDEncryptionKey: &corev1beta1.MaintenanceRotationConfig{
				RotationPeriod: &metav1.Duration{Duration: 28 * 24 * time.Hour},
			}},
		}}
	})
	if err := admit(t, shoot, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, shoot); diff != "" {
		t.Errorf("Admit() (-want +got):\n%s", diff)
	}
}

func TestMachineImage(t *testing.T) {
	type image struct{ Name, Version, Architecture string }
	for name, tc := range map[string]struct {
		old, shoot *corev1beta1.Shoot
		want       image
		refused    bool
	}{
		"the first image for the architecture": {
			shoot: newShoot(func(s *corev1beta1.Shoot) { s.Spec.Provider.Workers[0].Machine.Type = "arm" }), want: image{"arm-os", "3.1.0", "arm64"},
		},
		"the newest of a minor version":     {shoot: newShoot(withImage("os", "1.1")), want: image{"os", "1.1.0", "amd64"}},
		"a complete version is left alone":  {shoot: newShoot(withImage("os", "9.9.9")), want: image{"os", "9.9.9", "amd64"}},
		"what a pool has stays if left out": {old: newShoot(withImage("os", "1.1.0")), shoot: newShoot(), want: image{"os", "1.1.0", "amd64"}},
		"its version stays if left out": {
			old: newShoot(withImage("os", "1.1.0")), shoot: newShoot(withImage("os", "")),
			want: image{"os", "1.1.0", "amd64"},
		},
		"an image that is gone stays": {
			old:   newShoot(withImage("gone", "1.0.0")),
			shoot: newShoot(withImage("gone", "1.0.0"), func(s *corev1beta1.Shoot) { s.Spec.Region = "other" }), want: image{
				"gone", "1.0.0",
				"amd64",
			},
		},
		"an image that there is not":            {shoot: newShoot(withImage("gone", "1.0.0")), refused: true},
		"an image for other machines":           {shoot: newShoot(withImage("arm-os", "")), refused: true},
		"a version that is none":                {shoot: newShoot(withImage("os", "x")), refused: true},
		"an image for other machines, complete": {shoot: newShoot(withImage("arm-os", "3.1.0")), want: image{"arm-os", "3.1.0", "amd64"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := admit(t, tc.shoot, tc.old)
			if tc.refused {
				if reason := admissiontest.Reason(err); reason != metav1.StatusReasonForbidden {
					t.Errorf("Admit() = %v, want it forbidden", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			m := tc.shoot.Spec.Provider.Workers[0].Machine
			if diff := cmp.Diff(tc.want, image{m.Image.Name, *m.Image.Version, *m.Architecture}); diff != "" {
				t.Errorf("Admit() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTasksOfAChange(t *testing.T) {
	base := func(change ...func(*corev1beta1.Shoot)) *corev1beta1.Shoot {
		shoot := newShoot(withImage("os", "1.2.0"), func(s *corev1beta1.Shoot) {
			s.Spec.Kubernetes.Version, s.Spec.Provider.Workers[0].Machine.Architecture = "1.36.1", new("amd64")
			s.Spec.Maintenance = &corev1beta1.Maintenance{ConfineSpecUpdateRollout: new(true)}
			s.Status.LastOperation = &corev1beta1.LastOperation{State: corev1beta1.LastOperationStateFailed}
			s.Spec.Provider.WorkersSettings = &corev1beta1.WorkersSettings{SSHAccess: &corev1beta1.SSHAccess{Enabled: true}}
		})
		for _, c := range change {
			c(shoot)
		}
		return shoot
	}
	const retry = constants.FailedShootNeedsRetryOperation
	for name, tc := range map[string]struct {
		change func(*corev1beta1.Shoot)
		want   map[string]string
	}{
		"nothing": {change: func(*corev1beta1.Shoot) {}},
		"labels":  {change: func(s *corev1beta1.Shoot) { s.Labels = map[string]string{"a": "b"} }},
		"a spec that waits for the maintenance of a failed shoot": {
			change: func(s *corev1beta1.Shoot) { s.Spec.Purpose = new(corev1beta1.ShootPurposeTesting) }, want: map[string]string{retry: "true"},
		},
		"ssh access": {
			change: func(s *corev1beta1.Shoot) { s.Spec.Provider.WorkersSettings.SSHAccess.Enabled = false },
			want:   map[string]string{retry: "true", constants.ShootTasks: "deployInfrastructure"},
		},
		"dns": {
			change: func(s *corev1beta1.Shoot) { s.Spec.DNS = &corev1beta1.DNS{Domain: new("a.example.com")} },
			want: map[string]string{
				retry: "true", constants.ShootTasks: "deployDNSRecordInternal,deployDNSRecordExternal,deployDNSRecordIngress",
			},
		},
		"a new key pair for ssh": {
			change: func(s *corev1beta1.Shoot) {
				s.Annotations = map[string]string{constants.GardenerOperation: constants.OperationRotateSSHKeypair}
			},
			want: map[string]string{
				constants.GardenerOperation: constants.OperationRotateSSHKeypair, constants.ShootTasks: "deployInfrastructure",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := base(tc.change)
			if err := admit(t, shoot, base()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, shoot.Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}
