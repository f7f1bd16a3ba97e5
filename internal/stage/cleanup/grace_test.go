package cleanup

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/internal/stage/stagetest"
)

func TestPeriods(t *testing.T) {
	const webhooks, extendedAPIs, resources = "shoot.gardener.cloud/cleanup-webhooks-finalize-grace-period-seconds",
		"shoot.gardener.cloud/cleanup-extended-apis-finalize-grace-period-seconds",
		"shoot.gardener.cloud/cleanup-kubernetes-resources-finalize-grace-period-seconds"
	documented := Periods{Webhooks: 5 * time.Minute, ExtendedAPIs: time.Hour, Resources: 5 * time.Minute, Snapshots: time.Hour}
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        Periods
	}{
		"documented": {want: documented},
		"invalid":    {annotations: map[string]string{webhooks: "never", extendedAPIs: "-1", resources: ""}, want: documented},
		"at once": {
			annotations: map[string]string{webhooks: "0", extendedAPIs: "0", resources: "0"},
			want:        Periods{Webhooks: time.Second, ExtendedAPIs: time.Second, Resources: time.Second, Snapshots: time.Second, Volumes: time.Second},
		},
		"each": {
			annotations: map[string]string{webhooks: "10", extendedAPIs: "20", resources: "30"},
			want:        Periods{Webhooks: 10 * time.Second, ExtendedAPIs: 20 * time.Second, Resources: 30 * time.Second, Snapshots: 30 * time.Second, Volumes: 30 * time.Second},
		},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Annotations: tc.annotations}}
			if diff := cmp.Diff(tc.want, PeriodsOf(shoot)); diff != "" {
				t.Errorf("PeriodsOf() (-want +got):\n%s", diff)
			}
		})
	}
}

// Finalizers of users, whose controllers may not run any more, do not keep a shoot forever.
func TestFinalizersAreRemovedAfterTheirPeriod(t *testing.T) {
	for ago, want := range map[time.Duration][]string{
		time.Minute: {
			"APIService held", "CustomResourceDefinition held", "Ingress held", "MutatingWebhookConfiguration held", "PersistentVolume held",
			"PersistentVolumeClaim held", "Pod held", "PersistentVolumeClaim system", "Service held", "VolumeSnapshot held", "VolumeSnapshotContent held",
		},
		10 * time.Minute: {
			"APIService held", "CustomResourceDefinition held", "PersistentVolume held", "PersistentVolumeClaim system", "VolumeSnapshot held", "VolumeSnapshotContent held",
		},
		2 * time.Hour: {"PersistentVolume held", "PersistentVolumeClaim system"},
	} {
		t.Run(ago.String(), func(t *testing.T) {
			deleted := func(name string) metav1.ObjectMeta {
				return metav1.ObjectMeta{Namespace: "default", Name: name, Finalizers: []string{"example.com/x"}, DeletionTimestamp: new(metav1.NewTime(now.Add(-ago)))}
			}
			held, system := deleted("held"), deleted("system")
			system.Labels = map[string]string{"shoot.gardener.cloud/no-cleanup": "true"}
			objects := []client.Object{
				&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: held}, &apiregistrationv1.APIService{ObjectMeta: held},
				&apiextensionsv1.CustomResourceDefinition{ObjectMeta: held}, &corev1.Pod{ObjectMeta: held}, &networkingv1.Ingress{ObjectMeta: held},
				&corev1.Service{ObjectMeta: held, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}},
				&corev1.PersistentVolumeClaim{ObjectMeta: held}, &corev1.PersistentVolumeClaim{ObjectMeta: system}, &corev1.PersistentVolume{ObjectMeta: held},
				snapshot("VolumeSnapshot", held), snapshot("VolumeSnapshotContent", held),
			}
			for _, object := range objects {
				switch object.(type) {
				case *admissionregistrationv1.MutatingWebhookConfiguration, *apiregistrationv1.APIService, *apiextensionsv1.CustomResourceDefinition, *corev1.PersistentVolume:
					object.SetNamespace("")
				}
			}
			shoot := newShoot(t, objects...)
			in := Inputs{
				Run:     &stage.Run{Target: stage.NewConnectedTarget(shoot, nil), Clock: clocktesting.NewFakePassiveClock(now)},
				Periods: PeriodsOf(&corev1beta1.Shoot{}),
			}
			for _, task := range Tasks(in) {
				if err := stagetest.UntilIdle(t, task.Run); err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s: %v", task.ID, err)
				}
			}
			slices.Sort(want)
			if diff := cmp.Diff(want, left(t, shoot, objects)); diff != "" {
				t.Errorf("what is left (-want +got):\n%s", diff)
			}
		})
	}
}
