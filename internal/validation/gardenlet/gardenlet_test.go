package gardenlet_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/validation/gardenlet"
	"gardener.cloud/gardener/internal/validation/validationtest"
)

func TestValidateGardenletConfiguration(t *testing.T) {
	seconds := func(n int) *metav1.Duration { return &metav1.Duration{Duration: time.Duration(n) * time.Second} }
	for name, tc := range map[string]struct {
		change func(*gardenletconfigv1alpha1.GardenletConfiguration)
		want   []string
	}{
		"the defaults are valid": {change: func(*gardenletconfigv1alpha1.GardenletConfiguration) {}},
		"logs in another way": {
			change: func(c *gardenletconfigv1alpha1.GardenletConfiguration) { c.LogLevel, c.LogFormat = "loud", "xml" },
			want:   []string{"FieldValueNotSupported logLevel", "FieldValueNotSupported logFormat"},
		},
		"a kubeconfig that is renewed too often": {
			change: func(c *gardenletconfigv1alpha1.GardenletConfiguration) {
				v := c.GardenClientConnection.KubeconfigValidity
				v.Validity, v.AutoRotationJitterPercentageMin = seconds(599), new(int32(90))
			},
			want: []string{
				"FieldValueInvalid gardenClientConnection.kubeconfigValidity.validity",
				"FieldValueInvalid gardenClientConnection.kubeconfigValidity.autoRotationJitterPercentageMin",
			},
		},
		"negative numbers": {
			change: func(c *gardenletconfigv1alpha1.GardenletConfiguration) {
				c.Controllers.Shoot.ConcurrentSyncs, c.Controllers.Shoot.SyncPeriod = new(-1), seconds(-1)
				c.Controllers.ManagedSeed.WaitSyncPeriod = seconds(-1)
			},
			want: []string{
				"FieldValueInvalid controllers.shoot.concurrentSyncs", "FieldValueInvalid controllers.shoot.syncPeriod",
				"FieldValueInvalid controllers.managedSeed.waitSyncPeriod",
			},
		},
		"DNS records that live too long": {
			change: func(c *gardenletconfigv1alpha1.GardenletConfiguration) {
				c.Controllers.Shoot.DNSEntryTTLSeconds = new(int64(601))
			},
			want: []string{"FieldValueInvalid controllers.shoot.dnsEntryTTLSeconds"},
		},
		"backups are kept for purposes, but not at all": {
			change: func(c *gardenletconfigv1alpha1.GardenletConfiguration) {
				c.Controllers.BackupEntry.DeletionGracePeriodShootPurposes = []corev1beta1.ShootPurpose{"production", "fun"}
			},
			want: []string{
				"FieldValueForbidden controllers.backupEntry.deletionGracePeriodShootPurposes",
				"FieldValueNotSupported controllers.backupEntry.deletionGracePeriodShootPurposes[1]",
			},
		},
		"more is reserved than there is": {
			change: func(c *gardenletconfigv1alpha1.GardenletConfiguration) {
				c.Resources = &gardenletconfigv1alpha1.ResourcesConfiguration{
					Capacity: corev1.ResourceList{"shoots": resource.MustParse("5")},
					Reserved: corev1.ResourceList{"shoots": resource.MustParse("6"), "cpu": resource.MustParse("1")},
				}
			},
			want: []string{"FieldValueInvalid resources.reserved.shoots", "FieldValueInvalid resources.reserved.cpu"},
		},
		"exposure handlers need names of their own": {
			change: func(c *gardenletconfigv1alpha1.GardenletConfiguration) {
				c.ExposureClassHandlers = []gardenletconfigv1alpha1.ExposureClassHandler{{Name: "a"}, {Name: "a"}, {Name: "A"}}
			},
			want: []string{"FieldValueDuplicate exposureClassHandlers[1].name", "FieldValueInvalid exposureClassHandlers[2].name"},
		},
		"gateways of exposure handlers": {
			change: func(c *gardenletconfigv1alpha1.GardenletConfiguration) {
				handler := func(name, namespace string) gardenletconfigv1alpha1.ExposureClassHandler {
					return gardenletconfigv1alpha1.ExposureClassHandler{Name: name, SNI: &gardenletconfigv1alpha1.SNI{
						Ingress: &gardenletconfigv1alpha1.SNIIngress{Namespace: &namespace},
					}}
				}
				c.ExposureClassHandlers = []gardenletconfigv1alpha1.ExposureClassHandler{handler("a", "x"), handler("b", "x"), handler("c", "a.b")}
				c.ExposureClassHandlers[0].LoadBalancerService.Annotations = map[string]string{"a b": ""}
				ingress := c.ExposureClassHandlers[1].SNI.Ingress
				ingress.ServiceName, ingress.ServiceExternalIP, ingress.Labels = new("1"), new("example.com"), map[string]string{"a": "b c"}
			},
			want: []string{
				"FieldValueInvalid exposureClassHandlers[0].loadBalancerService.annotations", "FieldValueInvalid exposureClassHandlers[1].sni.ingress.serviceName",
				"FieldValueInvalid exposureClassHandlers[1].sni.ingress.serviceExternalIP", "FieldValueInvalid exposureClassHandlers[1].sni.ingress.labels",
				"FieldValueDuplicate exposureClassHandlers[1].sni.ingress.namespace", "FieldValueInvalid exposureClassHandlers[2].sni.ingress.namespace",
			},
		},
		"an address of the gateway that is none": {
			change: func(c *gardenletconfigv1alpha1.GardenletConfiguration) {
				c.SNI.Ingress.ServiceExternalIP = new("1.2.3")
			},
			want: []string{"FieldValueInvalid sni.ingress.serviceExternalIP"},
		},
		"leaders that are replaced before they can renew their lease": {
			change: func(c *gardenletconfigv1alpha1.GardenletConfiguration) { c.LeaderElection.LeaseDuration = *seconds(10) },
			want:   []string{"FieldValueInvalid leaderElection.leaseDuration"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			config := &gardenletconfigv1alpha1.GardenletConfiguration{}
			gardenletconfigv1alpha1.DefaultGardenletConfiguration(config)
			tc.change(config)
			validationtest.Expect(t, gardenlet.ValidateGardenletConfiguration(config, nil, false), tc.want...)
		})
	}
}
