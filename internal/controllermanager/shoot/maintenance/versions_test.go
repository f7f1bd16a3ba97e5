package maintenance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

var now = time.Date(2026, 11, 21, 1, 30, 0, 0, time.UTC)

// version is written like "1.36.1", "1.36.1 preview" or "1.36.1 expired".
func version(text string) corev1beta1.ExpirableVersion {
	name, classification, _ := strings.Cut(text, " ")
	v := corev1beta1.ExpirableVersion{Version: name}
	switch classification {
	case "":
	case "expired":
		v.Classification, v.ExpirationDate = new(corev1beta1.ClassificationDeprecated), new(metav1.NewTime(now.Add(-time.Hour)))
	case "soon": // a lifecycle
		v.Lifecycle = []corev1beta1.LifecycleStage{
			{Classification: corev1beta1.ClassificationSupported}, {Classification: corev1beta1.ClassificationExpired, StartTime: new(metav1.NewTime(now.Add(time.Hour)))},
		}
	case "over":
		v.Lifecycle = []corev1beta1.LifecycleStage{
			{Classification: corev1beta1.ClassificationSupported}, {Classification: corev1beta1.ClassificationExpired, StartTime: new(metav1.NewTime(now.Add(-time.Hour)))},
		}
	default:
		v.Classification = new(corev1beta1.VersionClassification(classification))
	}
	return v
}

func pool(name, kubernetes, image string) corev1beta1.Worker {
	w := corev1beta1.Worker{Name: name, Machine: corev1beta1.Machine{
		Type: "small", Architecture: new("amd64"), Image: &corev1beta1.ShootMachineImage{Name: "linux", Version: &image},
	}}
	if kubernetes != "" {
		w.Kubernetes = &corev1beta1.WorkerKubernetes{Version: &kubernetes}
	}
	return w
}

// versionsOf describes the versions of a spec, like "1.36.1 a=1.36.1/1.0.0".
func versionsOf(spec *corev1beta1.ShootSpec) string {
	out := spec.Kubernetes.Version
	for _, w := range spec.Provider.Workers {
		kubernetes := "-"
		if w.Kubernetes != nil {
			kubernetes = *w.Kubernetes.Version
		}
		out += fmt.Sprintf(" %s=%s/%s", w.Name, kubernetes, *w.Machine.Image.Version)
	}
	return out
}

func TestKubernetesVersions(t *testing.T) {
	for name, tc := range map[string]struct {
		offered  string
		version  string
		auto     bool
		pools    []string // Kubernetes versions
		want     string
		failures int
	}{
		"a later patch":                            {offered: "1.36.1,1.36.2,1.36.3", version: "1.36.1", auto: true, want: "1.36.3"},
		"not automatic":                            {offered: "1.36.1,1.36.3", version: "1.36.1", want: "1.36.1"},
		"nothing later":                            {offered: "1.36.1,1.36.3,1.37.0", version: "1.36.3", auto: true, want: "1.36.3"},
		"a preview":                                {offered: "1.36.1,1.36.2,1.36.3 preview", version: "1.36.1", auto: true, want: "1.36.2"},
		"an unavailable one":                       {offered: "1.36.1,1.36.3 unavailable", version: "1.36.1", auto: true, want: "1.36.1"},
		"not to a deprecated one":                  {offered: "1.36.1 supported,1.36.3 deprecated", version: "1.36.1", auto: true, want: "1.36.1"},
		"from a deprecated one to another":         {offered: "1.36.1 deprecated,1.36.3 deprecated", version: "1.36.1", auto: true, want: "1.36.3"},
		"supported before deprecated":              {offered: "1.36.1,1.36.2 supported,1.36.3 deprecated", version: "1.36.1", auto: true, want: "1.36.2"},
		"10 is later than 9":                       {offered: "1.36.9,1.36.10", version: "1.36.9", auto: true, want: "1.36.10"},
		"expired, to the last patch":               {offered: "1.36.1 expired,1.36.2,1.36.3,1.37.0", version: "1.36.1", want: "1.36.3"},
		"expired, to a deprecated one":             {offered: "1.36.1 expired,1.36.2 deprecated,1.37.0", version: "1.36.1", want: "1.36.2"},
		"the last patch has expired":               {offered: "1.35.9 expired,1.36.1,1.36.3,1.37.0", version: "1.35.9", want: "1.36.3"},
		"all patches have expired":                 {offered: "1.35.8 expired,1.35.9 expired,1.36.1", version: "1.35.8", want: "1.36.1"},
		"minor versions are not skipped":           {offered: "1.35.9 expired,1.37.0", version: "1.35.9", want: "1.35.9", failures: 1},
		"an expired one is a step to a later one":  {offered: "1.34.9 expired,1.35.9 expired,1.35.10 over,1.35.11 preview,1.36.1", version: "1.34.9", want: "1.35.10"},
		"which is left in the next maintenance":    {offered: "1.34.9 expired,1.35.9 expired,1.35.10 over,1.35.11 preview,1.36.1", version: "1.35.10", want: "1.36.1"},
		"pools follow to an expired one at last":   {offered: "1.34.9 expired,1.35.9 expired,1.36.1", version: "1.34.9", pools: []string{"1.34.9", ""}, want: "1.35.9 0=1.35.9/1.0.0 1=-/1.0.0"},
		"expired, and only previews are left":      {offered: "1.35.9 expired,1.36.1 preview", version: "1.35.9", want: "1.35.9", failures: 1},
		"not offered any more":                     {offered: "1.36.2", version: "1.36.1", want: "1.36.2"},
		"in the last stage of its lifecycle":       {offered: "1.36.1 over,1.36.2 soon", version: "1.36.1", want: "1.36.2"},
		"before the last stage of its lifecycle":   {offered: "1.36.1 soon,1.36.2", version: "1.36.1", want: "1.36.1"},
		"no version":                               {offered: "1.36.1", version: "new", auto: true, want: "new", failures: 1},
		"a pool gets patches of its own":           {offered: "1.36.1,1.35.4,1.35.5", version: "1.36.1", auto: true, pools: []string{"1.35.4"}, want: "1.36.1 0=1.35.5/1.0.0"},
		"a pool follows the control plane":         {offered: "1.36.1,1.36.2", version: "1.36.1", auto: true, pools: []string{"1.36.1", ""}, want: "1.36.2 0=1.36.2/1.0.0 1=-/1.0.0"},
		"a pool is not newer":                      {offered: "1.36.1,1.36.2 expired,1.36.3 preview,1.36.0 expired", version: "1.36.1", pools: []string{"1.36.0"}, want: "1.36.1 0=1.36.1/1.0.0"},
		"a pool's version has expired":             {offered: "1.37.0,1.36.2,1.36.1,1.35.9 expired", version: "1.37.0", pools: []string{"1.35.9"}, want: "1.37.0 0=1.36.2/1.0.0"},
		"a pool stays within reach":                {offered: "1.35.9 expired,1.36.1,1.32.8,1.33.5", version: "1.35.9", pools: []string{"1.32.8"}, want: "1.36.1 0=1.33.5/1.0.0"},
		"a pool takes the control plane's at last": {offered: "1.36.1 expired,1.35.9 expired,1.37.0 preview", version: "1.36.1", pools: []string{"1.35.9"}, want: "1.36.1 0=1.36.1/1.0.0", failures: 1},
	} {
		t.Run(name, func(t *testing.T) {
			profile := &corev1beta1.CloudProfileSpec{MachineImages: []corev1beta1.MachineImage{{
				Name: "linux", Versions: []corev1beta1.MachineImageVersion{{ExpirableVersion: version("1.0.0")}},
			}}}
			for text := range strings.SplitSeq(tc.offered, ",") {
				profile.Kubernetes.Versions = append(profile.Kubernetes.Versions, version(text))
			}
			spec := &corev1beta1.ShootSpec{Kubernetes: corev1beta1.Kubernetes{Version: tc.version}}
			spec.Maintenance = &corev1beta1.Maintenance{AutoUpdate: &corev1beta1.MaintenanceAutoUpdate{KubernetesVersion: tc.auto}}
			for i, kubernetes := range tc.pools {
				spec.Provider.Workers = append(spec.Provider.Workers, pool(fmt.Sprint(i), kubernetes, "1.0.0"))
			}
			u := updater{spec: spec, profile: profile, now: now}
			u.run()
			if got := versionsOf(spec); got != tc.want || len(u.failures) != tc.failures {
				t.Errorf("versions are %s, failures %q; want %s and %d failures", got, u.failures, tc.want, tc.failures)
			}
		})
	}
}

func TestMachineImages(t *testing.T) {
	patch, minor := corev1beta1.UpdateStrategyPatch, corev1beta1.UpdateStrategyMinor
	of := func(texts string, change ...func(*corev1beta1.MachineImageVersion)) (all []corev1beta1.MachineImageVersion) {
		for text := range strings.SplitSeq(texts, ",") {
			v := corev1beta1.MachineImageVersion{ExpirableVersion: version(text), Architectures: []string{"amd64"}}
			for _, c := range change {
				c(&v)
			}
			all = append(all, v)
		}
		return all
	}
	arm := func(v *corev1beta1.MachineImageVersion) { v.Architectures = []string{"arm64"} }
	containerd := func(v *corev1beta1.MachineImageVersion) { v.CRI = []corev1beta1.CRI{{Name: "containerd"}} }
	newer := func(v *corev1beta1.MachineImageVersion) { v.KubeletVersionConstraint = new(">= 1.37") }
	older := func(v *corev1beta1.MachineImageVersion) { v.KubeletVersionConstraint = new("< 1.36") }
	inPlace := func(from string) func(*corev1beta1.MachineImageVersion) {
		return func(v *corev1beta1.MachineImageVersion) {
			v.InPlaceUpdates = &corev1beta1.InPlaceUpdates{Supported: true, MinVersionForUpdate: &from}
		}
	}
	updatedInPlace := func(w *corev1beta1.Worker) { w.UpdateStrategy = new(corev1beta1.AutoInPlaceUpdate) }
	const all = "1.1.0,1.1.2,1.2.5,2.0.1,3.4.0"
	for name, tc := range map[string]struct {
		offered  []corev1beta1.MachineImageVersion
		strategy *corev1beta1.MachineImageUpdateStrategy
		manual   bool
		change   func(*corev1beta1.Worker)
		want     string
		failures int
	}{
		"to the newest of all":                   {offered: of(all), want: "3.4.0"},
		"to the newest of the major version":     {offered: of(all), strategy: &minor, want: "1.2.5"},
		"to the newest of the minor version":     {offered: of(all), strategy: &patch, want: "1.1.2"},
		"not automatic":                          {offered: of(all), manual: true, want: "1.1.0"},
		"expired, although not automatic":        {offered: of("1.1.0 expired,1.1.2,1.2.5"), manual: true, want: "1.2.5"},
		"a preview":                              {offered: of("1.1.0,1.1.2,2.0.0 preview"), want: "1.1.2"},
		"supported before deprecated":            {offered: of("1.1.0,1.1.2 supported,2.0.0 deprecated"), want: "1.1.2"},
		"no next minor version if it can stay":   {offered: of("1.1.0,1.2.0"), strategy: &patch, want: "1.1.0"},
		"expired, to the next minor version":     {offered: of("1.1.0 expired,1.2.0,1.2.1,1.3.0"), strategy: &patch, want: "1.2.1"},
		"expired, to one after the next":         {offered: of("1.1.0 expired,1.2.0 expired,1.3.0"), strategy: &patch, want: "1.3.0"},
		"expired, and the major version stays":   {offered: of("1.1.0 expired,2.0.0"), strategy: &patch, want: "1.1.0", failures: 1},
		"no next major version if it can stay":   {offered: of("1.1.0,2.0.0"), strategy: &minor, want: "1.1.0"},
		"expired, to the next major version":     {offered: of("1.1.0 expired,2.0.0,2.2.0,3.0.0"), strategy: &minor, want: "2.2.0"},
		"another architecture":                   {offered: append(of("1.1.0,1.1.2"), of("2.0.0", arm)...), want: "1.1.2"},
		"another Kubernetes":                     {offered: append(of("1.1.0,1.1.2"), of("2.0.0", newer)...), want: "1.1.2"},
		"does not support this Kubernetes":       {offered: append(of("1.1.0", older), of("1.1.2")...), manual: true, want: "1.1.2"},
		"an expired one for this Kubernetes":     {offered: append(of("1.1.0", older), of("1.1.1 expired,1.1.2 expired,1.2.0 unavailable")...), manual: true, want: "1.1.2"},
		"expired, but not to an expired one":     {offered: of("1.1.0 expired,1.1.2 expired"), want: "1.1.0", failures: 1},
		"of an image not offered":                {offered: of("2.0.0"), change: func(w *corev1beta1.Worker) { w.Machine.Image.Name = "gone" }, want: "1.1.0", failures: 1},
		"of a version not offered":               {offered: of("1.0.0,1.1.2"), manual: true, want: "1.1.2"},
		"another container runtime":              {offered: append(of("1.1.0,1.1.2", containerd), of("2.0.0")...), want: "1.1.2", change: func(w *corev1beta1.Worker) { w.CRI = &corev1beta1.CRI{Name: "containerd"} }},
		"in place, where that is possible":       {offered: append(of("1.1.0,1.1.2", inPlace("1.0.0")), of("2.0.0")...), change: updatedInPlace, want: "1.1.2"},
		"in place, but not from such an old one": {offered: append(of("1.1.0,1.1.2", inPlace("1.0.0")), of("2.0.0", inPlace("1.1.1"))...), change: updatedInPlace, want: "1.1.2"},
		"without an image":                       {offered: of(all), change: func(w *corev1beta1.Worker) { w.Machine.Image = nil }},
	} {
		t.Run(name, func(t *testing.T) {
			profile := &corev1beta1.CloudProfileSpec{
				Kubernetes:    corev1beta1.KubernetesSettings{Versions: []corev1beta1.ExpirableVersion{version("1.36.1")}},
				MachineImages: []corev1beta1.MachineImage{{Name: "linux", Versions: tc.offered, UpdateStrategy: tc.strategy}},
			}
			worker := pool("a", "", "1.1.0")
			if tc.change != nil {
				tc.change(&worker)
			}
			spec := &corev1beta1.ShootSpec{Kubernetes: corev1beta1.Kubernetes{Version: "1.36.1"}, Provider: corev1beta1.Provider{Workers: []corev1beta1.Worker{worker}}}
			spec.Maintenance = &corev1beta1.Maintenance{AutoUpdate: &corev1beta1.MaintenanceAutoUpdate{MachineImageVersion: new(!tc.manual)}}
			u := updater{spec: spec, profile: profile, now: now}
			u.run()
			got := ""
			if image := spec.Provider.Workers[0].Machine.Image; image != nil {
				got = *image.Version
			}
			if got != tc.want || len(u.failures) != tc.failures {
				t.Errorf("the image is %s, failures %q; want %s and %d failures", got, u.failures, tc.want, tc.failures)
			}
		})
	}
}

func TestFeatureGates(t *testing.T) {
	gates := func() corev1beta1.KubernetesConfig {
		return corev1beta1.KubernetesConfig{FeatureGates: map[string]bool{"InTreePluginPortworxUnregister": true, "APIServerIdentity": true}}
	}
	left := func(config corev1beta1.KubernetesConfig) string { return fmt.Sprint(config.FeatureGates) }
	const both, one = "map[APIServerIdentity:true InTreePluginPortworxUnregister:true]", "map[APIServerIdentity:true]"
	old, young := pool("old", "1.35.5", "1.0.0"), pool("young", "", "1.0.0")
	old.Kubernetes.Kubelet = &corev1beta1.KubeletConfig{KubernetesConfig: gates()}
	young.Kubernetes = &corev1beta1.WorkerKubernetes{Kubelet: &corev1beta1.KubeletConfig{KubernetesConfig: gates()}}
	k := corev1beta1.Kubernetes{
		KubeAPIServer:         &corev1beta1.KubeAPIServerConfig{KubernetesConfig: gates()},
		KubeControllerManager: &corev1beta1.KubeControllerManagerConfig{KubernetesConfig: gates()},
		KubeScheduler:         &corev1beta1.KubeSchedulerConfig{KubernetesConfig: gates()},
		KubeProxy:             &corev1beta1.KubeProxyConfig{KubernetesConfig: gates()}, Kubelet: &corev1beta1.KubeletConfig{KubernetesConfig: gates()},
	}
	for name, tc := range map[string]struct{ from, offered, want string }{
		"known in the new version": {from: "1.35.4", offered: "1.35.5", want: both},
		"unknown to it":            {from: "1.36.0", offered: "1.35.5,1.36.1", want: one},
	} {
		t.Run(name, func(t *testing.T) {
			spec := (&corev1beta1.ShootSpec{Kubernetes: k, Provider: corev1beta1.Provider{Workers: []corev1beta1.Worker{old, young}}}).DeepCopy()
			spec.Kubernetes.Version = tc.from // which is not offered any more
			profile := &corev1beta1.CloudProfileSpec{}
			for text := range strings.SplitSeq(tc.offered, ",") {
				profile.Kubernetes.Versions = append(profile.Kubernetes.Versions, version(text))
			}
			u := updater{spec: spec, profile: profile, now: now}
			u.run()
			for _, config := range []corev1beta1.KubernetesConfig{
				spec.Kubernetes.KubeAPIServer.KubernetesConfig, spec.Kubernetes.KubeControllerManager.KubernetesConfig, spec.Kubernetes.KubeScheduler.KubernetesConfig,
				spec.Kubernetes.KubeProxy.KubernetesConfig, spec.Kubernetes.Kubelet.KubernetesConfig, spec.Provider.Workers[1].Kubernetes.Kubelet.KubernetesConfig,
			} {
				if left(config) != tc.want {
					t.Errorf("feature gates are %s, want %s", left(config), tc.want)
				}
			}
			if got := left(spec.Provider.Workers[0].Kubernetes.Kubelet.KubernetesConfig); got != both {
				t.Errorf("feature gates of a pool that stays behind are %s", got)
			}
		})
	}
}

// The API server accepts none of these settings from Kubernetes 1.35 on; many clients write addons that are not enabled.
func TestSettingsThatANewVersionDoesNotAccept(t *testing.T) {
	old := func() *corev1beta1.ShootSpec {
		return &corev1beta1.ShootSpec{
			Addons: &corev1beta1.Addons{}, DNS: &corev1beta1.DNS{Providers: []corev1beta1.DNSProvider{
				{Type: new("unmanaged")}, {SecretName: new("credentials"), CredentialsRef: &autoscalingv1.CrossVersionObjectReference{APIVersion: "v1", Kind: "Secret", Name: "credentials"}},
			}},
			Kubernetes: corev1beta1.Kubernetes{
				Version: "1.34.8",
				KubeAPIServer: &corev1beta1.KubeAPIServerConfig{
					EnableAnonymousAuthentication: new(true), WatchCacheSizes: &corev1beta1.WatchCacheSizes{Default: new(int32(100)), Resources: []corev1beta1.ResourceWatchCacheSize{{Resource: "secrets"}}},
				},
				KubeScheduler: &corev1beta1.KubeSchedulerConfig{KubeMaxPDVols: new("20")},
			},
		}
	}
	removed := old()
	removed.Addons, removed.DNS.Providers[1].SecretName = nil, nil
	removed.Kubernetes.KubeAPIServer.EnableAnonymousAuthentication, removed.Kubernetes.KubeAPIServer.WatchCacheSizes.Default = nil, nil
	removed.Kubernetes.KubeScheduler.KubeMaxPDVols = nil
	for to, want := range map[string]*corev1beta1.ShootSpec{"1.34.9": old(), "1.35.5": removed} {
		spec := old()
		u := updater{spec: spec, profile: &corev1beta1.CloudProfileSpec{Kubernetes: corev1beta1.KubernetesSettings{Versions: []corev1beta1.ExpirableVersion{version(to)}}}, now: now}
		u.run()
		want.Kubernetes.Version = to
		if diff := cmp.Diff(want, spec); diff != "" {
			t.Errorf("updated to %s, the spec is (-want +got):\n%s", to, diff)
		}
		if to == "1.35.5" && (len(u.changes) != 6 || u.changes[1].text != "spec.addons: it is removed, as it is not possible with Kubernetes 1.35.5") {
			t.Errorf("changes are %+v", u.changes)
		}
	}
}

func TestDecideKeepsWhatItReads(t *testing.T) {
	shoot := &corev1beta1.Shoot{Spec: corev1beta1.ShootSpec{
		Kubernetes:  corev1beta1.Kubernetes{Version: "1.36.1"},
		Provider:    corev1beta1.Provider{Workers: []corev1beta1.Worker{pool("a", "1.36.1", "1.0.0")}},
		Maintenance: &corev1beta1.Maintenance{AutoUpdate: &corev1beta1.MaintenanceAutoUpdate{KubernetesVersion: true}},
	}}
	profile := &corev1beta1.CloudProfileSpec{
		Kubernetes: corev1beta1.KubernetesSettings{Versions: []corev1beta1.ExpirableVersion{version("1.36.1"), version("1.36.2")}},
		MachineImages: []corev1beta1.MachineImage{{Name: "linux", Versions: []corev1beta1.MachineImageVersion{
			{ExpirableVersion: version("1.0.0"), Architectures: []string{"amd64"}}, {ExpirableVersion: version("2.0.0"), Architectures: []string{"amd64"}},
		}}},
	}
	before := shoot.DeepCopy()
	out := decide(shoot, profile, nil, now)
	if diff := cmp.Diff(before, shoot); diff != "" {
		t.Errorf("decide() changed the Shoot (-before +after):\n%s", diff)
	}
	if got := versionsOf(&out.shoot.Spec); got != "1.36.2 a=1.36.2/2.0.0" {
		t.Errorf("versions are %s", got)
	}
	want := &corev1beta1.LastMaintenance{
		Description: "Updated Kubernetes of the control plane from 1.36.1 to 1.36.2, as automatic updates are on; " +
			"Kubernetes of pool \"a\" from 1.36.1 to 1.36.2, as automatic updates are on; " +
			"machine image linux of pool \"a\" from 1.0.0 to 2.0.0, as automatic updates are on.",
		State: "Succeeded", TriggeredTime: metav1.NewTime(now),
	}
	if diff := cmp.Diff(want, out.lastMaintenance(now)); diff != "" {
		t.Errorf("lastMaintenance() (-want +got):\n%s", diff)
	}
	want = &corev1beta1.LastMaintenance{
		Description: "Nothing had to be updated or rotated.", State: "Failed", FailureReason: new("one; two"), TriggeredTime: metav1.NewTime(now),
	}
	failing := outcome{plan: plan{failures: []string{"one"}}, rejected: []string{"two"}}
	if diff := cmp.Diff(want, failing.lastMaintenance(now)); diff != "" {
		t.Errorf("lastMaintenance() of a failure (-want +got):\n%s", diff)
	}
}
