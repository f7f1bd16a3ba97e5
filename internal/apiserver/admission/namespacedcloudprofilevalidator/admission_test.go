package namespacedcloudprofilevalidator

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	clocktesting "k8s.io/utils/clock/testing"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/internal/apiserver/admission/admissiontest"
	"gardener.cloud/gardener/test/builder"
)

func TestValidate(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	later, earlier := &metav1.Time{Time: now.Add(time.Hour)}, &metav1.Time{Time: now.Add(-time.Hour)}
	containerd := []corev1beta1.CRI{{Name: "containerd"}}
	version := func(name string, expires *metav1.Time, cri []corev1beta1.CRI, architectures ...string) corev1beta1.MachineImageVersion {
		return corev1beta1.MachineImageVersion{
			ExpirableVersion: corev1beta1.ExpirableVersion{Version: name, ExpirationDate: expires}, CRI: cri, Architectures: architectures,
		}
	}
	images := func(name string, versions ...corev1beta1.MachineImageVersion) []corev1beta1.MachineImage {
		return []corev1beta1.MachineImage{{Name: name, Versions: versions}}
	}
	withStrategy := images("own", version("1.0.0", nil, containerd, "amd64"))
	withStrategy[0].UpdateStrategy = new(corev1beta1.UpdateStrategyMajor)
	small := corev1beta1.MachineType{
		Name: "small", CPU: resource.MustParse("1"), Memory: resource.MustParse("1Gi"),
		Architecture: new("amd64"),
	}
	parent := &corev1beta1.CloudProfile{ObjectMeta: metav1.ObjectMeta{Name: "cloud"}, Spec: corev1beta1.CloudProfileSpec{
		Type:          "local",
		Kubernetes:    corev1beta1.KubernetesSettings{Versions: []corev1beta1.ExpirableVersion{{Version: "1.36.1"}}},
		MachineImages: images("os", version("1.0.0", nil, containerd, "amd64")),
		MachineTypes:  []corev1beta1.MachineType{small}, Regions: []corev1beta1.Region{{Name: "one"}},
	}}
	kubernetes := func(name string, expires *metav1.Time) corev1beta1.NamespacedCloudProfileSpec {
		return corev1beta1.NamespacedCloudProfileSpec{Kubernetes: &corev1beta1.KubernetesSettings{
			Versions: []corev1beta1.ExpirableVersion{{Version: name, ExpirationDate: expires}},
		}}
	}
	machineImages := func(list []corev1beta1.MachineImage) corev1beta1.NamespacedCloudProfileSpec {
		return corev1beta1.NamespacedCloudProfileSpec{MachineImages: list}
	}
	for name, tc := range map[string]struct {
		spec   corev1beta1.NamespacedCloudProfileSpec
		old    *corev1beta1.NamespacedCloudProfileSpec
		parent string
		// want is part of the error; "" for none.
		want string
	}{
		"nothing":                    {spec: corev1beta1.NamespacedCloudProfileSpec{}},
		"a parent that is not there": {parent: "gone", want: `CloudProfile "gone"`},
		"a machine type of the parent": {
			spec: corev1beta1.NamespacedCloudProfileSpec{MachineTypes: []corev1beta1.MachineType{small}},
			want: `machine type "small"`,
		},
		"a machine type that was there before": {
			spec: corev1beta1.NamespacedCloudProfileSpec{MachineTypes: []corev1beta1.MachineType{small}, Limits: &corev1beta1.Limits{}},
			old:  &corev1beta1.NamespacedCloudProfileSpec{MachineTypes: []corev1beta1.MachineType{small}},
		},
		"a version that is offered longer":        {spec: kubernetes("1.36.1", later)},
		"a version that expired":                  {spec: kubernetes("1.36.1", earlier), want: "in the past"},
		"a version without an end":                {spec: kubernetes("1.36.1", nil), want: "no expirationDate"},
		"a version that the parent lacks":         {spec: kubernetes("1.30.0", later), want: "does not offer"},
		"an image version that is offered longer": {spec: machineImages(images("os", version("1.0.0", later, nil)))},
		"an image version without an end": {
			spec: machineImages(images("os", version("1.0.0", nil, nil))),
			want: "spec.machineImages[0].versions[0].expirationDate",
		},
		"an image version that is changed": {
			spec: machineImages(images("os", version("1.0.0", later, containerd))),
			want: "spec.machineImages[0].versions[0].cri",
		},
		"a new version of an image": {spec: machineImages(images("os", version("2.0.0", nil, containerd)))},
		"an incomplete new version of an image": {
			spec: machineImages(images("os", version("2.0.0", nil, nil))),
			want: "status.cloudProfileSpec.machineImages[0].versions[1].cri",
		},
		"a new image": {spec: machineImages(withStrategy)},
		"a new image without a strategy": {
			spec: machineImages(images("own", version("1.0.0", nil, containerd, "amd64"))),
			want: "status.cloudProfileSpec.machineImages[1].updateStrategy",
		},
		"an incomplete new image": {
			spec: machineImages(images("own", version("1.0.0", nil, containerd))),
			want: "spec.machineImages[0].versions[0].architectures",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update), clock: clocktesting.NewFakePassiveClock(now)}
			p.GardenCache = admissiontest.Reader(t, parent)
			tc.spec.Parent = corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "cloud"}
			if tc.parent != "" {
				tc.spec.Parent.Name = tc.parent
			}
			request := admissiontest.Request{Object: &corev1beta1.NamespacedCloudProfile{Spec: tc.spec}, Resource: "namespacedcloudprofiles"}
			if tc.old != nil {
				request.Old = &corev1beta1.NamespacedCloudProfile{Spec: *tc.old}
			}
			err := p.Validate(t.Context(), request.Attributes(), nil)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Validate() = %v, want %q", err, tc.want)
			}
		})
	}
}

// The limit of a CloudProfile is the operator's, and members write NamespacedCloudProfiles.
func TestLimits(t *testing.T) {
	profile := func(parent string, limit *int32) *corev1beta1.NamespacedCloudProfile {
		return &corev1beta1.NamespacedCloudProfile{Spec: corev1beta1.NamespacedCloudProfileSpec{
			Parent: corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: parent}, Limits: &corev1beta1.Limits{MaxNodesTotal: limit},
		}}
	}
	parent := func(name string, limits *corev1beta1.Limits) *corev1beta1.CloudProfile {
		return builder.CloudProfile(name, func(p *corev1beta1.CloudProfile) {
			p.Spec.Limits = limits
			corev1beta1.DefaultCloudProfile(p)
		})
	}
	changed := func(o *corev1beta1.NamespacedCloudProfile) *corev1beta1.NamespacedCloudProfile {
		o.Spec.CABundle = new("")
		return o
	}
	for name, tc := range map[string]struct {
		old, profile *corev1beta1.NamespacedCloudProfile
		verb         bool
	}{
		"new, the same":            {profile: profile("limited", new(int32(10)))},
		"new, lower":               {profile: profile("limited", new(int32(9)))},
		"new, higher":              {profile: profile("limited", new(int32(11))), verb: true},
		"new, none":                {profile: profile("limited", nil)},
		"the parent has no limits": {profile: profile("unlimited", new(int32(11)))},
		"the parent has no limit":  {profile: profile("open", new(int32(11)))},
		"raised":                   {old: profile("limited", new(int32(9))), profile: profile("limited", new(int32(11))), verb: true},
		"set":                      {old: profile("limited", nil), profile: profile("limited", new(int32(11))), verb: true},
		"lowered":                  {old: profile("limited", new(int32(11))), profile: profile("limited", new(int32(10)))},
		"lowered, but not enough":  {old: profile("limited", new(int32(12))), profile: profile("limited", new(int32(11))), verb: true},
		"something else":           {old: profile("limited", new(int32(11))), profile: changed(profile("limited", new(int32(11))))},
		"another parent":           {old: profile("unlimited", new(int32(11))), profile: profile("limited", new(int32(11))), verb: true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, denied := range []bool{false, true} {
				p := &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update), clock: clocktesting.NewFakePassiveClock(time.Now())}
				p.GardenCache = admissiontest.Reader(t, parent("limited", &corev1beta1.Limits{MaxNodesTotal: new(int32(10))}), parent("unlimited", nil), parent("open", &corev1beta1.Limits{}))
				p.Authorizer = admissiontest.Denying()
				var want metav1.StatusReason
				if denied {
					p.Authorizer = admissiontest.Denying("raise-spec-limits namespacedcloudprofiles")
					if tc.verb {
						want = metav1.StatusReasonForbidden
					}
				}
				request := admissiontest.Request{Object: tc.profile, Resource: "namespacedcloudprofiles"}
				if tc.old != nil {
					request.Old = tc.old
				}
				if err := p.Validate(t.Context(), request.Attributes(), nil); admissiontest.Reason(err) != want {
					t.Errorf("Validate() = %v, want reason %q; the verb is denied: %v", err, want, denied)
				}
			}
		})
	}
}
