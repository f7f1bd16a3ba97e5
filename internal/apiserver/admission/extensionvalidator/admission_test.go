package extensionvalidator_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/admission/admissiontest"
	"gardener.cloud/gardener/internal/apiserver/admission/extensionvalidator"
)

const forbidden = metav1.StatusReasonForbidden

func shoot(change func(*corev1beta1.ShootSpec)) *corev1beta1.Shoot {
	s := &corev1beta1.Shoot{Spec: corev1beta1.ShootSpec{
		Networking: &corev1beta1.Networking{Type: new("net")},
		Provider: corev1beta1.Provider{Type: "local", Workers: []corev1beta1.Worker{{
			Machine: corev1beta1.Machine{Image: &corev1beta1.ShootMachineImage{Name: "os"}},
			CRI:     &corev1beta1.CRI{ContainerRuntimes: []corev1beta1.ContainerRuntime{{Type: "gvisor"}}},
		}}},
	}}
	if change != nil {
		change(&s.Spec)
	}
	return s
}

func seed(change func(*corev1beta1.SeedSpec)) *corev1beta1.Seed {
	s := &corev1beta1.Seed{Spec: corev1beta1.SeedSpec{
		Provider: corev1beta1.SeedProvider{Type: "local"}, Backup: &corev1beta1.Backup{Provider: "local"},
		DNS: corev1beta1.SeedDNS{Provider: &corev1beta1.SeedDNSProvider{Type: "dns"}},
	}}
	if change != nil {
		change(&s.Spec)
	}
	return s
}

func TestValidate(t *testing.T) {
	registration := &corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "all"}}
	for kind, extensionType := range map[string]string{
		"BackupBucket": "local", "BackupEntry": "local", "ControlPlane": "local", "Infrastructure": "local", "Worker": "local", "DNSRecord": "dns",
		"Network": "net", "OperatingSystemConfig": "os", "ContainerRuntime": "gvisor", "SelfHostedShootExposure": "expose", "Extension": "any",
	} {
		registration.Spec.Resources = append(registration.Spec.Resources, corev1beta1.ControllerResource{Kind: kind, Type: extensionType})
	}
	registration.Spec.Resources = append(registration.Spec.Resources,
		corev1beta1.ControllerResource{Kind: "Extension", Type: "seeds", ClusterCompatibility: []corev1beta1.ClusterType{corev1beta1.ClusterTypeSeed}},
		corev1beta1.ControllerResource{Kind: "Extension", Type: "light", WorkerlessSupported: new(true)},
		corev1beta1.ControllerResource{Kind: "Extension", Type: "helper", Primary: new(false)},
	)
	going := shoot(func(s *corev1beta1.ShootSpec) { s.Networking.Type = new("x") })
	going.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	bucket := func(providerType string) *corev1beta1.BackupBucket {
		return &corev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: providerType}, Spec: corev1beta1.BackupBucketSpec{
			Provider: corev1beta1.BackupBucketProvider{Type: providerType},
		}}
	}
	entry := func(bucket string) *corev1beta1.BackupEntry {
		return &corev1beta1.BackupEntry{Spec: corev1beta1.BackupEntrySpec{BucketName: bucket}}
	}
	extension := func(extensionType string, disabled *bool) []corev1beta1.Extension {
		return []corev1beta1.Extension{{Type: extensionType, Disabled: disabled}}
	}
	for name, tc := range map[string]struct {
		obj  client.Object
		want metav1.StatusReason
	}{
		"Shoot":                         {obj: shoot(nil)},
		"Shoot of an unknown provider":  {obj: shoot(func(s *corev1beta1.ShootSpec) { s.Provider.Type = "x" }), want: forbidden},
		"Shoot with an unknown network": {obj: shoot(func(s *corev1beta1.ShootSpec) { s.Networking.Type = new("x") }), want: forbidden},
		"Shoot with an unknown image":   {obj: shoot(func(s *corev1beta1.ShootSpec) { s.Provider.Workers[0].Machine.Image.Name = "x" }), want: forbidden},
		"Shoot with an unknown runtime": {obj: shoot(func(s *corev1beta1.ShootSpec) { s.Provider.Workers[0].CRI.ContainerRuntimes[0].Type = "x" }), want: forbidden},
		"Shoot with unknown DNS": {obj: shoot(func(s *corev1beta1.ShootSpec) {
			s.DNS = &corev1beta1.DNS{Providers: []corev1beta1.DNSProvider{{Type: new("x")}}}
		}), want: forbidden},
		"Shoot without DNS": {obj: shoot(func(s *corev1beta1.ShootSpec) {
			s.DNS = &corev1beta1.DNS{Providers: []corev1beta1.DNSProvider{{Type: new("unmanaged")}}}
		})},
		"Shoot with an unknown extension":    {obj: shoot(func(s *corev1beta1.ShootSpec) { s.Extensions = extension("x", nil) }), want: forbidden},
		"Shoot without an unknown extension": {obj: shoot(func(s *corev1beta1.ShootSpec) { s.Extensions = extension("x", new(true)) })},
		"Shoot with an extension for seeds":  {obj: shoot(func(s *corev1beta1.ShootSpec) { s.Extensions = extension("seeds", nil) }), want: forbidden},
		"Shoot with one that is not primary": {obj: shoot(func(s *corev1beta1.ShootSpec) { s.Extensions = extension("helper", nil) }), want: forbidden},
		"Shoot without workers":              {obj: &corev1beta1.Shoot{Spec: corev1beta1.ShootSpec{Provider: corev1beta1.Provider{Type: "x"}}}},
		"Shoot without workers, wrong":       {obj: &corev1beta1.Shoot{Spec: corev1beta1.ShootSpec{Extensions: extension("any", nil)}}, want: forbidden},
		"Shoot without workers, right":       {obj: &corev1beta1.Shoot{Spec: corev1beta1.ShootSpec{Extensions: extension("light", nil)}}},
		"Shoot that is going":                {obj: going},
		"self-hosted Shoot with unknown backup": {obj: shoot(func(s *corev1beta1.ShootSpec) {
			s.Provider.Workers[0].ControlPlane = &corev1beta1.WorkerControlPlane{Backup: &corev1beta1.Backup{Provider: "x"}}
		}), want: forbidden},
		"self-hosted Shoot, unknown exposure": {obj: shoot(func(s *corev1beta1.ShootSpec) {
			s.Provider.Workers[0].ControlPlane = &corev1beta1.WorkerControlPlane{Exposure: &corev1beta1.Exposure{Extension: &corev1beta1.ExtensionExposure{Type: new("x")}}}
		}), want: forbidden},
		"Seed":                                {obj: seed(nil)},
		"Seed of an unknown provider":         {obj: seed(func(s *corev1beta1.SeedSpec) { s.Provider.Type = "x" }), want: forbidden},
		"Seed with unknown backup":            {obj: seed(func(s *corev1beta1.SeedSpec) { s.Backup.Provider = "x" }), want: forbidden},
		"Seed with unknown DNS":               {obj: seed(func(s *corev1beta1.SeedSpec) { s.DNS.Provider.Type = "x" }), want: forbidden},
		"Seed with an extension for Shoots":   {obj: seed(func(s *corev1beta1.SeedSpec) { s.Extensions = extension("any", nil) }), want: forbidden},
		"Seed with an extension for seeds":    {obj: seed(func(s *corev1beta1.SeedSpec) { s.Extensions = extension("seeds", nil) })},
		"BackupBucket":                        {obj: bucket("local")},
		"BackupBucket of an unknown provider": {obj: bucket("x"), want: forbidden},
		"BackupEntry":                         {obj: entry("local")},
		"BackupEntry of an unknown provider":  {obj: entry("x"), want: forbidden},
		"BackupEntry in no bucket":            {obj: entry("none"), want: metav1.StatusReasonInternalError},
		"something else":                      {obj: &corev1beta1.Quota{}},
	} {
		t.Run(name, func(t *testing.T) {
			p := extensionvalidator.New()
			p.GardenCache = admissiontest.Reader(t, registration, bucket("local"), bucket("x"))
			if err := p.Validate(t.Context(), admissiontest.Request{Object: tc.obj}.Attributes(), nil); admissiontest.Reason(err) != tc.want {
				t.Errorf("Validate() = %v, want reason %q", err, tc.want)
			}
		})
	}
}
