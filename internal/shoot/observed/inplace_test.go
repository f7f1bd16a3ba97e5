package observed

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/pkg/extension"
	"gardener.cloud/gardener/test/builder"
)

func TestPendingUpdates(t *testing.T) {
	shoot := func() *corev1beta1.Shoot {
		return builder.Shoot("a", builder.Workers(3), func(s *corev1beta1.Shoot) {
			s.Spec.Kubernetes.Version = "1.35.4"
			for i, strategy := range []corev1beta1.MachineUpdateStrategy{corev1beta1.AutoInPlaceUpdate, corev1beta1.ManualInPlaceUpdate, corev1beta1.AutoRollingUpdate} {
				pool := &s.Spec.Provider.Workers[i]
				pool.Name, pool.UpdateStrategy = []string{"auto", "manual", "rolling"}[i], &strategy
				pool.Machine.Image = &corev1beta1.ShootMachineImage{Name: "local", Version: new("1.0.0")}
			}
		})
	}
	hashes := map[string]string{}
	for _, pool := range []string{"auto", "manual", "rolling"} {
		hash, err := extension.InPlaceHash(pool, "1.35.4", "1.0.0", shoot().Spec.Kubernetes.Kubelet, nil)
		if err != nil {
			t.Fatal(err)
		}
		hashes[pool] = hash
	}
	reported := &extensionsv1alpha1.InPlaceUpdatesWorkerStatus{WorkerPoolToHashMap: hashes}
	both := &corev1beta1.PendingWorkerUpdates{AutoInPlaceUpdate: []string{"auto"}, ManualInPlaceUpdate: []string{"manual"}}
	at := new(metav1.NewTime(time.Unix(1, 0)))
	reserved := &corev1beta1.KubeletConfigReserved{CPU: new(resource.MustParse("80m")), Memory: new(resource.MustParse("1Gi")), PID: new(resource.MustParse("20k"))}
	for name, tc := range map[string]struct {
		change   func(*corev1beta1.Shoot)
		reported *extensionsv1alpha1.InPlaceUpdatesWorkerStatus
		restored bool
		want     *corev1beta1.PendingWorkerUpdates
	}{
		"nothing":       {reported: reported},
		"a new cluster": {change: func(s *corev1beta1.Shoot) { s.Spec.Kubernetes.Version = "1.36.1" }},
		"a new pool": {
			change: func(s *corev1beta1.Shoot) {
				s.Spec.Provider.Workers[0].Name, s.Spec.Kubernetes.Version = "new", "1.36.1"
			},
			reported: reported, want: &corev1beta1.PendingWorkerUpdates{ManualInPlaceUpdate: []string{"manual"}},
		},
		"during a move, nothing is reported yet": {restored: true, want: both},
		"during a move, another pool is reported": {
			restored: true, reported: &extensionsv1alpha1.InPlaceUpdatesWorkerStatus{WorkerPoolToHashMap: map[string]string{"auto": hashes["auto"]}},
			want: &corev1beta1.PendingWorkerUpdates{ManualInPlaceUpdate: []string{"manual"}},
		},
		"after a move, nothing is reported yet": {
			change: func(s *corev1beta1.Shoot) {
				s.Status.InPlaceUpdates = &corev1beta1.InPlaceUpdatesStatus{PendingWorkerUpdates: both}
			}, want: both,
		},
		"after a move, another pool is reported": {
			change: func(s *corev1beta1.Shoot) {
				s.Status.InPlaceUpdates = &corev1beta1.InPlaceUpdatesStatus{PendingWorkerUpdates: both}
			},
			reported: &extensionsv1alpha1.InPlaceUpdatesWorkerStatus{WorkerPoolToHashMap: map[string]string{"auto": hashes["auto"]}},
			want:     &corev1beta1.PendingWorkerUpdates{ManualInPlaceUpdate: []string{"manual"}},
		},
		"after a move, all are updated": {
			change: func(s *corev1beta1.Shoot) {
				s.Status.InPlaceUpdates = &corev1beta1.InPlaceUpdatesStatus{PendingWorkerUpdates: both}
			},
			reported: reported,
		},
		"a patch version": {change: func(s *corev1beta1.Shoot) { s.Spec.Kubernetes.Version = "1.35.5" }, reported: reported},
		"a minor version": {change: func(s *corev1beta1.Shoot) { s.Spec.Kubernetes.Version = "1.36.1" }, reported: reported, want: both},
		"the version of a pool": {
			change: func(s *corev1beta1.Shoot) {
				s.Spec.Kubernetes.Version = "1.36.1"
				s.Spec.Provider.Workers[0].Kubernetes = &corev1beta1.WorkerKubernetes{Version: new("1.35.4"), Kubelet: s.Spec.Kubernetes.Kubelet}
			},
			reported: reported, want: &corev1beta1.PendingWorkerUpdates{ManualInPlaceUpdate: []string{"manual"}},
		},
		"an image": {
			change:   func(s *corev1beta1.Shoot) { s.Spec.Provider.Workers[0].Machine.Image.Version = new("2.0.0") },
			reported: reported, want: &corev1beta1.PendingWorkerUpdates{AutoInPlaceUpdate: []string{"auto"}},
		},
		"the CPU manager": {
			change: func(s *corev1beta1.Shoot) {
				s.Spec.Kubernetes.Kubelet = &corev1beta1.KubeletConfig{CPUManagerPolicy: new("static")}
			},
			reported: reported, want: both,
		},
		// As in every Shoot, nothing is reserved of the storage.
		"hashes of extensions with the library of the original": {
			change: func(s *corev1beta1.Shoot) {
				s.Spec.Kubernetes.Kubelet = &corev1beta1.KubeletConfig{KubeReserved: reserved}
			},
			reported: &extensionsv1alpha1.InPlaceUpdatesWorkerStatus{WorkerPoolToHashMap: map[string]string{"auto": "ae31d8b4acc13e3f", "manual": "ae31d8b4acc13e3f"}},
		},
		"a minor version, with extensions with the library of the original": {
			change: func(s *corev1beta1.Shoot) {
				s.Spec.Kubernetes.Version, s.Spec.Kubernetes.Kubelet = "1.36.1", &corev1beta1.KubeletConfig{KubeReserved: reserved}
			},
			reported: &extensionsv1alpha1.InPlaceUpdatesWorkerStatus{WorkerPoolToHashMap: map[string]string{"auto": "ae31d8b4acc13e3f", "manual": "ae31d8b4acc13e3f"}}, want: both,
		},
		"rotated CAs": {
			change: func(s *corev1beta1.Shoot) {
				s.Status.Credentials = &corev1beta1.ShootCredentials{Rotation: &corev1beta1.ShootCredentialsRotation{
					CertificateAuthorities: &corev1beta1.CARotation{LastInitiationTime: at, PendingWorkersRollouts: []corev1beta1.PendingWorkersRollout{{Name: "auto"}}},
				}}
			},
			reported: reported, want: &corev1beta1.PendingWorkerUpdates{ManualInPlaceUpdate: []string{"manual"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := shoot()
			if tc.change != nil {
				tc.change(s)
			}
			got, err := PendingUpdates(s, tc.reported, tc.restored)
			if err != nil {
				t.Fatal(err)
			}
			var pending *corev1beta1.PendingWorkerUpdates
			if got != nil {
				pending = got.PendingWorkerUpdates
			}
			if diff := cmp.Diff(tc.want, pending); diff != "" {
				t.Errorf("PendingUpdates() (-want +got):\n%s", diff)
			}
		})
	}
}
