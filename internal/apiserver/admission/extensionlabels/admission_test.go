package extensionlabels_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/internal/apiserver/admission/admissiontest"
	"gardener.cloud/gardener/internal/apiserver/admission/extensionlabels"
)

func TestAdmit(t *testing.T) {
	reader := admissiontest.Reader(t,
		&corev1beta1.CloudProfile{ObjectMeta: metav1.ObjectMeta{Name: "local"}, Spec: corev1beta1.CloudProfileSpec{Type: "local"}},
		&corev1beta1.BackupBucket{ObjectMeta: metav1.ObjectMeta{Name: "bucket"}, Spec: corev1beta1.BackupBucketSpec{Provider: corev1beta1.BackupBucketProvider{Type: "local"}}},
		&corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "extensions"}, Spec: corev1beta1.ControllerRegistrationSpec{Resources: []corev1beta1.ControllerResource{
			{Kind: "Extension", Type: "auto", AutoEnable: []corev1beta1.ClusterType{corev1beta1.ClusterTypeShoot}},
			{Kind: "Extension", Type: "everywhere", AutoEnable: []corev1beta1.ClusterType{corev1beta1.ClusterTypeShoot}, WorkerlessSupported: new(true)},
			{Kind: "Extension", Type: "seeds", AutoEnable: []corev1beta1.ClusterType{corev1beta1.ClusterTypeSeed}},
			{Kind: "Extension", Type: "asked"},
		}}},
	)
	shoot := &corev1beta1.Shoot{Spec: corev1beta1.ShootSpec{
		Extensions: []corev1beta1.Extension{{Type: "asked"}, {Type: "auto", Disabled: new(true)}},
		DNS:        &corev1beta1.DNS{Providers: []corev1beta1.DNSProvider{{Type: new("dns")}, {Type: new("unmanaged")}}},
		Networking: &corev1beta1.Networking{Type: new("net")},
		Provider: corev1beta1.Provider{Type: "local", Workers: []corev1beta1.Worker{{
			Machine:      corev1beta1.Machine{Image: &corev1beta1.ShootMachineImage{Name: "os"}},
			CRI:          &corev1beta1.CRI{ContainerRuntimes: []corev1beta1.ContainerRuntime{{Type: "gvisor"}}},
			ControlPlane: &corev1beta1.WorkerControlPlane{Exposure: &corev1beta1.Exposure{Extension: &corev1beta1.ExtensionExposure{Type: new("expose")}}},
		}}},
	}}
	seed := &corev1beta1.Seed{Spec: corev1beta1.SeedSpec{
		Provider: corev1beta1.SeedProvider{Type: "local"}, Backup: &corev1beta1.Backup{Provider: "store"},
		DNS:        corev1beta1.SeedDNS{Provider: &corev1beta1.SeedDNSProvider{Type: "dns"}, Internal: &corev1beta1.SeedDNSProviderConfig{Type: "other"}},
		Extensions: []corev1beta1.Extension{{Type: "asked"}},
	}}
	stale := &corev1beta1.CloudProfile{Spec: corev1beta1.CloudProfileSpec{Type: "local"}}
	stale.Labels = map[string]string{"provider.extensions.gardener.cloud/old": "true", "mine": "yes", "networking.extensions.gardener.cloud/x": "true"}
	const provider = "provider.extensions.gardener.cloud/"
	for name, tc := range map[string]struct {
		obj  client.Object
		want map[string]string
	}{
		"Shoot": {shoot, map[string]string{
			provider + "local": "true", "dnsrecord.extensions.gardener.cloud/dns": "true", "networking.extensions.gardener.cloud/net": "true",
			"operatingsystemconfig.extensions.gardener.cloud/os": "true", "containerruntime.extensions.gardener.cloud/gvisor": "true",
			"selfhostedshootexposure.extensions.gardener.cloud/expose": "true",
			"extensions.extensions.gardener.cloud/asked":               "true", "extensions.extensions.gardener.cloud/everywhere": "true",
		}},
		"Shoot without workers": {&corev1beta1.Shoot{Spec: corev1beta1.ShootSpec{Provider: corev1beta1.Provider{Type: "local"}}}, map[string]string{
			provider + "local": "true", "extensions.extensions.gardener.cloud/everywhere": "true",
		}},
		"Seed": {seed, map[string]string{
			provider + "local": "true", provider + "store": "true", "dnsrecord.extensions.gardener.cloud/dns": "true",
			"extensions.extensions.gardener.cloud/asked": "true", "extensions.extensions.gardener.cloud/seeds": "true",
		}},
		"SecretBinding for two providers": {
			&corev1beta1.SecretBinding{Provider: &corev1beta1.SecretBindingProvider{Type: "a,b"}},
			map[string]string{provider + "a": "true", provider + "b": "true"},
		},
		"SecretBinding without a provider": {&corev1beta1.SecretBinding{}, nil},
		"CloudProfile with old labels":     {stale, map[string]string{provider + "local": "true", "mine": "yes"}},
		"NamespacedCloudProfile": {
			&corev1beta1.NamespacedCloudProfile{Spec: corev1beta1.NamespacedCloudProfileSpec{Parent: corev1beta1.CloudProfileReference{Name: "local"}}},
			map[string]string{provider + "local": "true"},
		},
		"BackupBucket": {
			&corev1beta1.BackupBucket{Spec: corev1beta1.BackupBucketSpec{Provider: corev1beta1.BackupBucketProvider{Type: "local"}}},
			map[string]string{provider + "local": "true"},
		},
		"BackupEntry": {&corev1beta1.BackupEntry{Spec: corev1beta1.BackupEntrySpec{BucketName: "bucket"}}, map[string]string{provider + "local": "true"}},
		"CredentialsBinding": {
			&securityv1alpha1.CredentialsBinding{Provider: securityv1alpha1.CredentialsBindingProvider{Type: "local"}},
			map[string]string{provider + "local": "true"},
		},
		"WorkloadIdentity": {
			&securityv1alpha1.WorkloadIdentity{Spec: securityv1alpha1.WorkloadIdentitySpec{TargetSystem: securityv1alpha1.TargetSystem{Type: "local"}}},
			map[string]string{provider + "local": "true"},
		},
		"something else": {&corev1beta1.Quota{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := extensionlabels.New()
			p.GardenCache = reader
			if err := p.Admit(t.Context(), admissiontest.Request{Object: tc.obj}.Attributes(), nil); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, tc.obj.GetLabels()); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
		})
	}
	for name, obj := range map[string]client.Object{
		"a bucket that does not exist": &corev1beta1.BackupEntry{Spec: corev1beta1.BackupEntrySpec{BucketName: "x"}},
		"a parent that does not exist": &corev1beta1.NamespacedCloudProfile{},
	} {
		t.Run(name, func(t *testing.T) {
			p := extensionlabels.New()
			p.GardenCache = reader
			if err := p.Admit(t.Context(), admissiontest.Request{Object: obj}.Attributes(), nil); admissiontest.Reason(err) != metav1.StatusReasonInternalError {
				t.Errorf("Admit() = %v, want an internal error", err)
			}
		})
	}
}
