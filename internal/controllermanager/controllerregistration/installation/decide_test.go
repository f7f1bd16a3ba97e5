package installation

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// names returns needs as sorted text.
func names(n needs) []string {
	list := []string{}
	for _, one := range n.UnsortedList() {
		list = append(list, one.String())
	}
	slices.Sort(list)
	return list
}

func testShoot(mutate func(*corev1beta1.Shoot)) *corev1beta1.Shoot {
	shoot := &corev1beta1.Shoot{Spec: corev1beta1.ShootSpec{
		Networking: &corev1beta1.Networking{Type: new("calico")},
		Provider: corev1beta1.Provider{Type: "aws", Workers: []corev1beta1.Worker{{
			Machine: corev1beta1.Machine{Image: &corev1beta1.ShootMachineImage{Name: "linux"}},
		}}},
	}}
	if mutate != nil {
		mutate(shoot)
	}
	return shoot
}

func TestNeedsOfShoot(t *testing.T) {
	usual := []string{"ControlPlane/aws", "ControlPlane/gcp", "Infrastructure/aws", "Network/calico", "OperatingSystemConfig/linux", "Worker/aws"}
	with := func(more ...string) []string { return append(more, usual...) }
	garden := domains{internal: []domain{{"internal.example.com", "route53"}}, defaults: []domain{{"example.com", "clouddns"}}}
	for name, tc := range map[string]struct {
		shoot   func(*corev1beta1.Shoot)
		seed    func(*corev1beta1.Seed)
		domains domains
		auto    []automatic
		want    []string
	}{
		"with workers": {want: usual},
		"without workers only the seed's provider": {
			shoot: func(s *corev1beta1.Shoot) { s.Spec.Provider.Workers = nil }, want: []string{"ControlPlane/gcp"},
		},
		"backups of the seed": {
			seed: func(s *corev1beta1.Seed) { s.Spec.Backup = &corev1beta1.Backup{Provider: "gcs"} },
			want: with("BackupBucket/gcs", "BackupEntry/gcs"),
		},
		"container runtimes": {
			shoot: func(s *corev1beta1.Shoot) {
				s.Spec.Provider.Workers[0].CRI = &corev1beta1.CRI{ContainerRuntimes: []corev1beta1.ContainerRuntime{{Type: "gvisor"}}}
			},
			want: with("ContainerRuntime/gvisor"),
		},
		"the internal domain":             {domains: domains{internal: garden.internal}, want: with("DNSRecord/route53")},
		"the unmanaged internal domain":   {domains: domains{internal: []domain{{"i.example.com", constants.DNSProviderUnmanaged}}}, want: usual},
		"the internal domain of the seed": {seed: ownDNS, domains: garden, want: with("DNSRecord/own")},
		"a default domain": {
			shoot:   func(s *corev1beta1.Shoot) { s.Spec.DNS = &corev1beta1.DNS{Domain: new("a.b.example.com")} },
			domains: garden, want: with("DNSRecord/clouddns", "DNSRecord/route53"),
		},
		"a domain that only ends like a default one": {
			shoot:   func(s *corev1beta1.Shoot) { s.Spec.DNS = &corev1beta1.DNS{Domain: new("anexample.com")} },
			domains: garden, want: with("DNSRecord/route53"),
		},
		"the primary provider counts": {
			shoot: func(s *corev1beta1.Shoot) {
				s.Spec.DNS = &corev1beta1.DNS{Domain: new("a.example.com"), Providers: []corev1beta1.DNSProvider{
					{Type: new("other")}, {Type: new("azure"), Primary: new(true)},
				}}
			},
			domains: garden, want: with("DNSRecord/azure", "DNSRecord/route53"),
		},
		"extensions in the spec": {
			shoot: func(s *corev1beta1.Shoot) {
				s.Spec.Extensions = []corev1beta1.Extension{{Type: "on"}, {Type: "off", Disabled: new(true)}}
			},
			want: with("Extension/on"),
		},
		"automatic extensions, except a disabled one": {
			shoot: func(s *corev1beta1.Shoot) {
				s.Spec.Extensions = []corev1beta1.Extension{{Type: "a", Disabled: new(true)}}
			},
			auto: []automatic{{"a", true}, {"b", false}}, want: with("Extension/b"),
		},
		"automatic extensions without workers": {
			shoot: func(s *corev1beta1.Shoot) { s.Spec.Provider.Workers = nil },
			auto:  []automatic{{"a", true}, {"b", false}}, want: []string{"ControlPlane/gcp", "Extension/a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			seed := &corev1beta1.Seed{Spec: corev1beta1.SeedSpec{Provider: corev1beta1.SeedProvider{Type: "gcp"}}}
			if tc.seed != nil {
				tc.seed(seed)
			}
			got := needs{sets.New[need]()}
			got.addShoot(testShoot(tc.shoot), seed, tc.domains.forSeed(seed), tc.auto)
			slices.Sort(tc.want)
			if diff := cmp.Diff(tc.want, names(got)); diff != "" {
				t.Errorf("needs (-want +got):\n%s", diff)
			}
		})
	}
}

func ownDNS(s *corev1beta1.Seed) {
	s.Spec.DNS.Internal = &corev1beta1.SeedDNSProviderConfig{Type: "own", Domain: "own.example.com"}
	s.Spec.DNS.Provider = &corev1beta1.SeedDNSProvider{Type: "ingress"}
}

func TestNeedsOfSeedAndSelfHosted(t *testing.T) {
	seed := &corev1beta1.Seed{Spec: corev1beta1.SeedSpec{
		Provider: corev1beta1.SeedProvider{Type: "gcp"}, Backup: &corev1beta1.Backup{Provider: "gcs"},
		Extensions: []corev1beta1.Extension{{Type: "specified"}},
	}}
	ownDNS(seed)
	got := needs{sets.New[need]()}
	got.addSeed(seed, []automatic{{"auto", false}})
	want := []string{
		"BackupBucket/gcs", "BackupEntry/gcs", "ControlPlane/gcp", "DNSRecord/ingress", "DNSRecord/own",
		"Extension/auto", "Extension/specified", "Infrastructure/gcp", "Worker/gcp",
	}
	if diff := cmp.Diff(want, names(got)); diff != "" {
		t.Errorf("seed (-want +got):\n%s", diff)
	}

	shoot := testShoot(func(s *corev1beta1.Shoot) {
		s.Spec.Provider.Workers[0].ControlPlane = &corev1beta1.WorkerControlPlane{
			Backup: &corev1beta1.Backup{Provider: "s3"}, Exposure: &corev1beta1.Exposure{Extension: &corev1beta1.ExtensionExposure{}},
		}
	})
	got = needs{sets.New[need]()}
	got.addSelfHosted(shoot, nil, nil)
	want = []string{"BackupBucket/s3", "BackupEntry/s3", "ControlPlane/aws", "Network/calico", "OperatingSystemConfig/linux", "SelfHostedShootExposure/aws"}
	if diff := cmp.Diff(want, names(got)); diff != "" {
		t.Errorf("self-hosted shoot on unmanaged machines (-want +got):\n%s", diff)
	}
	shoot.Spec.CredentialsBindingName = new("credentials")
	got.addSelfHosted(shoot, nil, nil)
	if !got.Has(need{"Infrastructure", "aws"}) || !got.Has(need{"Worker", "aws"}) {
		t.Errorf("self-hosted shoot on managed machines needs %v", names(got))
	}
}

func TestDecide(t *testing.T) {
	policy := func(p corev1beta1.ControllerDeploymentPolicy) *corev1beta1.ControllerRegistrationDeployment {
		return &corev1beta1.ControllerRegistrationDeployment{Policy: &p}
	}
	registration := func(name string, deployment *corev1beta1.ControllerRegistrationDeployment, types ...string) corev1beta1.ControllerRegistration {
		r := corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u", Generation: 1, ResourceVersion: "10"}}
		for _, typ := range types {
			r.Spec.Resources = append(r.Spec.Resources, corev1beta1.ControllerResource{Kind: "Worker", Type: typ})
		}
		r.Spec.Deployment = deployment
		return r
	}
	deleting := func(r corev1beta1.ControllerRegistration) corev1beta1.ControllerRegistration {
		r.DeletionTimestamp = new(metav1.Now())
		return r
	}
	always, exceptNoShoots := policy(corev1beta1.ControllerDeploymentPolicyAlways), policy(corev1beta1.ControllerDeploymentPolicyAlwaysExceptNoShoots)
	elsewhere := always.DeepCopy()
	elsewhere.SeedSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"region": "mars"}}
	seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "seed", UID: "s", Generation: 3, ResourceVersion: "20"}}
	deletedSeed := seed.DeepCopy()
	deletedSeed.DeletionTimestamp = new(metav1.Now())
	// installation is one that this controller created before.
	installation := func(r corev1beta1.ControllerRegistration, age int, mutate ...func(*corev1beta1.ControllerInstallation)) corev1beta1.ControllerInstallation {
		i := desired(observed{seed: seed}, &r, nil)
		i.Name, i.CreationTimestamp = fmt.Sprintf("%s-%d", r.Name, age), metav1.Unix(int64(1000-age), 0)
		for _, m := range mutate {
			m(i)
		}
		return *i
	}
	isRequired := func(i *corev1beta1.ControllerInstallation) {
		i.Status.Conditions = []corev1beta1.Condition{{Type: corev1beta1.ControllerInstallationRequired, Status: corev1beta1.ConditionTrue}}
	}
	for name, tc := range map[string]struct {
		seed          *corev1beta1.Seed
		needs         []string
		shoots        int
		registrations []corev1beta1.ControllerRegistration
		installations []corev1beta1.ControllerInstallation
		want          []string
	}{
		"a needed registration":                   {needs: []string{"a"}, registrations: []corev1beta1.ControllerRegistration{registration("a", nil, "a"), registration("b", nil, "b")}, want: []string{"create a"}},
		"a need without a registration":           {needs: []string{"a"}, want: []string{"unserved Worker/a"}},
		"two serve the same":                      {needs: []string{"a"}, registrations: []corev1beta1.ControllerRegistration{registration("a", nil, "a"), registration("b", nil, "a")}, want: []string{"create a", "create b"}},
		"always":                                  {registrations: []corev1beta1.ControllerRegistration{registration("a", always)}, want: []string{"create a"}},
		"always, on a seed in deletion":           {seed: deletedSeed, registrations: []corev1beta1.ControllerRegistration{registration("a", always)}},
		"always, on other seeds":                  {registrations: []corev1beta1.ControllerRegistration{registration("a", elsewhere)}},
		"except no shoots, without":               {registrations: []corev1beta1.ControllerRegistration{registration("a", exceptNoShoots)}},
		"except no shoots, with one":              {shoots: 1, registrations: []corev1beta1.ControllerRegistration{registration("a", exceptNoShoots)}, want: []string{"create a"}},
		"in deletion, not installed":              {needs: []string{"a"}, registrations: []corev1beta1.ControllerRegistration{deleting(registration("a", nil, "a"))}},
		"in deletion, installed and needed stays": {needs: []string{"a"}, registrations: []corev1beta1.ControllerRegistration{deleting(registration("a", nil, "a"))}, installations: []corev1beta1.ControllerInstallation{installation(registration("a", nil), 1)}},
		"installed and needed":                    {needs: []string{"a"}, registrations: []corev1beta1.ControllerRegistration{registration("a", nil, "a")}, installations: []corev1beta1.ControllerInstallation{installation(registration("a", nil), 1)}},
		"no longer needed":                        {registrations: []corev1beta1.ControllerRegistration{registration("a", nil, "a")}, installations: []corev1beta1.ControllerInstallation{installation(registration("a", nil), 1)}, want: []string{"remove a-1"}},
		"the registration is deleted":             {installations: []corev1beta1.ControllerInstallation{installation(registration("a", nil), 1)}, want: []string{"remove a-1"}},
		"no longer needed, but still required":    {registrations: []corev1beta1.ControllerRegistration{registration("a", nil, "a")}, installations: []corev1beta1.ControllerInstallation{installation(registration("a", nil), 1, isRequired)}},
		"the older of two stays":                  {needs: []string{"a"}, registrations: []corev1beta1.ControllerRegistration{registration("a", nil, "a")}, installations: []corev1beta1.ControllerInstallation{installation(registration("a", nil), 1), installation(registration("a", nil), 2)}, want: []string{"remove a-1"}},
		"being deleted already": {registrations: []corev1beta1.ControllerRegistration{registration("a", nil, "a")}, installations: []corev1beta1.ControllerInstallation{installation(registration("a", nil), 1, func(i *corev1beta1.ControllerInstallation) {
			i.DeletionTimestamp = new(metav1.Now())
		})}},
		"with another generation of the seed": {needs: []string{"a"}, registrations: []corev1beta1.ControllerRegistration{registration("a", nil, "a")}, installations: []corev1beta1.ControllerInstallation{installation(registration("a", nil), 1, func(i *corev1beta1.ControllerInstallation) {
			i.Labels[labelSeedHash], i.Spec.SeedRef.ResourceVersion = "old", "1"
		})}, want: []string{"update a-1"}},
		"with an older version of the same generation": {needs: []string{"a"}, registrations: []corev1beta1.ControllerRegistration{registration("a", nil, "a")}, installations: []corev1beta1.ControllerInstallation{installation(registration("a", nil), 1, func(i *corev1beta1.ControllerInstallation) {
			i.Spec.SeedRef.ResourceVersion = "1"
		})}},
	} {
		t.Run(name, func(t *testing.T) {
			o := observed{seed: tc.seed, needs: needs{sets.New[need]()}, shoots: tc.shoots, registrations: tc.registrations, installations: tc.installations}
			if o.seed == nil {
				o.seed = seed
			}
			for _, typ := range tc.needs {
				o.needs.add(typ, "Worker")
			}
			p := decide(o)
			var got []string
			for _, i := range p.create {
				got = append(got, "create "+i.Spec.RegistrationRef.Name)
			}
			for _, change := range p.update {
				got = append(got, "update "+change[1].Name)
			}
			for _, i := range p.remove {
				got = append(got, "remove "+i.Name)
			}
			for _, n := range p.unserved {
				got = append(got, "unserved "+n.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("decide() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDesired(t *testing.T) {
	registration := &corev1beta1.ControllerRegistration{
		ObjectMeta: metav1.ObjectMeta{Name: "local", ResourceVersion: "7", UID: "r", Annotations: map[string]string{constants.PodSecurityEnforce: "restricted"}},
		Spec: corev1beta1.ControllerRegistrationSpec{Deployment: &corev1beta1.ControllerRegistrationDeployment{
			DeploymentRefs: []corev1beta1.DeploymentRef{{Name: "chart"}},
		}},
	}
	seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "seed", ResourceVersion: "8", UID: "s"}}
	resources := []corev1.ObjectReference{{Kind: "Secret", Namespace: "garden", Name: "pull", ResourceVersion: "9"}}
	o := observed{seed: seed, deployments: map[string]deployment{"chart": {resourceVersion: "6", hash: "content", resources: resources}}}
	got := desired(o, registration, nil)
	want := corev1beta1.ControllerInstallationSpec{
		RegistrationRef: corev1.ObjectReference{Name: "local", ResourceVersion: "7"},
		SeedRef:         &corev1.ObjectReference{Name: "seed", ResourceVersion: "8"},
		DeploymentRef:   &corev1.ObjectReference{Name: "chart", ResourceVersion: "6"},
		ResourceRefs:    resources,
	}
	if diff := cmp.Diff(want, got.Spec); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if level := got.Annotations[constants.PodSecurityEnforce]; level != "restricted" {
		t.Errorf("pod security level is %q", level)
	}
	if again := desired(o, registration, got); !same(got, again) {
		t.Errorf("desired() changes its own result:\n%s", cmp.Diff(got, again))
	}
	// The deployment does not exist for a while: the installation is updated once.
	o.deployments = nil
	without := desired(o, registration, got)
	if again := desired(o, registration, without); !same(without, again) || same(got, without) {
		t.Errorf("without the deployment:\n%s", cmp.Diff(without, again))
	}
}

func TestNameFor(t *testing.T) {
	long := strings.Repeat("x", 43) + "." + strings.Repeat("y", 19)
	for _, registration := range []string{"local", long} {
		name := nameFor(registration, "Seed/a")
		if len("extension-"+name) > 63 || strings.Contains(name, ".-") || name == nameFor(registration, "Seed/b") || name != nameFor(registration, "Seed/a") {
			t.Errorf("nameFor(%q) = %q", registration, name)
		}
	}
}

// A change on a seed with 5,000 shoots.
func BenchmarkSeedWith5000Shoots(b *testing.B) {
	seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "seed", UID: types.UID("s")}, Spec: corev1beta1.SeedSpec{Provider: corev1beta1.SeedProvider{Type: "aws"}}}
	shoots := make([]*corev1beta1.Shoot, 5000)
	for i := range shoots {
		shoots[i] = testShoot(func(s *corev1beta1.Shoot) {
			s.Spec.DNS = &corev1beta1.DNS{Domain: new(fmt.Sprintf("a%d.example.com", i))}
		})
	}
	d := domains{internal: []domain{{"internal.example.com", "route53"}}, defaults: []domain{{"example.com", "route53"}}}
	for b.Loop() {
		o := observed{seed: seed, needs: needs{sets.New[need]()}, shoots: len(shoots)}
		for _, shoot := range shoots {
			o.needs.addShoot(shoot, seed, d, nil)
		}
		decide(o)
	}
}
