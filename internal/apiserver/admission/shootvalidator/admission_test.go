package shootvalidator

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	clocktesting "k8s.io/utils/clock/testing"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/apiserver/admission/admissiontest"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

type change = func(*corev1beta1.Shoot)

func newProfile() corev1beta1.CloudProfileSpec {
	expired := &metav1.Time{Time: now.Add(-time.Hour)}
	containerd := []corev1beta1.CRI{{Name: "containerd", ContainerRuntimes: []corev1beta1.ContainerRuntime{{Type: "sandbox"}}}}
	image := func(version, constraint string, architectures ...string) corev1beta1.MachineImageVersion {
		return corev1beta1.MachineImageVersion{
			ExpirableVersion: corev1beta1.ExpirableVersion{Version: version}, Architectures: architectures, CRI: containerd, KubeletVersionConstraint: &constraint,
		}
	}
	return corev1beta1.CloudProfileSpec{
		Type: "local",
		Kubernetes: corev1beta1.KubernetesSettings{Versions: []corev1beta1.ExpirableVersion{
			{Version: "1.36.1"}, {Version: "1.35.4"}, {Version: "1.35.1", ExpirationDate: expired},
		}},
		MachineImages: []corev1beta1.MachineImage{{Name: "os", Versions: []corev1beta1.MachineImageVersion{
			image("1.2.0", ">= 1.35", "amd64"), image("1.1.0", "< 1.35", "amd64"), image("2.0.0", ">= 1.35", "arm64"),
		}}},
		MachineTypes: []corev1beta1.MachineType{
			{Name: "small", CPU: resource.MustParse("2"), Memory: resource.MustParse("8Gi")},
			{Name: "scarce", CPU: resource.MustParse("2"), Memory: resource.MustParse("8Gi")},
			{Name: "retired", Usable: new(false)},
			{Name: "arm", Architecture: new("arm64")},
			{Name: "big-disk", Storage: &corev1beta1.MachineTypeStorage{MinSize: new(resource.MustParse("40Gi"))}},
		},
		VolumeTypes: []corev1beta1.VolumeType{{Name: "ssd", MinSize: new(resource.MustParse("20Gi"))}, {Name: "tape", Usable: new(false)}},
		Regions: []corev1beta1.Region{
			{Name: "one", Zones: []corev1beta1.AvailabilityZone{
				{Name: "a"}, {Name: "b", UnavailableMachineTypes: []string{"scarce"}, UnavailableVolumeTypes: []string{"ssd"}},
			}, AccessRestrictions: []corev1beta1.AccessRestriction{{Name: "eu"}}},
			{Name: "two"},
		},
		Limits: &corev1beta1.Limits{MaxNodesTotal: new(int32(10))},
	}
}

func newShoot(changes ...change) *corev1beta1.Shoot {
	shoot := &corev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "shoot"},
		Spec: corev1beta1.ShootSpec{
			CloudProfile: &corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "cloud"}, Region: "one",
			Kubernetes: corev1beta1.Kubernetes{Version: "1.36.1"},
			Networking: &corev1beta1.Networking{
				IPFamilies: []corev1beta1.IPFamily{corev1beta1.IPFamilyIPv4}, Nodes: new("10.250.0.0/16"), Pods: new("100.96.0.0/11"), Services: new("100.64.0.0/13"),
			},
			Provider: corev1beta1.Provider{Type: "local", Workers: []corev1beta1.Worker{{
				Name: "pool", Minimum: 1, Maximum: 20, Zones: []string{"a"}, CRI: &corev1beta1.CRI{Name: "containerd"},
				Machine: corev1beta1.Machine{Type: "small", Architecture: new("amd64"), Image: &corev1beta1.ShootMachineImage{
					Name:    "os",
					Version: new("1.2.0"),
				}},
				Volume: &corev1beta1.Volume{Type: new("ssd"), VolumeSize: "50Gi"},
			}}},
		},
	}
	for _, c := range changes {
		c(shoot)
	}
	return shoot
}

func newSeed(changes ...func(*corev1beta1.Seed)) *corev1beta1.Seed {
	seed := &corev1beta1.Seed{
		ObjectMeta: metav1.ObjectMeta{Name: "seed", Labels: map[string]string{"tier": "first"}},
		Spec: corev1beta1.SeedSpec{
			Backup:   &corev1beta1.Backup{},
			Provider: corev1beta1.SeedProvider{Type: "local", Zones: []string{"a", "b", "c"}},
			Networks: corev1beta1.SeedNetworks{Pods: "10.10.0.0/16", Services: "fd00:1::/112"},
		},
	}
	for _, c := range changes {
		c(seed)
	}
	return seed
}

func worker(c func(*corev1beta1.Worker)) change {
	return func(s *corev1beta1.Shoot) { c(&s.Spec.Provider.Workers[0]) }
}

func image(version string) change {
	return worker(func(w *corev1beta1.Worker) {
		w.Machine.Image = &corev1beta1.ShootMachineImage{Name: "os", Version: &version}
	})
}

func machine(name, architecture string) change {
	return worker(func(w *corev1beta1.Worker) { w.Machine.Type, w.Machine.Architecture = name, &architecture })
}

func onSeed(s *corev1beta1.Shoot) { s.Spec.SeedName = new("seed") }

func TestNewShootAgainstProfileAndSeed(t *testing.T) {
	const pool = "spec.provider.workers[0]."
	for name, tc := range map[string]struct {
		change      change
		credentials []string
		want        []string
	}{
		"a valid one":        {change: func(*corev1beta1.Shoot) {}},
		"a valid one, bound": {change: onSeed},
		"an expired version": {
			change: func(s *corev1beta1.Shoot) { s.Spec.Kubernetes.Version = "1.35.1" },
			want:   []string{"FieldValueNotSupported spec.kubernetes.version"},
		},
		"a pool's version that is not offered": {
			change: worker(func(w *corev1beta1.Worker) { w.Kubernetes = &corev1beta1.WorkerKubernetes{Version: new("1.34.0")} }),
			want:   []string{"FieldValueNotSupported " + pool + "kubernetes.version", "FieldValueInvalid " + pool + "machine.image"},
		},
		"a region that is not offered": {
			change: func(s *corev1beta1.Shoot) { s.Spec.Region = "three" },
			want:   []string{"FieldValueNotSupported spec.region", "FieldValueInvalid " + pool + "zones[0]"},
		},
		"a region without zones": {
			change: func(s *corev1beta1.Shoot) { s.Spec.Region = "two" },
			want:   []string{"FieldValueInvalid " + pool + "zones[0]"},
		},
		"zones twice and not offered": {
			change: worker(func(w *corev1beta1.Worker) { w.Zones = []string{"a", "a", "c"} }),
			want:   []string{"FieldValueDuplicate " + pool + "zones[1]", "FieldValueNotSupported " + pool + "zones[2]"},
		},
		"an access restriction that the region lacks": {
			change: func(s *corev1beta1.Shoot) {
				s.Spec.AccessRestrictions = []corev1beta1.AccessRestrictionWithOptions{{AccessRestriction: corev1beta1.AccessRestriction{Name: "us"}}}
			},
			want: []string{"FieldValueNotSupported spec.accessRestrictions[0]"},
		},
		"another provider hides its pools": {
			change: func(s *corev1beta1.Shoot) {
				s.Spec.Provider.Type, s.Spec.Provider.Workers[0].Machine.Type = "other", "other"
			},
			want: []string{"FieldValueInvalid spec.provider.type"},
		},
		"credentials of another provider": {
			change: func(*corev1beta1.Shoot) {}, credentials: []string{"other"},
			want: []string{"FieldValueInvalid spec.provider.type"},
		},
		"a machine type that there is not": {
			change: machine("huge", "amd64"), want: []string{"FieldValueNotSupported " + pool + "machine.type"},
		},
		"a machine type that is not usable": {
			change: machine("retired", "amd64"),
			want:   []string{"FieldValueInvalid " + pool + "machine.type"},
		},
		"a machine type of another processor": {change: machine("arm", "amd64"), want: []string{"FieldValueInvalid " + pool + "machine.type"}},
		"a machine type that a zone lacks": {
			change: func(s *corev1beta1.Shoot) {
				machine("scarce", "amd64")(s)
				s.Spec.Provider.Workers[0].Zones, s.Spec.Provider.Workers[0].Volume.Type = []string{"a", "b"}, nil
			},
			want: []string{"FieldValueInvalid " + pool + "machine.type"},
		},
		"a machine type that needs a larger disk": {
			change: func(s *corev1beta1.Shoot) {
				machine("big-disk", "amd64")(s)
				s.Spec.Provider.Workers[0].Volume.VolumeSize = "30Gi"
			},
			want: []string{"FieldValueInvalid " + pool + "volume.size"},
		},
		"a volume type that there is not": {
			change: worker(func(w *corev1beta1.Worker) { w.Volume.Type = new("floppy") }), want: []string{"FieldValueNotSupported " + pool + "volume.type"},
		},
		"a volume type that is not usable": {
			change: worker(func(w *corev1beta1.Worker) { w.Volume.Type = new("tape") }), want: []string{"FieldValueInvalid " + pool + "volume.type"},
		},
		"a volume that is too small": {
			change: worker(func(w *corev1beta1.Worker) { w.Volume.VolumeSize = "10Gi" }), want: []string{"FieldValueInvalid " + pool + "volume.size"},
		},
		"an image version that is not offered": {
			change: image("9.9.9"),
			want:   []string{"FieldValueNotSupported " + pool + "machine.image.version"},
		},
		"an image for other machines":             {change: image("2.0.0"), want: []string{"FieldValueInvalid " + pool + "machine.image"}},
		"an image for another version of kubelet": {change: image("1.1.0"), want: []string{"FieldValueInvalid " + pool + "machine.image"}},
		"a container runtime that the image lacks": {
			change: worker(func(w *corev1beta1.Worker) {
				w.CRI.ContainerRuntimes = []corev1beta1.ContainerRuntime{{Type: "sandbox"}, {Type: "other"}}
			}),
			want: []string{"FieldValueInvalid " + pool + "cri.containerRuntimes[1].type"},
		},
		"more reserved than there is": {
			change: worker(func(w *corev1beta1.Worker) {
				w.Kubernetes = &corev1beta1.WorkerKubernetes{Kubelet: &corev1beta1.KubeletConfig{
					KubeReserved: &corev1beta1.KubeletConfigReserved{CPU: new(resource.MustParse("3"))},
				}}
			}),
			want: []string{"FieldValueInvalid " + pool + "kubernetes.kubelet"},
		},
		"more nodes than the limit": {
			change: worker(func(w *corev1beta1.Worker) { w.Minimum = 11 }), want: []string{"FieldValueForbidden spec.provider.workers"},
		},
		"zones of the control plane where they cannot be chosen": {
			change: func(s *corev1beta1.Shoot) {
				onSeed(s)
				s.Spec.ControlPlane = &corev1beta1.ControlPlane{Zones: []string{"z"}}
			},
			want: []string{"FieldValueForbidden spec.controlPlane.zones", "FieldValueInvalid spec.controlPlane.zones[0]"},
		},
		"networks that overlap": {
			change: func(s *corev1beta1.Shoot) {
				s.Spec.Networking.Pods, s.Spec.Networking.Services = new("10.250.0.0/16"), new("10.250.3.0/24")
			},
			want: []string{"FieldValueInvalid spec.networking.pods", "FieldValueInvalid spec.networking.services"},
		},
		"networks that the VPN needs": {
			change: func(s *corev1beta1.Shoot) { s.Spec.Networking.Pods = new("242.0.0.0/16") }, want: []string{"FieldValueInvalid spec.networking.pods"},
		},
		"the IPv4 pods of the seed again": {change: func(s *corev1beta1.Shoot) { onSeed(s); s.Spec.Networking.Pods = new("10.10.0.0/16") }},
		"the IPv6 services of the seed again": {
			change: func(s *corev1beta1.Shoot) { onSeed(s); s.Spec.Networking.Services = new("fd00:1::/112") },
			want:   []string{"FieldValueInvalid spec.networking.services"},
		},
		"no networks on a seed": {
			change: func(s *corev1beta1.Shoot) { onSeed(s); s.Spec.Networking.Pods, s.Spec.Networking.Services = nil, nil },
			want:   []string{"FieldValueRequired spec.networking.pods", "FieldValueRequired spec.networking.services"},
		},
		"no networks on a seed, with IPv6": {change: func(s *corev1beta1.Shoot) {
			onSeed(s)
			s.Spec.Networking = &corev1beta1.Networking{IPFamilies: []corev1beta1.IPFamily{corev1beta1.IPFamilyIPv6}}
		}},
		"a selector that the seed does not match": {
			change: func(s *corev1beta1.Shoot) {
				onSeed(s)
				s.Spec.SeedSelector = &corev1beta1.SeedSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"tier": "second"}}}
			},
			want: []string{"FieldValueInvalid spec.seedSelector"},
		},
		"a selector for other providers": {
			change: func(s *corev1beta1.Shoot) {
				onSeed(s)
				s.Spec.SeedSelector = &corev1beta1.SeedSelector{ProviderTypes: []string{"other"}}
			},
			want: []string{"FieldValueInvalid spec.seedSelector.providerTypes"},
		},
		"a selector for all providers": {change: func(s *corev1beta1.Shoot) {
			onSeed(s)
			s.Spec.SeedSelector = &corev1beta1.SeedSelector{ProviderTypes: []string{"*"}}
		}},
		"a configuration of an internal version": {
			change: func(s *corev1beta1.Shoot) {
				s.Spec.Networking.ProviderConfig = &runtime.RawExtension{Raw: []byte(`{"apiVersion":"local/__internal"}`)}
			},
			want: []string{"FieldValueInvalid spec.networking.providerConfig"},
		},
		"a move without interruption": {
			change: func(s *corev1beta1.Shoot) { s.Annotations = map[string]string{constants.MigrationLiveMigrate: "true"} },
			want:   []string{"FieldValueForbidden metadata.annotations[migration.gardener.cloud/live-migrate]"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := &input{
				shoot: newShoot(tc.change), old: &corev1beta1.Shoot{}, isNew: true, profile: new(newProfile()),
				credentialsProviders: tc.credentials, now: now,
			}
			if in.shoot.Spec.SeedName != nil {
				in.seed = newSeed()
			}
			var got []string
			for _, err := range validate(in) {
				got = append(got, string(err.Type)+" "+err.Field)
			}
			slices.Sort(got)
			slices.Sort(tc.want)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("validate() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatAShootHasItMayKeep(t *testing.T) {
	retired := func(s *corev1beta1.Shoot) {
		s.Spec.Kubernetes.Version, s.Spec.Region = "1.30.0", "gone"
		machine("retired", "amd64")(s)
		image("0.1.0")(s)
		s.Spec.Provider.Workers[0].Volume.Type, s.Spec.Provider.Workers[0].Zones, s.Spec.Provider.Workers[0].Minimum = new("tape"), []string{"z"}, 30
	}
	in := &input{
		shoot: newShoot(retired, func(s *corev1beta1.Shoot) { s.Spec.Purpose = new(corev1beta1.ShootPurposeTesting) }),
		old:   newShoot(retired), profile: new(newProfile()), now: now,
	}
	if errs := validate(in); len(errs) > 0 {
		t.Errorf("validate() = %v", errs)
	}
}

// Minor versions cannot be skipped. If all patches of the next one have expired, a shoot would stay where it is for ever.
func TestUpdateToAnExpiredVersion(t *testing.T) {
	kubernetes := func(version string) change { return func(s *corev1beta1.Shoot) { s.Spec.Kubernetes.Version = version } }
	ofPool := func(version string) change {
		return worker(func(w *corev1beta1.Worker) { w.Kubernetes = &corev1beta1.WorkerKubernetes{Version: &version} })
	}
	renamed := worker(func(w *corev1beta1.Worker) { w.Name = "former" })
	for name, tc := range map[string]struct {
		shoot, old []change
		want       string
	}{
		"of the control plane":                           {shoot: []change{kubernetes("1.35.1")}, old: []change{kubernetes("1.34.0")}},
		"of a pool":                                      {shoot: []change{ofPool("1.35.1")}, old: []change{ofPool("1.34.0")}},
		"of a new pool":                                  {shoot: []change{ofPool("1.35.1")}, old: []change{renamed}, want: "spec.provider.workers[0].kubernetes.version"},
		"of an image":                                    {shoot: []change{image("1.2.9")}},
		"of an image in a new pool":                      {shoot: []change{image("1.2.9")}, old: []change{renamed}, want: "spec.provider.workers[0].machine.image.version"},
		"not to an older image":                          {shoot: []change{image("1.1.9")}, want: "spec.provider.workers[0].machine.image.version"},
		"not to one that is not offered":                 {shoot: []change{kubernetes("1.35.2")}, old: []change{kubernetes("1.34.0")}, want: "spec.kubernetes.version"},
		"not to one that is not available yet":           {shoot: []change{kubernetes("1.35.9")}, old: []change{kubernetes("1.34.0")}, want: "spec.kubernetes.version"},
		"nor of a pool to one that is not available yet": {shoot: []change{ofPool("1.35.9")}, old: []change{ofPool("1.34.0")}, want: "spec.provider.workers[0].kubernetes.version"},
	} {
		t.Run(name, func(t *testing.T) {
			profile := newProfile()
			profile.Kubernetes.Versions = append(profile.Kubernetes.Versions, corev1beta1.ExpirableVersion{Version: "1.35.9", Lifecycle: []corev1beta1.LifecycleStage{
				{Classification: corev1beta1.ClassificationSupported, StartTime: &metav1.Time{Time: now.Add(time.Hour)}},
			}})
			for _, version := range []string{"1.1.9", "1.2.9"} {
				v := profile.MachineImages[0].Versions[0]
				v.Version, v.ExpirationDate = version, &metav1.Time{Time: now.Add(-time.Hour)}
				profile.MachineImages[0].Versions = append(profile.MachineImages[0].Versions, v)
			}
			var got string
			for _, err := range validate(&input{shoot: newShoot(tc.shoot...), old: newShoot(tc.old...), profile: &profile, now: now}) {
				got += err.Field
			}
			if got != tc.want {
				t.Errorf("refused are %q, want %q", got, tc.want)
			}
		})
	}
}

func TestCheckBinding(t *testing.T) {
	failed := corev1beta1.LastOperation{Type: corev1beta1.LastOperationTypeMigrate, State: corev1beta1.LastOperationStateProcessing}
	zoneTolerance := func(s *corev1beta1.Shoot) {
		s.Spec.ControlPlane = &corev1beta1.ControlPlane{HighAvailability: &corev1beta1.HighAvailability{
			FailureTolerance: corev1beta1.FailureTolerance{Type: corev1beta1.FailureToleranceTypeZone},
		}}
	}
	taint := func(s *corev1beta1.Seed) {
		s.Spec.Taints = []corev1beta1.SeedTaint{{Key: "special", Value: new("one")}}
	}
	tolerate := func(value *string) change {
		return func(s *corev1beta1.Shoot) {
			s.Spec.Tolerations = []corev1beta1.Toleration{{Key: "special", Value: value}}
		}
	}
	other := func(s *corev1beta1.Shoot) { s.Spec.SeedName = new("other") }
	moving := func(s *corev1beta1.Shoot) { s.Spec.SeedName, s.Status.SeedName = new("other"), new("seed") }
	internal := func(domain string) func(*corev1beta1.Seed) {
		return func(s *corev1beta1.Seed) { s.Spec.DNS.Internal = &corev1beta1.SeedDNSProviderConfig{Domain: domain} }
	}
	both := func(one, two change) change { return func(s *corev1beta1.Shoot) { one(s); two(s) } }
	selector := func(tier string) *corev1beta1.SeedSelector {
		return &corev1beta1.SeedSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"tier": tier}}}
	}
	selecting := func(tier string) change {
		return func(s *corev1beta1.Shoot) { s.Spec.SeedSelector = selector(tier) }
	}
	enforce := func(zones ...string) func(*corev1beta1.Seed) {
		return func(s *corev1beta1.Seed) {
			s.Spec.Provider.Zones = zones
			s.Spec.Settings = &corev1beta1.SeedSettings{ZoneSelection: &corev1beta1.SeedSettingZoneSelection{Mode: corev1beta1.ZoneSelectionModeEnforce}}
		}
	}
	zoneless := worker(func(w *corev1beta1.Worker) { w.Zones = nil })
	pinned := func(s *corev1beta1.Shoot) { s.Spec.ControlPlane = &corev1beta1.ControlPlane{Zones: []string{"x"}} }
	purpose := func(s *corev1beta1.Shoot) { s.Spec.Purpose = new(corev1beta1.ShootPurposeTesting) }
	for name, tc := range map[string]struct {
		shoot, old change
		seed       func(*corev1beta1.Seed)
		oldSeed    func(*corev1beta1.Seed)
		profile    *corev1beta1.SeedSelector
		class      *corev1beta1.SeedSelector
		patch      bool
		refused    bool
	}{
		"the first seed":            {shoot: onSeed},
		"the first seed by a patch": {shoot: onSeed, patch: true, refused: true},
		"a seed that is being deleted": {
			shoot: onSeed, seed: func(s *corev1beta1.Seed) { s.DeletionTimestamp = &metav1.Time{Time: now} },
			refused: true,
		},
		"a taint that is not tolerated": {shoot: onSeed, seed: taint, refused: true},
		"a taint of another value": {
			shoot: func(s *corev1beta1.Shoot) { onSeed(s); tolerate(new("two"))(s) },
			old:   tolerate(new("two")), seed: taint, refused: true,
		},
		"a taint that is tolerated":     {shoot: func(s *corev1beta1.Shoot) { onSeed(s); tolerate(nil)(s) }, old: tolerate(nil), seed: taint},
		"zone tolerance on three zones": {shoot: func(s *corev1beta1.Shoot) { onSeed(s); zoneTolerance(s) }, old: zoneTolerance},
		"zone tolerance on one zone": {
			shoot: func(s *corev1beta1.Shoot) { onSeed(s); zoneTolerance(s) }, old: zoneTolerance,
			seed: func(s *corev1beta1.Seed) { s.Spec.Provider.Zones = []string{"a"} }, refused: true,
		},
		"a seed that the profile selects": {shoot: onSeed, profile: &corev1beta1.SeedSelector{
			LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"tier": "first"}}, ProviderTypes: []string{"cloud", "local"},
		}},
		"a seed of any type that the profile selects": {shoot: onSeed, profile: &corev1beta1.SeedSelector{ProviderTypes: []string{"*"}}},
		"a seed whose labels the profile does not select": {
			shoot:   onSeed,
			profile: &corev1beta1.SeedSelector{LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"tier": "second"}}}, refused: true,
		},
		"a seed whose type the profile does not select": {shoot: onSeed, profile: &corev1beta1.SeedSelector{ProviderTypes: []string{"cloud"}}, refused: true},
		"another seed that the profile does not select": {
			shoot: onSeed, old: other, profile: &corev1beta1.SeedSelector{ProviderTypes: []string{"cloud"}}, refused: true,
		},
		"a change on a seed that the profile no longer selects": {
			shoot: func(s *corev1beta1.Shoot) { onSeed(s); purpose(s) }, old: onSeed, patch: true,
			profile: &corev1beta1.SeedSelector{ProviderTypes: []string{"cloud"}},
		},
		"another seed":                    {shoot: onSeed, old: other},
		"another seed and something else": {shoot: func(s *corev1beta1.Shoot) { onSeed(s); purpose(s) }, old: other, refused: true},
		"another seed without a backup":   {shoot: onSeed, old: other, seed: func(s *corev1beta1.Seed) { s.Spec.Backup = nil }, refused: true},
		"from a seed without a backup":    {shoot: onSeed, old: other, oldSeed: func(s *corev1beta1.Seed) { s.Spec.Backup = nil }, refused: true},
		"a seed of another provider": {
			shoot: onSeed, old: other,
			oldSeed: func(s *corev1beta1.Seed) { s.Spec.Provider.Type = "cloud" }, refused: true,
		},
		"a seed with another internal domain": {
			shoot: onSeed, old: other, seed: internal("a.example.com"), oldSeed: internal("b.example.com"), refused: true,
		},
		"a seed with the same internal domain":              {shoot: onSeed, old: other, seed: internal("a.example.com"), oldSeed: internal("a.example.com")},
		"a seed without an internal domain":                 {shoot: onSeed, old: other, oldSeed: internal("a.example.com"), refused: true},
		"from a seed without an internal domain":            {shoot: onSeed, old: other, seed: internal("a.example.com"), refused: true},
		"the first seed with an internal domain":            {shoot: onSeed, seed: internal("a.example.com")},
		"back to the seed with the control plane":           {shoot: onSeed, old: moving, oldSeed: internal("a.example.com")},
		"another seed that the shoot selects":               {shoot: both(onSeed, selecting("first")), old: both(other, selecting("first"))},
		"another seed that the shoot does not select":       {shoot: both(onSeed, selecting("second")), old: both(other, selecting("second")), refused: true},
		"another seed that the ExposureClass selects":       {shoot: onSeed, old: other, class: selector("first")},
		"another seed that the ExposureClass does not":      {shoot: onSeed, old: other, class: selector("second"), refused: true},
		"another seed with zones of the workers":            {shoot: onSeed, old: other, seed: enforce("a", "x")},
		"another seed without zones of the workers":         {shoot: onSeed, old: other, seed: enforce("x", "y"), refused: true},
		"another seed with too few zones of the workers":    {shoot: both(onSeed, zoneTolerance), old: both(other, zoneTolerance), seed: enforce("a", "x", "y"), refused: true},
		"another seed for workers without zones":            {shoot: both(onSeed, zoneless), old: both(other, zoneless), seed: enforce("x")},
		"another seed for a control plane that has its own": {shoot: both(onSeed, pinned), old: both(other, pinned), seed: enforce("x")},
		"back to the seed that the shoot does not select":   {shoot: both(onSeed, selecting("second")), old: both(moving, selecting("second"))},
		"no seed any more":                                  {shoot: func(*corev1beta1.Shoot) {}, old: onSeed, refused: true},
		"a spec that changes on the way to a seed": {
			shoot: func(s *corev1beta1.Shoot) { onSeed(s); purpose(s) },
			old:   func(s *corev1beta1.Shoot) { onSeed(s); s.Status.LastOperation = &failed }, patch: true, refused: true,
		},
		"a spec that changes on a seed that goes away": {
			shoot: func(s *corev1beta1.Shoot) { onSeed(s); purpose(s) }, old: onSeed, patch: true,
			seed: func(s *corev1beta1.Seed) { s.DeletionTimestamp = &metav1.Time{Time: now} }, refused: true,
		},
		"a deletion that is confirmed on a seed that goes away": {
			shoot: func(s *corev1beta1.Shoot) {
				onSeed(s)
				s.Annotations = map[string]string{constants.ConfirmationDeletion: "true"}
			}, old: onSeed, patch: true,
			seed: func(s *corev1beta1.Seed) { s.DeletionTimestamp = &metav1.Time{Time: now} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := &input{shoot: newShoot(tc.shoot), old: newShoot(), binding: !tc.patch, now: now}
			if tc.old != nil {
				in.old = newShoot(tc.old)
			}
			in.seed, in.oldSeed = newSeed(), newSeed()
			if tc.profile != nil {
				in.profile = &corev1beta1.CloudProfileSpec{SeedSelector: tc.profile}
			}
			if tc.class != nil {
				in.exposureClass = &corev1beta1.ExposureClass{Scheduling: &corev1beta1.ExposureClassScheduling{SeedSelector: tc.class}}
			}
			if tc.seed != nil {
				tc.seed(in.seed)
			}
			if tc.oldSeed != nil {
				tc.oldSeed(in.oldSeed)
			}
			if err := checkBinding(in); (err != nil) != tc.refused {
				t.Errorf("checkBinding() = %v, want refused: %t", err, tc.refused)
			}
		})
	}
}

// A bound shoot cannot ask for more than its seed can do. What it asked for before does not keep it from being deleted.
func TestFailureTolerance(t *testing.T) {
	zonal := func(s *corev1beta1.Shoot) {
		onSeed(s)
		s.Spec.ControlPlane = &corev1beta1.ControlPlane{HighAvailability: &corev1beta1.HighAvailability{
			FailureTolerance: corev1beta1.FailureTolerance{Type: corev1beta1.FailureToleranceTypeZone},
		}}
	}
	purpose := func(s *corev1beta1.Shoot) { zonal(s); s.Spec.Purpose = new(corev1beta1.ShootPurposeTesting) }
	deleting := func(s *corev1beta1.Shoot) { purpose(s); s.DeletionTimestamp = &metav1.Time{Time: now} }
	annotated := func(s *corev1beta1.Shoot) {
		zonal(s)
		s.Annotations = map[string]string{constants.ConfirmationDeletion: "true"}
	}
	oneZone := []string{"a"}
	for name, tc := range map[string]struct {
		shoot, old change
		zones      []string
		refused    bool
	}{
		"it is set, with three zones":          {shoot: zonal, old: onSeed, zones: []string{"a", "b", "c"}},
		"it is set, with one zone":             {shoot: zonal, old: onSeed, zones: oneZone, refused: true},
		"something else changes, one zone":     {shoot: purpose, old: zonal, zones: oneZone, refused: true},
		"its deletion is confirmed, one zone":  {shoot: annotated, old: zonal, zones: oneZone},
		"it is being deleted, one zone":        {shoot: deleting, old: zonal, zones: oneZone},
		"without tolerance one zone is enough": {shoot: onSeed, zones: oneZone},
	} {
		t.Run(name, func(t *testing.T) {
			in := &input{shoot: newShoot(tc.shoot), old: newShoot(), seed: newSeed(), profile: new(newProfile()), now: now}
			if tc.old != nil {
				in.old = newShoot(tc.old)
			}
			in.seed.Spec.Provider.Zones = tc.zones
			var got []string
			for _, err := range validate(in) {
				got = append(got, string(err.Type)+" "+err.Field)
			}
			var want []string
			if tc.refused {
				want = []string{"FieldValueForbidden spec.controlPlane.highAvailability.failureTolerance.type"}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("validate() (-want +got):\n%s", diff)
			}
		})
	}
}

// allow is an authorizer that allows some requests of any user.
type allow []string

func (a allow) Authorize(_ context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	if slices.Contains(a, attributes.GetVerb()+" "+attributes.GetResource()+"/"+attributes.GetSubresource()) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func TestValidate(t *testing.T) {
	namespace := "garden-dev"
	full := newSeed(func(s *corev1beta1.Seed) {
		s.Name = "full"
		s.Status.Allocatable = corev1.ResourceList{constants.ResourceShoots: resource.MustParse("1")}
	})
	taken := newShoot(func(s *corev1beta1.Shoot) {
		s.Name, s.Spec.SeedName, s.Spec.DNS = "taken", new("full"), &corev1beta1.DNS{Domain: new("a.example.com")}
	})
	elsewhere := newShoot(func(s *corev1beta1.Shoot) {
		s.Namespace, s.Spec.DNS = "garden-prod", &corev1beta1.DNS{Domain: new("b.example.org")}
	})
	garden := admissiontest.Reader(t,
		&corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "dev"}, Spec: corev1beta1.ProjectSpec{Namespace: &namespace}},
		&corev1beta1.CloudProfile{ObjectMeta: metav1.ObjectMeta{Name: "cloud"}, Spec: newProfile()}, newSeed(), full, taken, elsewhere,
		newSeed(func(s *corev1beta1.Seed) { s.Name = "roomy" }), &corev1beta1.ExposureClass{ObjectMeta: metav1.ObjectMeta{Name: "everywhere"}},
		&corev1beta1.ExposureClass{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"}, Scheduling: &corev1beta1.ExposureClassScheduling{
			SeedSelector: &corev1beta1.SeedSelector{ProviderTypes: []string{"cloud"}},
		}},
	)
	onRoomy := func(s *corev1beta1.Shoot) { s.Spec.SeedName = new("roomy") }
	exposed := func(class string) change { return func(s *corev1beta1.Shoot) { s.Spec.ExposureClassName = &class } }
	named := func(domain string) change {
		return func(s *corev1beta1.Shoot) { s.Spec.DNS = &corev1beta1.DNS{Domain: &domain} }
	}
	for name, tc := range map[string]struct {
		shoot, old *corev1beta1.Shoot
		allow      allow
		binding    bool
		want       metav1.StatusReason
	}{
		"a new shoot": {shoot: newShoot()},
		"a name that is too long": {
			shoot: newShoot(func(s *corev1beta1.Shoot) { s.Name = "nineteen-characters" }),
			want:  metav1.StatusReasonInvalid,
		},
		"a namespace of no project": {
			shoot: newShoot(func(s *corev1beta1.Shoot) { s.Namespace = "default" }),
			want:  metav1.StatusReasonInternalError,
		},
		"a profile that is not there": {
			shoot: newShoot(func(s *corev1beta1.Shoot) { s.Spec.CloudProfile.Name = "gone" }), want: metav1.StatusReasonInternalError,
		},
		"a seed by a user who may not bind": {shoot: newShoot(onSeed), want: metav1.StatusReasonForbidden},
		"a seed by a user who may":          {shoot: newShoot(onSeed), allow: allow{"update shoots/binding"}},
		"a seed that is not there":          {shoot: newShoot(func(s *corev1beta1.Shoot) { s.Spec.SeedName = new("") }), want: "?"},
		"a seed that is full": {
			shoot: newShoot(func(s *corev1beta1.Shoot) { s.Spec.SeedName = new("full") }), old: newShoot(), binding: true, want: metav1.StatusReasonForbidden,
		},
		"the same seed again": {shoot: newShoot(onSeed), old: newShoot(onSeed), binding: true, want: "?"},
		"another seed with an ExposureClass that selects it": {
			shoot: newShoot(onSeed, exposed("everywhere")), old: newShoot(exposed("everywhere"), onRoomy), binding: true,
		},
		"another seed with an ExposureClass that does not select it": {
			shoot: newShoot(onSeed, exposed("elsewhere")), old: newShoot(exposed("elsewhere"), onRoomy), binding: true, want: metav1.StatusReasonForbidden,
		},
		"another seed with an ExposureClass that is not there": {
			shoot: newShoot(onSeed, exposed("gone")), old: newShoot(exposed("gone"), onRoomy), binding: true, want: "?",
		},
		"a wrong region": {
			shoot: newShoot(func(s *corev1beta1.Shoot) { s.Spec.Region = "three" }),
			want:  metav1.StatusReasonForbidden,
		},
		"a domain of its own":           {shoot: newShoot(named("b.example.com"))},
		"a domain that is taken":        {shoot: newShoot(named("a.example.com")), want: metav1.StatusReasonForbidden},
		"a domain below another":        {shoot: newShoot(named("x.a.example.com")), want: metav1.StatusReasonForbidden},
		"a domain above another":        {shoot: newShoot(named("example.com")), want: metav1.StatusReasonForbidden},
		"a domain that only ends alike": {shoot: newShoot(named("xa.example.com"))},

		"a domain that another project has":            {shoot: newShoot(named("b.example.org")), want: metav1.StatusReasonForbidden},
		"a domain below that of another project":       {shoot: newShoot(named("x.b.example.org"))},
		"a domain above that of another project":       {shoot: newShoot(named("example.org"))},
		"the API server of another project":            {shoot: newShoot(named("api.b.example.org")), want: metav1.StatusReasonForbidden},
		"below the Ingresses of another project":       {shoot: newShoot(named("x.ingress.b.example.org")), want: metav1.StatusReasonForbidden},
		"a domain that all domains are below":          {shoot: newShoot(named("com")), want: metav1.StatusReasonForbidden},
		"a domain that is sold by its parts":           {shoot: newShoot(named("co.uk")), want: metav1.StatusReasonForbidden},
		"a domain that a provider gives to its users":  {shoot: newShoot(named("github.io")), want: metav1.StatusReasonForbidden},
		"a domain of a user below that of a provider":  {shoot: newShoot(named("own.github.io"))},
		"a name without dots, also if no TLD is alike": {shoot: newShoot(named("local")), want: metav1.StatusReasonForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Plugin{
				Handler: admission.NewHandler(admission.Create, admission.Update, admission.Delete),
				clock:   clocktesting.NewFakePassiveClock(now),
			}
			p.GardenCache = garden
			p.KubeAPI = garden
			p.SetAuthorizer(tc.allow)
			if err := p.ValidateInitialization(); err != nil {
				t.Fatal(err)
			}
			request := admissiontest.Request{Object: tc.shoot, Resource: "shoots"}
			if tc.old != nil {
				request.Old = tc.old
			}
			if tc.binding {
				request.Subresource = "binding"
			}
			err := p.Validate(t.Context(), request.Attributes(), nil)
			if got := admissiontest.Reason(err); got != tc.want {
				t.Errorf("Validate() = %v, reason %q, want %q", err, got, tc.want)
			}
		})
	}
}

func TestCheckDeletion(t *testing.T) {
	if err := checkDeletion(newShoot()); err != nil {
		t.Errorf("a shoot at rest cannot be deleted: %v", err)
	}
	moving := newShoot(func(s *corev1beta1.Shoot) {
		s.Status.LastOperation = &corev1beta1.LastOperation{
			Type:  corev1beta1.LastOperationTypeRestore,
			State: corev1beta1.LastOperationStateProcessing,
		}
	})
	if checkDeletion(moving) == nil {
		t.Error("a shoot can be deleted on its way to another seed")
	}
}
