package local

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/pkg/extension/webhook/gardenadmission"
	"gardener.cloud/gardener/test/builder"
)

// invalid checks that errors contain what is wanted, one by one.
func invalid(t *testing.T, err error, want ...string) {
	t.Helper()
	var got []error
	var all utilerrors.Aggregate
	if errors.As(err, &all) {
		got = all.Errors()
	} else if err != nil {
		got = []error{err}
	}
	if len(got) != len(want) {
		t.Fatalf("errors are %v, want %q", got, want)
	}
	for i := range want {
		if !strings.Contains(got[i].Error(), want[i]) {
			t.Errorf("error is %v, want %q", got[i], want[i])
		}
	}
}

var someConfig = &runtime.RawExtension{Raw: []byte(`{"apiVersion":"aws.provider.extensions.gardener.cloud/v1alpha1","kind":"InfrastructureConfig"}`)}

func TestCheckShoot(t *testing.T) {
	type shoot = corev1beta1.Shoot
	for name, tc := range map[string]struct {
		check  func(context.Context, *shoot, *shoot) error
		change func(*shoot)
		want   []string
	}{
		"no configuration": {checkShoot, func(*shoot) {}, nil},
		"empty objects": {checkShoot, func(s *shoot) {
			s.Spec.Provider.InfrastructureConfig = &runtime.RawExtension{Raw: []byte("{}")}
		}, nil},
		"configurations of another provider": {checkShoot, func(s *shoot) {
			s.Spec.Provider.InfrastructureConfig, s.Spec.Provider.ControlPlaneConfig = someConfig, someConfig
			s.Spec.Provider.Workers[1].ProviderConfig = someConfig
			s.Spec.Provider.Workers[1].Machine.Image.ProviderConfig = someConfig
		}, []string{
			`spec.provider.infrastructureConfig: Invalid value: "InfrastructureConfig"`, "spec.provider.controlPlaneConfig: Invalid value",
			"spec.provider.workers[1].providerConfig: Invalid value", "spec.provider.workers[1].machine.image.providerConfig: Invalid value",
		}},
		"an operating system of another extension": {checkShoot, func(s *shoot) {
			s.Spec.Provider.Workers[0].Machine.Image = &corev1beta1.ShootMachineImage{Name: "other", ProviderConfig: someConfig}
		}, nil},
		"no workers and no networks": {checkNetworks, func(s *shoot) { s.Spec.Provider.Workers, s.Spec.Networking = nil, nil }, nil},
		"networks of another extension": {checkNetworks, func(s *shoot) {
			s.Spec.Networking.Type, s.Spec.Networking.ProviderConfig = new("other"), someConfig
		}, nil},
		"networks of flannel": {checkNetworks, func(s *shoot) { s.Spec.Networking.Type = new("flannel") }, nil},
		"networks with what flannel does not have": {checkNetworks, func(s *shoot) {
			s.Spec.Networking.Type, s.Spec.Networking.ProviderConfig = new("flannel"), someConfig
			s.Spec.Networking.IPFamilies = []corev1beta1.IPFamily{corev1beta1.IPFamilyIPv6, corev1beta1.IPFamilyIPv4}
			s.Spec.Networking.Pods = new("2001:db8::/64")
		}, []string{"spec.networking.providerConfig: Invalid value", "spec.networking.ipFamilies[0]: Unsupported value", "spec.networking.pods: Invalid value"}},
		"dual-stack": {checkNetworks, func(s *shoot) {
			s.Spec.Networking.Type = new("flannel")
			s.Spec.Networking.IPFamilies = []corev1beta1.IPFamily{corev1beta1.IPFamilyIPv4, corev1beta1.IPFamilyIPv6}
		}, nil},
		"no container runtimes": {checkContainerRuntimes, func(*shoot) {}, nil},
		"container runtimes": {checkContainerRuntimes, func(s *shoot) {
			s.Spec.Provider.Workers[1].CRI = &corev1beta1.CRI{ContainerRuntimes: []corev1beta1.ContainerRuntime{
				{Type: "other", ProviderConfig: someConfig}, {Type: "crun", ProviderConfig: someConfig}, {Type: "crun"},
			}}
		}, []string{"spec.provider.workers[1].cri.containerRuntimes[1].providerConfig: Invalid value"}},
	} {
		t.Run(name, func(t *testing.T) {
			invalid(t, tc.check(t.Context(), builder.Shoot("a", builder.Workers(2), tc.change), nil), tc.want...)
		})
	}
}

func TestCheckBackups(t *testing.T) {
	backup := func(provider string) func(*corev1beta1.Seed) {
		return func(s *corev1beta1.Seed) {
			s.Spec.Backup = &corev1beta1.Backup{Provider: provider, ProviderConfig: someConfig}
		}
	}
	invalid(t, checkSeed(t.Context(), builder.Seed("s"), nil))
	invalid(t, checkSeed(t.Context(), builder.Seed("s", backup("other")), nil))
	invalid(t, checkSeed(t.Context(), builder.Seed("s", backup("local")), nil), "spec.backup.providerConfig: Invalid value")
	bucket := &corev1beta1.BackupBucket{}
	invalid(t, checkBackupBucket(t.Context(), bucket, nil))
	bucket.Spec.ProviderConfig = someConfig
	invalid(t, checkBackupBucket(t.Context(), bucket, nil), "spec.providerConfig: Invalid value")
}

// config is the JSON of a CloudProfileConfig with machine images.
func config(images string) *runtime.RawExtension {
	return &runtime.RawExtension{Raw: []byte(`{"apiVersion":"local.provider.extensions.gardener.cloud/v1alpha1","kind":"CloudProfileConfig","machineImages":[` + images + `]}`)}
}

const (
	imageV1 = `{"name":"local","versions":[{"version":"1.0.0","image":"registry.example.com/machine:v1"}]}`
	imageV2 = `{"name":"local","versions":[{"version":"2.0.0","image":"registry.example.com/machine:v2"}]}`
)

// version is a version of a machine image for some architectures.
func version(name string, architectures ...string) corev1beta1.MachineImageVersion {
	return corev1beta1.MachineImageVersion{ExpirableVersion: corev1beta1.ExpirableVersion{Version: name}, Architectures: architectures}
}

// admissionOf returns the admission of profiles in a garden with some objects.
func admissionOf(t *testing.T, objects ...client.Object) *profileAdmission {
	t.Helper()
	scheme, err := NewAdmissionScheme()
	if err != nil {
		t.Fatal(err)
	}
	return &profileAdmission{fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), gardenadmission.NewDecoder(scheme)}
}

func TestCheckCloudProfile(t *testing.T) {
	type profile = corev1beta1.CloudProfile
	for name, tc := range map[string]struct {
		config *runtime.RawExtension
		change func(*profile)
		want   []string
	}{
		"images for all versions": {config(imageV1), nil, nil},
		"no configuration":        {nil, nil, []string{"spec.providerConfig: Required value"}},
		"another kind": {
			&runtime.RawExtension{Raw: []byte(`{"apiVersion":"local.provider.extensions.gardener.cloud/v1alpha1","kind":"WorkerStatus"}`)},
			nil,
			[]string{"spec.providerConfig: Invalid value"},
		},
		"an unknown field": {config(`{"name":"local","flavors":[],"versions":[]}`), nil, []string{`spec.providerConfig: Invalid value: strict decoding error: unknown field "machineImages[0].flavors"`}},
		"an image of another version": {
			config(imageV2), nil, []string{`spec.providerConfig.machineImages: Required value: version 1.0.0 of machine image "local" needs an image for the architecture amd64`},
		},
		"one architecture of two": {
			config(`{"name":"local","versions":[{"version":"1.0.0","capabilityFlavors":[{"image":"a","capabilities":{"architecture":["amd64"]}}]}]}`),
			func(p *profile) { p.Spec.MachineImages[0].Versions[0] = version("1.0.0", "amd64", "arm64") },
			[]string{"spec.providerConfig.machineImages: Required value: version 1.0.0 of machine image \"local\" needs an image for the architecture arm64"},
		},
		"capabilities": {
			config(`{"name":"local","versions":[{"version":"1.0.0","capabilityFlavors":[{"image":"a","capabilities":{"architecture":["arm64"]}}]}]}`),
			func(p *profile) {
				p.Spec.MachineCapabilities = []corev1beta1.CapabilityDefinition{{Name: "architecture", Values: []string{"amd64", "arm64"}}}
				p.Spec.MachineImages[0].Versions[0] = version("1.0.0")
				p.Spec.MachineImages[0].Versions[0].CapabilityFlavors = []corev1beta1.MachineImageFlavor{{Capabilities: corev1beta1.Capabilities{"architecture": {"arm64"}}}}
			},
			nil,
		},
		"capabilities of a machine type": {
			config(`{"name":"local","versions":[{"version":"1.0.0","capabilityFlavors":[{"image":"a","capabilities":{"gpu":["none"]}}]}]}`),
			func(p *profile) {
				p.Spec.MachineCapabilities = []corev1beta1.CapabilityDefinition{{Name: "architecture", Values: []string{"amd64"}}, {Name: "gpu", Values: []string{"none", "one"}}}
				p.Spec.MachineImages[0].Versions[0] = version("1.0.0")
				p.Spec.MachineTypes = []corev1beta1.MachineType{
					{Name: "with-gpu", Capabilities: corev1beta1.Capabilities{"gpu": {"one"}}}, {Name: "without", Capabilities: corev1beta1.Capabilities{"gpu": {"none"}}},
				}
			},
			[]string{`spec.providerConfig.machineImages: Required value: version 1.0.0 of machine image "local" needs an image for the machine type with-gpu`},
		},
		"what is missing and what is there twice": {
			config(imageV1 + `,{"versions":[{"version":"a","image":"a"}]},{"name":"local"},` +
				`{"name":"b","versions":[{"image":"a"},{"version":"a"},{"version":"b","image":"b"},{"version":"b","capabilityFlavors":[{}]}]}`),
			nil,
			[]string{
				"spec.providerConfig.machineImages[1].name: Required value", `spec.providerConfig.machineImages[2].name: Duplicate value: "local"`,
				"spec.providerConfig.machineImages[3].versions[0].version: Required value", "spec.providerConfig.machineImages[3].versions[1].image: Required value",
				`spec.providerConfig.machineImages[3].versions[3].version: Duplicate value: "b"`,
				"spec.providerConfig.machineImages[3].versions[3].capabilityFlavors[0].image: Required value",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := builder.CloudProfile("local", func(p *profile) {
				p.Spec.ProviderConfig = tc.config
				p.Spec.MachineImages[0].Versions[0].Architectures = []string{"amd64"}
				if tc.change != nil {
					tc.change(p)
				}
			})
			invalid(t, admissionOf(t).check(t.Context(), p, nil), tc.want...)
		})
	}
}

func TestCheckNamespacedCloudProfile(t *testing.T) {
	type profile = corev1beta1.NamespacedCloudProfile
	parent := builder.CloudProfile("local", func(p *corev1beta1.CloudProfile) {
		p.Spec.ProviderConfig = config(imageV1)
		p.Spec.MachineImages[0].Versions[0].Architectures = []string{"amd64"}
	})
	images := func(versions ...string) []corev1beta1.MachineImage {
		image := corev1beta1.MachineImage{Name: "local"}
		for _, name := range versions {
			image.Versions = append(image.Versions, version(name))
		}
		return []corev1beta1.MachineImage{image}
	}
	for name, tc := range map[string]struct {
		images      []corev1beta1.MachineImage
		config, old *runtime.RawExtension
		parent      string
		want        []string
	}{
		"nothing of the provider":                   {},
		"another expiration of a version":           {images: images("1.0.0")},
		"a version with its image":                  {images: images("1.0.0", "2.0.0"), config: config(imageV2)},
		"a version without a configuration":         {images: images("2.0.0"), want: []string{"spec.providerConfig: Required value"}},
		"a version without an image":                {images: images("2.0.0"), config: config(""), want: []string{"spec.providerConfig.machineImages: Required value"}},
		"another image for a version of the parent": {config: config(imageV1), want: []string{"spec.providerConfig.machineImages[0].versions[0]: Forbidden"}},
		"the parent has got it only later":          {config: config(imageV1), old: config(imageV1)},
		"an invalid old configuration":              {config: config(imageV1), old: &runtime.RawExtension{Raw: []byte("1")}, want: []string{"Forbidden"}},
		"an invalid configuration":                  {config: someConfig, want: []string{"spec.providerConfig: Invalid value"}},
		"a parent that does not exist":              {parent: "missing", want: []string{`spec.parent.name: Not found: "missing"`}},
	} {
		t.Run(name, func(t *testing.T) {
			p := &profile{ObjectMeta: metav1.ObjectMeta{Namespace: builder.Namespace, Name: "a"}, Spec: corev1beta1.NamespacedCloudProfileSpec{
				Parent: corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "local"}, MachineImages: tc.images, ProviderConfig: tc.config,
			}}
			if tc.parent != "" {
				p.Spec.Parent.Name = tc.parent
			}
			old := (*profile)(nil)
			if tc.old != nil {
				old = p.DeepCopy()
				old.Spec.ProviderConfig = tc.old
			}
			invalid(t, admissionOf(t, parent).checkNamespaced(t.Context(), p, old), tc.want...)
		})
	}
}

func TestMergeStatus(t *testing.T) {
	for name, tc := range map[string]struct {
		own, parent *runtime.RawExtension
		noStatus    bool
		want        string
	}{
		"nothing of its own":         {parent: config(imageV1), want: "local 1.0.0 registry.example.com/machine:v1"},
		"a version of an image":      {own: config(imageV2), parent: config(imageV1), want: "local 1.0.0 registry.example.com/machine:v1, local 2.0.0 registry.example.com/machine:v2"},
		"another image":              {own: config(strings.ReplaceAll(imageV2, "local", "other")), parent: config(imageV1), want: "local 1.0.0 registry.example.com/machine:v1, other 2.0.0 registry.example.com/machine:v2"},
		"the parent has the version": {own: config(strings.ReplaceAll(imageV1, ":v1", ":v0")), parent: config(imageV1), want: "local 1.0.0 registry.example.com/machine:v1"},
		"a parent without images":    {own: config(imageV2), want: "local 2.0.0 registry.example.com/machine:v2"},
		"not merged yet":             {own: config(imageV2), noStatus: true},
		"an invalid configuration":   {own: &runtime.RawExtension{Raw: []byte("1")}, parent: config(imageV1), want: "spec.providerConfig: Invalid value: the configuration is not valid"},
		"an invalid one of a parent": {own: config(imageV2), parent: &runtime.RawExtension{Raw: []byte("1")}, want: "status.cloudProfileSpec.providerConfig: Invalid value: the configuration is not valid"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &corev1beta1.NamespacedCloudProfile{Spec: corev1beta1.NamespacedCloudProfileSpec{ProviderConfig: tc.own}}
			if !tc.noStatus {
				p.Status.CloudProfileSpec = &corev1beta1.CloudProfileSpec{ProviderConfig: tc.parent}
			}
			got := ""
			if err := mergeStatus(t.Context(), p, nil); err != nil {
				got = err.Error()
			} else if !tc.noStatus {
				got = imagesIn(t, p.Status.CloudProfileSpec.ProviderConfig)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("mergeStatus() (-want +got):\n%s", diff)
			}
		})
	}
}

// imagesIn lists the images of a configuration, which has its kind.
func imagesIn(t *testing.T, raw *runtime.RawExtension) string {
	t.Helper()
	config, err := configOf(raw)
	if err != nil || config.Kind != "CloudProfileConfig" {
		t.Fatalf("%s: %v", raw.Raw, err)
	}
	var list []string
	for _, image := range config.MachineImages {
		for _, version := range image.Versions {
			list = append(list, image.Name+" "+version.Version+" "+version.Image)
		}
	}
	return strings.Join(list, ", ")
}

func TestCheckCredentials(t *testing.T) {
	const valid = `{"apiVersion":"v1","kind":"Config","current-context":"a","contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}],` +
		`"clusters":[{"name":"a","cluster":{"server":"https://api.example.com"}}],"users":[{"name":"a","user":{"token":"t0ken"}}]}`
	secret := func(kubeconfig string) *corev1.Secret {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: builder.Namespace, Name: "credentials"}}
		if kubeconfig != "" {
			s.Data = map[string][]byte{"kubeconfig": []byte(kubeconfig)}
		}
		return s
	}
	binding := &securityv1alpha1.CredentialsBinding{CredentialsRef: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: builder.Namespace, Name: "credentials"}}
	secretBinding := &corev1beta1.SecretBinding{SecretRef: corev1.SecretReference{Namespace: builder.Namespace, Name: "credentials"}}
	for name, tc := range map[string]struct {
		secret *corev1.Secret
		want   string
	}{
		"without a kubeconfig": {secret(""), ""},
		"of another cluster":   {secret(valid), ""},
		"no kubeconfig":        {secret("t0ken"), "Invalid value"},
		"a Service":            {secret(strings.ReplaceAll(valid, "api.example.com", "kubernetes.default.svc")), "must not be a name of a Service in the seed"},
		"a metadata service":   {secret(strings.ReplaceAll(valid, "api.example.com", "169.254.169.254")), "metadata service"},
	} {
		t.Run(name, func(t *testing.T) {
			a := &credentialsAdmission{admissionOf(t, tc.secret).garden}
			for path, err := range map[string]error{
				"data[kubeconfig]": checkSecret(t.Context(), tc.secret, nil),
				"credentialsRef":   a.checkBinding(t.Context(), binding, nil),
				"secretRef":        a.checkSecretBinding(t.Context(), secretBinding, nil),
			} {
				switch {
				case tc.want == "" && err == nil:
				case tc.want == "" || err == nil:
					t.Errorf("%s: %v, want %q", path, err, tc.want)
				case !strings.HasPrefix(err.Error(), path+": Invalid value") || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "t0ken"):
					t.Errorf("%s: %v, want %q", path, err, tc.want)
				}
			}
		})
	}
	none := &credentialsAdmission{admissionOf(t).garden}
	if err := none.checkBinding(t.Context(), binding, nil); err != nil {
		t.Errorf("a Secret that does not exist: %v", err)
	}
	other := binding.DeepCopy()
	other.CredentialsRef.APIVersion, other.CredentialsRef.Kind = "security.gardener.cloud/v1alpha1", "WorkloadIdentity"
	if err := none.checkBinding(t.Context(), other, nil); err != nil {
		t.Errorf("a WorkloadIdentity: %v", err)
	}
}

// The names of the webhooks are paths, and what they are called for is in docs/extensions.md.
func TestAdmissionWebhooks(t *testing.T) {
	var got []string
	for _, w := range AdmissionWebhooks(nil, nil) {
		selector, err := json.Marshal(w.ObjectSelector.MatchLabels)
		if err != nil {
			t.Fatal(err)
		}
		var conditions []string
		for _, condition := range w.MatchConditions {
			conditions = append(conditions, condition.Name)
		}
		got = append(got, w.Name+" "+w.Rules[0].Resources[0]+" "+string(selector)+" "+strings.Join(conditions, " "))
	}
	const ofProvider, spec = ` {"provider.extensions.gardener.cloud/local":"true"} `, "spec-changed not-deleted"
	if diff := cmp.Diff([]string{
		"shoots shoots" + ofProvider + spec,
		`networks shoots {"networking.extensions.gardener.cloud/flannel":"true"} ` + spec,
		`containerruntimes shoots {"containerruntime.extensions.gardener.cloud/crun":"true"} ` + spec,
		"cloudprofiles cloudprofiles" + ofProvider + spec,
		"namespacedcloudprofiles namespacedcloudprofiles" + ofProvider + spec,
		"namespacedcloudprofile-statuses namespacedcloudprofiles/status" + ofProvider,
		"seeds seeds" + ofProvider + spec,
		"backupbuckets backupbuckets" + ofProvider + spec,
		`secrets secrets {"provider.shoot.gardener.cloud/local":"true"} data-changed not-deleted`,
		"credentialsbindings credentialsbindings" + ofProvider + "created not-deleted",
		"secretbindings secretbindings" + ofProvider + "provider-set not-deleted",
	}, got); diff != "" {
		t.Errorf("webhooks (-want +got):\n%s", diff)
	}
}
