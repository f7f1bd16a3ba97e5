package local

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/pkg/extension"
)

func TestKubeletOnSharedDisk(t *testing.T) {
	const full = `evictionHard:
  imagefs.available: 1%
  imagefs.inodesFree: 1%
  memory.available: 100Mi
  nodefs.available: 1%
  nodefs.inodesFree: 1%
evictionSoft:
  memory.available: 200Mi
  nodefs.available: 1%
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
maxPods: 110
`
	for name, tc := range map[string]struct{ data, encoding, want string }{
		"limits for disks only": {
			data: "maxPods: 110\nevictionHard: {memory.available: 100Mi, nodefs.available: 5%}\n" +
				"evictionSoft: {memory.available: 200Mi, nodefs.available: 10%}\n",
			want: full,
		},
		"no limits": {data: "{}", want: "evictionHard:\n  imagefs.available: 1%\n  imagefs.inodesFree: 1%\n  nodefs.available: 1%\n  nodefs.inodesFree: 1%\n" +
			"imageGCHighThresholdPercent: 100\nimageGCLowThresholdPercent: 99\n"},
	} {
		t.Run(name, func(t *testing.T) {
			files := []extensionsv1alpha1.File{{Path: "/etc/other"}, {Path: kubeletConfigFile, Content: extensionsv1alpha1.FileContent{
				Inline: &extensionsv1alpha1.FileContentInline{Data: tc.data},
			}}}
			got, err := kubeletOnSharedDisk(files)
			if err != nil || len(got) != 1 || got[0].Path != kubeletConfigFile {
				t.Fatalf("got %v, %v", got, err)
			}
			if diff := cmp.Diff(tc.want, got[0].Content.Inline.Data); diff != "" {
				t.Errorf("configuration (-want +got):\n%s", diff)
			}
			if files[1].Content.Inline.Data != tc.data {
				t.Error("the given files have changed")
			}
		})
	}
	if got, err := kubeletOnSharedDisk([]extensionsv1alpha1.File{{Path: "/etc/other"}}); got != nil || err != nil {
		t.Errorf("without a kubelet: %v, %v", got, err)
	}
}

// The kubelet of a dual-stack cluster gets both addresses as a flag, as it detects only one.
func TestKubeletAddresses(t *testing.T) {
	for name, tc := range map[string]struct {
		families []corev1beta1.IPFamily
		want     bool
	}{
		"one family":    {families: []corev1beta1.IPFamily{"IPv4"}},
		"both families": {families: []corev1beta1.IPFamily{"IPv4", "IPv6"}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := &corev1beta1.Shoot{Spec: corev1beta1.ShootSpec{Networking: &corev1beta1.Networking{
				IPFamilies: tc.families, Pods: new("10.3.0.0/16"), Services: new("10.4.0.0/16"),
			}}}
			osc := &extensionsv1alpha1.OperatingSystemConfig{Spec: extensionsv1alpha1.OperatingSystemConfigSpec{
				Purpose: extensionsv1alpha1.OperatingSystemConfigPurposeReconcile,
			}}
			osc.Status.ExtensionUnits = []extensionsv1alpha1.Unit{{Name: "former.service"}}
			if err := (&operatingSystemConfigs{}).Reconcile(t.Context(), osc, &extension.Cluster{Shoot: shoot}); err != nil {
				t.Fatal(err)
			}
			units, files := osc.Status.ExtensionUnits, osc.Status.ExtensionFiles
			if tc.want != (len(units) == 1 && units[0].Name == "kubelet.service" && len(units[0].DropIns) == 1 && len(files) == 1 && files[0].Path == addressesScript) ||
				!tc.want && len(units)+len(files) > 0 {
				t.Errorf("units are %+v, files %+v", units, files)
			}
		})
	}
}
