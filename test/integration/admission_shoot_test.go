package integration

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	securityv1alpha1 "gardener.cloud/gardener/api/security/v1alpha1"
	"gardener.cloud/gardener/test/env"
)

const offerNamespace = "garden-offer"

func createProject(t *testing.T, e *env.Env, name, namespace string) {
	t.Helper()
	create(t, e, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	create(t, e, &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1beta1.ProjectSpec{Namespace: &namespace}})
}

// createOffer creates what is needed to create shoots of the type "offer" in a project "offer".
func createOffer(t *testing.T, e *env.Env) {
	t.Helper()
	createProject(t, e, "offer", offerNamespace)
	for _, namespace := range []string{offerNamespace, "garden"} {
		create(t, e, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "offer"}})
	}
	ref := corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: offerNamespace, Name: "offer"}
	create(t, e, &securityv1alpha1.CredentialsBinding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: offerNamespace,
			Name:      "offer",
		}, Provider: securityv1alpha1.CredentialsBindingProvider{Type: "offer"},
		CredentialsRef: ref,
	})
	registration := &corev1beta1.ControllerRegistration{ObjectMeta: metav1.ObjectMeta{Name: "offer"}}
	for _, kind := range []string{
		"BackupBucket", "BackupEntry", "ControlPlane", "DNSRecord", "Infrastructure", "Network", "OperatingSystemConfig", "Worker",
	} {
		registration.Spec.Resources = append(registration.Spec.Resources, corev1beta1.ControllerResource{Kind: kind, Type: "offer"})
	}
	create(t, e, registration)
	create(t, e, &corev1beta1.CloudProfile{ObjectMeta: metav1.ObjectMeta{Name: "offer"}, Spec: corev1beta1.CloudProfileSpec{
		Type: "offer",
		Kubernetes: corev1beta1.KubernetesSettings{Versions: []corev1beta1.ExpirableVersion{
			{Version: "1.36.1"},
			{Version: "1.36.0"},
			{Version: "1.35.4"},
		}},
		MachineImages: []corev1beta1.MachineImage{{Name: "offer", Versions: []corev1beta1.MachineImageVersion{
			{
				ExpirableVersion: corev1beta1.ExpirableVersion{Version: "1.2.0"}, CRI: []corev1beta1.CRI{{Name: "containerd"}},
				Architectures: []string{"amd64"},
			},
		}}},
		MachineTypes: []corev1beta1.MachineType{{Name: "small", CPU: resource.MustParse("2"), Memory: resource.MustParse("8Gi")}},
		Regions:      []corev1beta1.Region{{Name: "one", Zones: []corev1beta1.AvailabilityZone{{Name: "a"}}}},
	}})
	credentials := &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "offer"}
	seed := &corev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "offer"}, Spec: corev1beta1.SeedSpec{
		Provider: corev1beta1.SeedProvider{Type: "offer", Region: "one", Zones: []string{"a"}},
		Networks: corev1beta1.SeedNetworks{
			Pods: "10.11.0.0/16", Services: "10.12.0.0/16",
			ShootDefaults: &corev1beta1.ShootNetworks{Pods: new("100.96.0.0/11"), Services: new("100.64.0.0/13")},
		},
		Ingress: &corev1beta1.Ingress{Domain: "ingress.offer.example.org", Controller: corev1beta1.IngressController{Kind: "nginx"}},
		DNS: corev1beta1.SeedDNS{
			Provider: &corev1beta1.SeedDNSProvider{Type: "offer", CredentialsRef: credentials},
			Internal: &corev1beta1.SeedDNSProviderConfig{Type: "offer", Domain: "internal.example.org", CredentialsRef: *credentials},
			Defaults: []corev1beta1.SeedDNSProviderConfig{{Type: "offer", Domain: "shoots.example.org", CredentialsRef: *credentials}},
		},
	}}
	tainted := seed.DeepCopy()
	tainted.Name, tainted.Spec.Taints = "tainted", []corev1beta1.SeedTaint{{Key: "special"}}
	tainted.Spec.Ingress.Domain = "ingress.tainted.example.org"
	create(t, e, seed)
	create(t, e, tainted)
}

// testShootCreation creates shoots as users do, who leave open what follows from the profile and the seed.
func testShootCreation(t *testing.T, e *env.Env) {
	createOffer(t, e)
	ctx, c := t.Context(), e.Client
	newShoot := func(name string, change ...func(*corev1beta1.Shoot)) *corev1beta1.Shoot {
		shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: offerNamespace, Name: name}, Spec: corev1beta1.ShootSpec{
			CloudProfile: &corev1beta1.CloudProfileReference{Name: "offer"}, CredentialsBindingName: new("offer"), Region: "one",
			Kubernetes: corev1beta1.Kubernetes{Version: "1.36"}, Networking: &corev1beta1.Networking{Type: new("offer")},
			Provider: corev1beta1.Provider{Type: "offer", Workers: []corev1beta1.Worker{
				{Name: "pool", Minimum: 1, Maximum: 2, Machine: corev1beta1.Machine{Type: "small"}, Zones: []string{"a"}},
			}},
		}}
		for _, c := range change {
			c(shoot)
		}
		return shoot
	}
	const foreignNamespace = "garden-foreign"
	foreign := func(s *corev1beta1.Shoot) { s.Namespace = foreignNamespace }
	workerless := func(s *corev1beta1.Shoot) {
		s.Spec.Provider.Workers, s.Spec.Networking, s.Spec.CredentialsBindingName = nil, nil, nil
	}
	unmanaged := func(domain string) func(*corev1beta1.Shoot) {
		return func(s *corev1beta1.Shoot) {
			s.Spec.DNS = &corev1beta1.DNS{Domain: &domain, Providers: []corev1beta1.DNSProvider{{Type: new("unmanaged"), Primary: new(true)}}}
		}
	}
	createProject(t, e, "foreign", foreignNamespace)
	create(t, e, newShoot("mine", workerless, unmanaged("mine.example.net")))

	shoot := create(t, e, newShoot("open"))
	type chosen struct{ Kubernetes, Image, Architecture, Kind string }
	machine := shoot.Spec.Provider.Workers[0].Machine
	got := chosen{
		shoot.Spec.Kubernetes.Version, machine.Image.Name + " " + *machine.Image.Version, *machine.Architecture,
		shoot.Spec.CloudProfile.Kind,
	}
	if diff := cmp.Diff(chosen{"1.36.1", "offer 1.2.0", "amd64", "CloudProfile"}, got); diff != "" {
		t.Errorf("what the profile says (-want +got):\n%s", diff)
	}
	if shoot.Spec.DNS != nil || shoot.Spec.Networking.Pods != nil {
		t.Errorf("without a seed the domain is %v and the pods are in %v", shoot.Spec.DNS, shoot.Spec.Networking.Pods)
	}

	for name, tc := range map[string]struct {
		change func(*corev1beta1.Shoot)
		want   string
	}{
		"region": {func(s *corev1beta1.Shoot) { s.Spec.Region = "two" }, "spec.region: Unsupported value"},
		"machine-type": {
			func(s *corev1beta1.Shoot) { s.Spec.Provider.Workers[0].Machine.Type = "huge" },
			"spec.provider.workers[0].machine.type: Unsupported value",
		},
		"zone": {
			func(s *corev1beta1.Shoot) { s.Spec.Provider.Workers[0].Zones = []string{"z"} },
			"spec.provider.workers[0].zones[0]: Unsupported value",
		},
		"seed-taint": {func(s *corev1beta1.Shoot) { s.Spec.SeedName = new("tainted") }, "does not tolerate"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.Create(ctx, newShoot(name, tc.change)); !apierrors.IsForbidden(err) || !contains(err, tc.want) {
				t.Errorf("create: %v, want it forbidden with %q", err, tc.want)
			}
		})
	}

	bind := func(seed string) error {
		bound := shoot.DeepCopy()
		bound.Spec.SeedName = &seed
		return c.SubResource("binding").Update(ctx, bound)
	}
	if err := bind("tainted"); !apierrors.IsForbidden(err) {
		t.Errorf("bind to a seed with a taint: %v, want it forbidden", err)
	}
	if err := bind("offer"); err != nil {
		t.Fatalf("bind: %v", err)
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(shoot), shoot); err != nil {
		t.Fatal(err)
	}
	if domain := shoot.Spec.DNS; domain == nil || *domain.Domain != "open.offer.shoots.example.org" {
		t.Errorf("the domain on the seed is %v", domain)
	}
	if pods := shoot.Spec.Networking.Pods; pods == nil || *pods != "100.96.0.0/11" {
		t.Errorf("the pods on the seed are in %v", pods)
	}
	if err := bind("offer"); err == nil {
		t.Error("a shoot was bound to the same seed again")
	}
	moved := shoot.DeepCopy()
	moved.Spec.SeedName = new("tainted")
	if err := c.Update(ctx, moved); !apierrors.IsForbidden(err) {
		t.Errorf("update of the seed: %v, want it forbidden", err)
	}

	own := newShoot("own", func(s *corev1beta1.Shoot) {
		s.Spec.DNS = &corev1beta1.DNS{Domain: new("x.open.offer.shoots.example.org")}
	})
	if err := c.Create(ctx, own); !apierrors.IsForbidden(err) || !contains(err, "spec.dns.domain") {
		t.Errorf("create with a domain below another: %v, want it forbidden", err)
	}
	// Of the shoots of other projects, only those with a domain that may conflict are read.
	for domain, conflict := range map[string]string{
		"mine.example.net": "Duplicate", "deep.api.mine.example.net": "below the domain of another shoot", "deep.mine.example.net": "",
	} {
		err := c.Create(ctx, newShoot("foreign", foreign, workerless, unmanaged(domain)), client.DryRunAll)
		if refused := err != nil; refused != (conflict != "") || refused && !contains(err, conflict) {
			t.Errorf("create in another project with the domain %s: %v, want %q", domain, err, conflict)
		}
	}
}

// contains reports whether the message of an error contains a text.
func contains(err error, text string) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && strings.Contains(status.Status().Message, text)
}
