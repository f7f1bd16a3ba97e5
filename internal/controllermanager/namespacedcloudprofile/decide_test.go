package namespacedcloudprofile

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

var (
	soon, later = metav1.NewTime(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)), metav1.NewTime(time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC))
	containerd  = []corev1beta1.CRI{{Name: corev1beta1.CRINameContainerD}}
)

func image(name string, versions ...corev1beta1.MachineImageVersion) corev1beta1.MachineImage {
	return corev1beta1.MachineImage{Name: name, Versions: versions}
}

func version(name string, expires *metav1.Time) corev1beta1.ExpirableVersion {
	return corev1beta1.ExpirableVersion{Version: name, ExpirationDate: expires}
}

func TestMerge(t *testing.T) {
	type (
		parent  = corev1beta1.CloudProfileSpec
		profile = corev1beta1.NamespacedCloudProfileSpec
	)
	capabilities := []corev1beta1.CapabilityDefinition{{Name: "architecture", Values: corev1beta1.CapabilityValues{"amd64", "arm64"}}}
	for name, tc := range map[string]struct {
		parent  parent
		profile profile
		want    parent
	}{
		"nothing is changed": {
			parent: parent{Type: "local", Regions: []corev1beta1.Region{{Name: "here"}}},
			want:   parent{Type: "local", Regions: []corev1beta1.Region{{Name: "here"}}},
		},
		"a Kubernetes version is offered longer, one that the parent does not offer is ignored": {
			parent: parent{Kubernetes: corev1beta1.KubernetesSettings{Versions: []corev1beta1.ExpirableVersion{
				{Version: "1.36.1", ExpirationDate: &soon, Classification: new(corev1beta1.ClassificationDeprecated)}, version("1.36.0", &soon),
			}}},
			profile: profile{Kubernetes: &corev1beta1.KubernetesSettings{Versions: []corev1beta1.ExpirableVersion{
				version("1.35.0", &later), version("1.36.1", &later), version("1.36.0", nil),
			}}},
			want: parent{Kubernetes: corev1beta1.KubernetesSettings{Versions: []corev1beta1.ExpirableVersion{
				{Version: "1.36.1", ExpirationDate: &later, Classification: new(corev1beta1.ClassificationDeprecated)}, version("1.36.0", &soon),
			}}},
		},
		"an expiration date replaces the end of a lifecycle": {
			parent: parent{Kubernetes: corev1beta1.KubernetesSettings{Versions: []corev1beta1.ExpirableVersion{
				{Version: "1.36.1", Lifecycle: []corev1beta1.LifecycleStage{{Classification: "supported"}, {Classification: "expired", StartTime: &soon}}},
			}}},
			profile: profile{Kubernetes: &corev1beta1.KubernetesSettings{Versions: []corev1beta1.ExpirableVersion{version("1.36.1", &later)}}},
			want: parent{Kubernetes: corev1beta1.KubernetesSettings{Versions: []corev1beta1.ExpirableVersion{
				{Version: "1.36.1", Lifecycle: []corev1beta1.LifecycleStage{{Classification: "supported"}, {Classification: "expired", StartTime: &later}}},
			}}},
		},
		"a lifecycle replaces an expiration date": {
			parent: parent{Kubernetes: corev1beta1.KubernetesSettings{Versions: []corev1beta1.ExpirableVersion{version("1.36.1", &soon)}}},
			profile: profile{Kubernetes: &corev1beta1.KubernetesSettings{Versions: []corev1beta1.ExpirableVersion{
				{Version: "1.36.1", Lifecycle: []corev1beta1.LifecycleStage{{Classification: "supported"}}},
			}}},
			want: parent{Kubernetes: corev1beta1.KubernetesSettings{Versions: []corev1beta1.ExpirableVersion{
				{Version: "1.36.1", Lifecycle: []corev1beta1.LifecycleStage{{Classification: "supported"}}},
			}}},
		},
		"machine images": {
			parent: parent{MachineImages: []corev1beta1.MachineImage{
				image("old", corev1beta1.MachineImageVersion{
					ExpirableVersion: version("1.0.0", &soon), CRI: containerd, Architectures: []string{"arm64"}, KubeletVersionConstraint: new(">= 1.30"),
				}),
			}},
			profile: profile{MachineImages: []corev1beta1.MachineImage{
				{Name: "old", UpdateStrategy: new(corev1beta1.UpdateStrategyPatch), Versions: []corev1beta1.MachineImageVersion{
					{ExpirableVersion: version("1.0.0", &later), Architectures: []string{"amd64"}},
					{ExpirableVersion: version("2.0.0", nil), Architectures: []string{"arm64"}},
				}},
				image("new", corev1beta1.MachineImageVersion{ExpirableVersion: version("3.0.0", &later)}),
			}},
			want: parent{MachineImages: []corev1beta1.MachineImage{
				{Name: "old", UpdateStrategy: new(corev1beta1.UpdateStrategyPatch), Versions: []corev1beta1.MachineImageVersion{
					{ExpirableVersion: version("1.0.0", &later), CRI: containerd, Architectures: []string{"arm64"}, KubeletVersionConstraint: new(">= 1.30")},
					{ExpirableVersion: version("2.0.0", nil), CRI: containerd, Architectures: []string{"arm64"}},
				}},
				{Name: "new", UpdateStrategy: new(corev1beta1.UpdateStrategyMajor), Versions: []corev1beta1.MachineImageVersion{
					{ExpirableVersion: version("3.0.0", &later), CRI: containerd, Architectures: []string{"amd64"}},
				}},
			}},
		},
		"types of the parent take precedence": {
			parent: parent{
				MachineTypes: []corev1beta1.MachineType{{Name: "small", Usable: new(false)}}, VolumeTypes: []corev1beta1.VolumeType{{Name: "slow", Class: "a"}},
			},
			profile: profile{
				MachineTypes: []corev1beta1.MachineType{{Name: "small", Usable: new(true)}, {Name: "large"}},
				VolumeTypes:  []corev1beta1.VolumeType{{Name: "slow", Class: "b"}, {Name: "fast", Class: "b"}},
			},
			want: parent{
				MachineTypes: []corev1beta1.MachineType{{Name: "small", Usable: new(false)}, {Name: "large", Architecture: new("amd64")}},
				VolumeTypes:  []corev1beta1.VolumeType{{Name: "slow", Class: "a"}, {Name: "fast", Class: "b"}},
			},
		},
		"architectures become capabilities where the parent has them": {
			parent: parent{MachineCapabilities: capabilities},
			profile: profile{
				MachineTypes: []corev1beta1.MachineType{{Name: "large", Architecture: new("arm64")}, {Name: "any"}},
				MachineImages: []corev1beta1.MachineImage{
					image("new", corev1beta1.MachineImageVersion{ExpirableVersion: version("1.0.0", nil), Architectures: []string{"amd64", "arm64"}}),
				},
			},
			want: parent{
				MachineCapabilities: capabilities,
				MachineTypes: []corev1beta1.MachineType{
					{Name: "large", Architecture: new("arm64"), Capabilities: corev1beta1.Capabilities{"architecture": {"arm64"}}}, {Name: "any"},
				},
				MachineImages: []corev1beta1.MachineImage{{Name: "new", UpdateStrategy: new(corev1beta1.UpdateStrategyMajor), Versions: []corev1beta1.MachineImageVersion{{
					ExpirableVersion: version("1.0.0", nil), CRI: containerd, Architectures: []string{"amd64", "arm64"},
					CapabilityFlavors: []corev1beta1.MachineImageFlavor{
						{Capabilities: corev1beta1.Capabilities{"architecture": {"amd64"}}}, {Capabilities: corev1beta1.Capabilities{"architecture": {"arm64"}}},
					},
				}}}},
			},
		},
		"bundles are concatenated": {
			parent: parent{CABundle: new("one\n")}, profile: profile{CABundle: new("two\n")}, want: parent{CABundle: new("one\ntwo\n")},
		},
		"a bundle where the parent has none": {
			profile: profile{CABundle: new("two\n")}, want: parent{CABundle: new("two\n")},
		},
		"a limit may be higher than the parent's": {
			parent:  parent{Limits: &corev1beta1.Limits{MaxNodesTotal: new(int32(10))}},
			profile: profile{Limits: &corev1beta1.Limits{MaxNodesTotal: new(int32(20))}},
			want:    parent{Limits: &corev1beta1.Limits{MaxNodesTotal: new(int32(20))}},
		},
		"without a limit, the parent's is kept": {
			parent: parent{Limits: &corev1beta1.Limits{MaxNodesTotal: new(int32(10))}}, profile: profile{Limits: &corev1beta1.Limits{}},
			want: parent{Limits: &corev1beta1.Limits{MaxNodesTotal: new(int32(10))}},
		},
		"the provider configuration is the parent's": {
			parent:  parent{ProviderConfig: &runtime.RawExtension{Raw: []byte(`{"a":1}`)}},
			profile: profile{ProviderConfig: &runtime.RawExtension{Raw: []byte(`{"b":1}`)}},
			want:    parent{ProviderConfig: &runtime.RawExtension{Raw: []byte(`{"a":1}`)}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			parentBefore, profileBefore := tc.parent.DeepCopy(), tc.profile.DeepCopy()
			if diff := cmp.Diff(&tc.want, merge(&tc.parent, &tc.profile)); diff != "" {
				t.Errorf("merge() (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(parentBefore, &tc.parent) + cmp.Diff(profileBefore, &tc.profile); diff != "" {
				t.Errorf("merge() changed its input:\n%s", diff)
			}
		})
	}
}
