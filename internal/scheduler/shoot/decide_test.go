package shoot

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulerconfigv1alpha1 "gardener.cloud/gardener/api/config/scheduler/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// testSeed is a usable Seed for shoots of testShoot.
func testSeed(name string, change ...func(*corev1beta1.Seed)) *corev1beta1.Seed {
	s := &corev1beta1.Seed{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"seed": name}},
		Spec: corev1beta1.SeedSpec{
			Provider: corev1beta1.SeedProvider{Type: "aws", Region: "eu-west-1", Zones: []string{"a", "b", "c"}},
			Networks: corev1beta1.SeedNetworks{Nodes: new("10.240.0.0/16"), Pods: "10.241.0.0/16", Services: "10.242.0.0/16"},
			Settings: &corev1beta1.SeedSettings{Scheduling: &corev1beta1.SeedSettingScheduling{Visible: true}},
		},
		Status: corev1beta1.SeedStatus{
			LastOperation: &corev1beta1.LastOperation{State: corev1beta1.LastOperationStateSucceeded},
			Conditions:    []corev1beta1.Condition{{Type: corev1beta1.SeedGardenletReady, Status: corev1beta1.ConditionTrue}},
		},
	}
	for _, c := range change {
		c(s)
	}
	return s
}

func testShoot(change ...func(*corev1beta1.Shoot)) *corev1beta1.Shoot {
	s := &corev1beta1.Shoot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "shoot", UID: "1"},
		Spec: corev1beta1.ShootSpec{
			CloudProfile: &corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "aws"},
			Provider:     corev1beta1.Provider{Type: "aws", Workers: []corev1beta1.Worker{{Name: "w"}}},
			Region:       "eu-west-1",
			Networking: &corev1beta1.Networking{
				Nodes: new("10.0.0.0/16"), Pods: new("10.1.0.0/16"), Services: new("10.2.0.0/16"),
				IPFamilies: []corev1beta1.IPFamily{corev1beta1.IPFamilyIPv4},
			},
		},
	}
	for _, c := range change {
		c(s)
	}
	return s
}

func inRegion(providerType, region string) func(*corev1beta1.Seed) {
	return func(s *corev1beta1.Seed) { s.Spec.Provider.Type, s.Spec.Provider.Region = providerType, region }
}

func withCondition(conditionType corev1beta1.ConditionType, status corev1beta1.ConditionStatus) func(*corev1beta1.Seed) {
	return func(s *corev1beta1.Seed) {
		s.Status.Conditions = append(s.Status.Conditions, corev1beta1.Condition{Type: conditionType, Status: status})
	}
}

func withRoom(shoots string) func(*corev1beta1.Seed) {
	return func(s *corev1beta1.Seed) {
		s.Status.Allocatable = corev1.ResourceList{"shoots": resource.MustParse(shoots)}
	}
}

func withTaint(key string, value *string) func(*corev1beta1.Seed) {
	return func(s *corev1beta1.Seed) { s.Spec.Taints = []corev1beta1.SeedTaint{{Key: key, Value: value}} }
}

func withShootDefaults(pods, services string) func(*corev1beta1.Seed) {
	return func(s *corev1beta1.Seed) {
		s.Spec.Networks.ShootDefaults = &corev1beta1.ShootNetworks{Pods: &pods, Services: &services}
	}
}

func tolerating(key string, value *string) func(*corev1beta1.Shoot) {
	return func(s *corev1beta1.Shoot) { s.Spec.Tolerations = []corev1beta1.Toleration{{Key: key, Value: value}} }
}

func selecting(name string, providerTypes ...string) *corev1beta1.SeedSelector {
	selector := &corev1beta1.SeedSelector{ProviderTypes: providerTypes}
	if name != "" {
		selector.MatchLabels = map[string]string{"seed": name}
	}
	return selector
}

func TestDecide(t *testing.T) {
	const (
		sameRegion      = schedulerconfigv1alpha1.SameRegion
		minimalDistance = schedulerconfigv1alpha1.MinimalDistance
	)
	openNetworks := func(s *corev1beta1.Shoot) { s.Spec.Networking.Pods, s.Spec.Networking.Services = nil, nil }
	workerless := func(s *corev1beta1.Shoot) { s.Spec.Provider.Workers, s.Spec.Networking = nil, nil }
	zonal := func(s *corev1beta1.Shoot) {
		s.Spec.ControlPlane = &corev1beta1.ControlPlane{HighAvailability: &corev1beta1.HighAvailability{
			FailureTolerance: corev1beta1.FailureTolerance{Type: corev1beta1.FailureToleranceTypeZone},
		}}
	}
	pinned := func(s *corev1beta1.Shoot) { s.Spec.ControlPlane = &corev1beta1.ControlPlane{Zones: []string{"a"}} }
	inZones := func(zones ...string) func(*corev1beta1.Shoot) {
		return func(s *corev1beta1.Shoot) { s.Spec.Provider.Workers[0].Zones = zones }
	}
	enforcing := func(s *corev1beta1.Seed) {
		s.Spec.Settings.ZoneSelection = &corev1beta1.SeedSettingZoneSelection{Mode: corev1beta1.ZoneSelectionModeEnforce}
	}
	stoppedBy := func(value string) func(*corev1beta1.Seed) {
		return func(s *corev1beta1.Seed) {
			s.Annotations = map[string]string{"shoot.gardener.cloud/emergency-stop-reconciliations": value}
		}
	}
	restricted := func(s *corev1beta1.Shoot) {
		s.Spec.AccessRestrictions = []corev1beta1.AccessRestrictionWithOptions{{AccessRestriction: corev1beta1.AccessRestriction{Name: "eu-access-only"}}}
	}
	offering := func(domains ...string) func(*corev1beta1.Seed) {
		return func(s *corev1beta1.Seed) {
			for _, domain := range domains {
				s.Spec.DNS.Defaults = append(s.Spec.DNS.Defaults, corev1beta1.SeedDNSProviderConfig{Domain: domain})
			}
		}
	}
	named := func(domain string, providers ...corev1beta1.DNSProvider) func(*corev1beta1.Shoot) {
		return func(s *corev1beta1.Shoot) { s.Spec.DNS = &corev1beta1.DNS{Domain: &domain, Providers: providers} }
	}
	for name, tc := range map[string]struct {
		refusedBy []string
		seeds     []*corev1beta1.Seed
		shoot     *corev1beta1.Shoot
		profile   *corev1beta1.SeedSelector
		strategy  schedulerconfigv1alpha1.CandidateDeterminationStrategy
		regions   distances
		shootsOn  map[string]int64
		want      string // the seed or the error
	}{
		"the seed with the least shoots wins": {
			seeds:    []*corev1beta1.Seed{testSeed("a"), testSeed("b"), testSeed("c")},
			shootsOn: map[string]int64{"a": 2, "b": 1, "c": 2},
			want:     "b",
		},
		"of equals the first by name wins": {
			seeds: []*corev1beta1.Seed{testSeed("a"), testSeed("b")},
			want:  "a",
		},
		"no seeds": {want: "there are no seeds"},
		"seeds that are not usable are counted by reason": {
			seeds: []*corev1beta1.Seed{
				testSeed("a", func(s *corev1beta1.Seed) { s.DeletionTimestamp = &metav1.Time{} }),
				testSeed("b", func(s *corev1beta1.Seed) { s.Spec.Settings.Scheduling.Visible = false }),
				testSeed("c", func(s *corev1beta1.Seed) { s.Status.LastOperation = nil }),
				testSeed("d", func(s *corev1beta1.Seed) { s.Status.Conditions = nil }),
				testSeed("e", func(s *corev1beta1.Seed) { s.Status.Conditions[0].Status = corev1beta1.ConditionUnknown }),
				testSeed("f", withCondition(corev1beta1.SeedBackupBucketsReady, corev1beta1.ConditionFalse)),
			},
			want: "none of 6 seeds fits: 1 being deleted, 1 hidden from the scheduler, 1 not reconciled yet, " +
				"2 without a ready gardenlet (GardenletReady), 1 without ready backup buckets (BackupBucketsReady)",
		},
		"other conditions are ignored": {
			seeds: []*corev1beta1.Seed{testSeed(
				"a", withCondition(corev1beta1.SeedBackupBucketsReady, corev1beta1.ConditionTrue),
				withCondition(corev1beta1.SeedExtensionsReady, corev1beta1.ConditionFalse),
			)},
			want: "a",
		},
		"another provider type": {
			seeds: []*corev1beta1.Seed{testSeed("a", inRegion("gcp", "eu-west-1"))},
			want:  `none out of the 1 seeds has a matching provider for "aws"`, // infrastructure-manager of Kyma gives up when it reads this
		},
		"another provider type, and a seed that may become usable": {
			seeds: []*corev1beta1.Seed{testSeed("a", inRegion("gcp", "eu-west-1")), testSeed("b", func(s *corev1beta1.Seed) { s.Status.LastOperation = nil })},
			want:  "none of 2 seeds fits: 1 not reconciled yet, 1 of another provider type",
		},
		"another region": {
			seeds: []*corev1beta1.Seed{testSeed("a", inRegion("aws", "eu-west-2"))},
			want:  "none of 1 seeds fits: 1 in another region",
		},
		"the selector of the profile": {
			seeds:   []*corev1beta1.Seed{testSeed("a"), testSeed("b")},
			profile: selecting("b"),
			want:    "b",
		},
		"the selector of the shoot": {
			seeds: []*corev1beta1.Seed{testSeed("a"), testSeed("b")},
			shoot: testShoot(func(s *corev1beta1.Shoot) { s.Spec.SeedSelector = selecting("b") }),
			want:  "b",
		},
		"both selectors must match": {
			seeds:   []*corev1beta1.Seed{testSeed("a"), testSeed("b")},
			profile: selecting("a"),
			shoot:   testShoot(func(s *corev1beta1.Shoot) { s.Spec.SeedSelector = selecting("b") }),
			want: "none of 2 seeds fits: 1 not matching the seed selector of the cloud profile, " +
				"1 not matching the seed selector of the shoot",
		},
		"provider types of the profile replace the shoot's own": {
			seeds:    []*corev1beta1.Seed{testSeed("a"), testSeed("b", inRegion("gcp", "eu-west-1"))},
			profile:  selecting("", "gcp"),
			strategy: minimalDistance,
			want:     "b",
		},
		"any provider type": {
			seeds:    []*corev1beta1.Seed{testSeed("a", inRegion("gcp", "eu-west-1"))},
			shoot:    testShoot(func(s *corev1beta1.Shoot) { s.Spec.SeedSelector = selecting("", "*") }),
			strategy: minimalDistance,
			want:     "a",
		},
		"a taint": {
			seeds: []*corev1beta1.Seed{testSeed("a", withTaint("protected", nil))},
			want:  "none of 1 seeds fits: 1 with taints that the shoot does not tolerate",
		},
		"a taint is tolerated": {
			seeds: []*corev1beta1.Seed{testSeed("a", withTaint("protected", nil))},
			shoot: testShoot(tolerating("protected", nil)),
			want:  "a",
		},
		"a taint with a value is tolerated without": {
			seeds: []*corev1beta1.Seed{testSeed("a", withTaint("for", new("tests")))},
			shoot: testShoot(tolerating("for", nil)),
			want:  "a",
		},
		"a taint with another value is not tolerated": {
			seeds: []*corev1beta1.Seed{testSeed("a", withTaint("for", new("tests"))), testSeed("b", withTaint("for", nil))},
			shoot: testShoot(tolerating("for", new("work"))),
			want:  "none of 2 seeds fits: 2 with taints that the shoot does not tolerate",
		},
		"access restrictions": {
			seeds: []*corev1beta1.Seed{testSeed("a"), testSeed("b", func(s *corev1beta1.Seed) {
				s.Spec.AccessRestrictions = []corev1beta1.AccessRestriction{{Name: "other"}, {Name: "eu-access-only"}}
			})},
			shoot: testShoot(restricted),
			want:  "b",
		},
		"access restrictions that no seed supports": {
			seeds: []*corev1beta1.Seed{testSeed("a")},
			shoot: testShoot(restricted),
			want:  "none of 1 seeds fits: 1 not supporting the access restrictions of the shoot",
		},
		"a default domain of a seed": {
			seeds: []*corev1beta1.Seed{testSeed("a", offering("example.org")), testSeed("b", offering("example.org", "example.com"))},
			shoot: testShoot(named("a.dev.example.com")),
			want:  "b",
		},
		"a default domain that no seed offers": {
			seeds: []*corev1beta1.Seed{testSeed("a", offering("example.org"))},
			shoot: testShoot(named("a.dev.example.com")),
			want:  "none of 1 seeds fits: 1 not offering the domain of the shoot (spec.dns.domain)",
		},
		"a domain that may be of the landscape": {
			seeds: []*corev1beta1.Seed{testSeed("a", offering("example.org")), testSeed("b")},
			shoot: testShoot(named("a.dev.example.com")),
			want:  "b",
		},
		"a domain with a provider": {
			seeds: []*corev1beta1.Seed{testSeed("a", offering("example.org")), testSeed("b")},
			shoot: testShoot(named("a.dev.example.com", corev1beta1.DNSProvider{Type: new("x")})),
			want:  "a",
		},
		"a control plane in three zones": {
			seeds: []*corev1beta1.Seed{
				testSeed("a", func(s *corev1beta1.Seed) { s.Spec.Provider.Zones = []string{"a", "b"} }),
				testSeed("b"),
			},
			shoot: testShoot(zonal),
			want:  "b",
		},
		"too few zones": {
			seeds: []*corev1beta1.Seed{testSeed("a", func(s *corev1beta1.Seed) { s.Spec.Provider.Zones = []string{"a", "b"} })},
			shoot: testShoot(zonal),
			want:  "none of 1 seeds fits: 1 with less than three zones",
		},
		"the zones of the control plane": {
			seeds: []*corev1beta1.Seed{testSeed("a", func(s *corev1beta1.Seed) { s.Spec.Provider.Zones = []string{"b", "c"} }), testSeed("b")},
			shoot: testShoot(pinned),
			want:  "b",
		},
		"zones of the control plane that no seed has": {
			seeds: []*corev1beta1.Seed{testSeed("a", func(s *corev1beta1.Seed) { s.Spec.Provider.Zones = []string{"b", "c"} })},
			shoot: testShoot(pinned),
			want:  "none of 1 seeds fits: 1 without the zones in spec.controlPlane.zones",
		},
		"control planes in zones of the workers only": {
			seeds: []*corev1beta1.Seed{testSeed("a", enforcing, func(s *corev1beta1.Seed) { s.Spec.Provider.Zones = []string{"c"} }), testSeed("b", enforcing)},
			shoot: testShoot(inZones("a", "b")),
			want:  "b",
		},
		"too few zones of the workers for zone tolerance": {
			seeds: []*corev1beta1.Seed{testSeed("a", enforcing)},
			shoot: testShoot(zonal, inZones("a", "b")),
			want:  "none of 1 seeds fits: 1 with too few zones of the workers, where its control planes must be",
		},
		"zones of the workers are only preferred": {
			seeds: []*corev1beta1.Seed{testSeed("a", enforcing, func(s *corev1beta1.Seed) {
				s.Spec.Settings.ZoneSelection.Mode = corev1beta1.ZoneSelectionModePrefer
			})},
			shoot: testShoot(inZones("d")),
			want:  "a",
		},
		"zones of the workers, but the control plane has its own": {
			seeds: []*corev1beta1.Seed{testSeed("a", enforcing)},
			shoot: testShoot(pinned, inZones("d")),
			want:  "a",
		},
		"workers can be anywhere": {seeds: []*corev1beta1.Seed{testSeed("a", enforcing)}, want: "a"},
		"an emergency stop": {
			seeds: []*corev1beta1.Seed{testSeed("a", stoppedBy("true")), testSeed("b", stoppedBy("false"))},
			want:  "b",
		},
		"only an emergency stop": {
			seeds: []*corev1beta1.Seed{testSeed("a", stoppedBy("true"))},
			want:  "none of 1 seeds fits: 1 with an emergency stop of the reconciliation of shoots",
		},
		"default domains that only the API server knows": {
			seeds: []*corev1beta1.Seed{testSeed("a", enforcing)}, refusedBy: []string{"a"},
			want: "none of 1 seeds fits: 1 not offering the domain of the shoot (spec.dns.domain)",
		},
		"networks that overlap": {
			seeds: []*corev1beta1.Seed{testSeed("a", func(s *corev1beta1.Seed) { s.Spec.Networks.Pods = "10.0.128.0/17" })},
			want:  "none of 1 seeds fits: 1 with networks that overlap with those of the shoot",
		},
		"IPv6 networks that overlap": {
			seeds: []*corev1beta1.Seed{testSeed("a", func(s *corev1beta1.Seed) { s.Spec.Networks.Pods = "2001:db8:1::/48" })},
			shoot: testShoot(func(s *corev1beta1.Shoot) { s.Spec.Networking.Pods = new("2001:db8::/32") }),
			want:  "none of 1 seeds fits: 1 with networks that overlap with those of the shoot",
		},
		"networks come from the seed": {
			seeds: []*corev1beta1.Seed{testSeed("a"), testSeed("b", withShootDefaults("10.1.0.0/16", "10.2.0.0/16"))},
			shoot: testShoot(openNetworks),
			want:  "b",
		},
		"networks that the seed has no defaults for": {
			seeds: []*corev1beta1.Seed{testSeed("a")},
			shoot: testShoot(openNetworks),
			want:  "none of 1 seeds fits: 1 without default networks for a shoot that leaves them open",
		},
		"default networks that overlap": {
			seeds: []*corev1beta1.Seed{testSeed("a", withShootDefaults("10.241.0.0/24", "10.2.0.0/16"))},
			shoot: testShoot(openNetworks),
			want:  "none of 1 seeds fits: 1 with networks that overlap with those of the shoot",
		},
		"IPv6 networks may be assigned later": {
			seeds: []*corev1beta1.Seed{testSeed("a")},
			shoot: testShoot(openNetworks, func(s *corev1beta1.Shoot) {
				s.Spec.Networking.IPFamilies = []corev1beta1.IPFamily{corev1beta1.IPFamilyIPv6}
			}),
			want: "a",
		},
		"no workers, no pods": {
			seeds: []*corev1beta1.Seed{testSeed("a", func(s *corev1beta1.Seed) {
				s.Spec.Networks.ShootDefaults = &corev1beta1.ShootNetworks{Services: new("10.2.0.0/16")}
			})},
			shoot: testShoot(workerless),
			want:  "a",
		},
		"a full seed": {
			seeds:    []*corev1beta1.Seed{testSeed("a", withRoom("2")), testSeed("b", withRoom("9"))},
			shootsOn: map[string]int64{"a": 2, "b": 8},
			want:     "b",
		},
		"all seeds are full": {
			seeds:    []*corev1beta1.Seed{testSeed("a", withRoom("2")), testSeed("b", withRoom("0"))},
			shootsOn: map[string]int64{"a": 3},
			want:     "none of 2 seeds fits: 2 without room for another shoot",
		},
		"a shoot for tests goes to any region": {
			seeds: []*corev1beta1.Seed{testSeed("a"), testSeed("b", inRegion("aws", "us-east-1")), testSeed("c", inRegion("gcp", "eu-west-1"))},
			shoot: testShoot(func(s *corev1beta1.Shoot) {
				s.Spec.Purpose, s.Spec.SeedSelector = new(corev1beta1.ShootPurposeTesting), selecting("", "*")
			}),
			shootsOn: map[string]int64{"a": 1},
			want:     "b",
		},
		"the same region is the closest": {
			seeds:    []*corev1beta1.Seed{testSeed("a", inRegion("aws", "eu-west-2")), testSeed("b")},
			strategy: minimalDistance,
			shootsOn: map[string]int64{"b": 9},
			want:     "b",
		},
		"a region with the same orientation is closer": {
			seeds:    []*corev1beta1.Seed{testSeed("a", inRegion("aws", "eu-east-2")), testSeed("b", inRegion("aws", "eu-west-3"))},
			strategy: minimalDistance,
			want:     "b",
		},
		"configured distances come first": {
			seeds:    []*corev1beta1.Seed{testSeed("a", inRegion("aws", "eu-west-2")), testSeed("b", inRegion("aws", "us-east-1"))},
			strategy: minimalDistance,
			regions:  distances{"eu-west-1": {"eu-west-2": 20, "us-east-1": 10}},
			want:     "b",
		},
		"the shoot's own region need not be configured": {
			seeds:    []*corev1beta1.Seed{testSeed("a", inRegion("aws", "us-east-1")), testSeed("b")},
			strategy: minimalDistance,
			regions:  distances{"eu-west-1": {"us-east-1": 10}},
			want:     "b",
		},
		"names decide if no configured region has a seed": {
			seeds:    []*corev1beta1.Seed{testSeed("a", inRegion("aws", "us-east-1")), testSeed("b", inRegion("aws", "eu-west-2"))},
			strategy: minimalDistance,
			regions:  distances{"eu-west-1": {"ap-south-1": 10}},
			want:     "b",
		},
		"configured distances apply to MinimalDistance only": {
			seeds:    []*corev1beta1.Seed{testSeed("a", inRegion("aws", "us-east-1"))},
			strategy: sameRegion,
			regions:  distances{"eu-west-1": {"us-east-1": 10}},
			want:     "none of 1 seeds fits: 1 in another region",
		},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := tc.shoot
			if shoot == nil {
				shoot = testShoot()
			}
			// The fields that the informers keep must be enough.
			request, err := newRequest(trimShoot(shoot))
			if err != nil {
				t.Fatal(err)
			}
			request.refusedBy = tc.refusedBy
			in := landscape{
				strategy: tc.strategy, regions: tc.regions,
				shootsOn: func(name string) int64 { return tc.shootsOn[name] },
			}
			for _, s := range tc.seeds {
				in.seeds = append(in.seeds, newSeed(trimSeed(s)))
			}
			seed, failure := decide(request, newProfile(tc.profile, ""), in)
			got := ""
			if failure != nil {
				got = failure.Error()
			} else {
				got = seed.name
			}
			if got != tc.want {
				t.Errorf("decide() = %s, want %s", got, tc.want)
			}
		})
	}
}

func TestEveryReasonHasAText(t *testing.T) {
	for reason := fits + 1; reason < reasons; reason++ {
		if texts[reason] == "" {
			t.Errorf("reason %d has no text", reason)
		}
	}
}

func TestUnassigned(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*corev1beta1.Shoot)
		want   bool
	}{
		"without a seed":            {func(*corev1beta1.Shoot) {}, true},
		"for the default scheduler": {func(s *corev1beta1.Shoot) { s.Spec.SchedulerName = new("default-scheduler") }, true},
		"for another scheduler":     {func(s *corev1beta1.Shoot) { s.Spec.SchedulerName = new("mine") }, false},
		"with a seed":               {func(s *corev1beta1.Shoot) { s.Spec.SeedName = new("a") }, false},
		"being deleted":             {func(s *corev1beta1.Shoot) { s.DeletionTimestamp = &metav1.Time{} }, false},
		"self-hosted": {func(s *corev1beta1.Shoot) {
			s.Spec.Provider.Workers[0].ControlPlane = &corev1beta1.WorkerControlPlane{}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := unassigned(trimShoot(testShoot(tc.change))); got != tc.want {
				t.Errorf("unassigned() = %t, want %t", got, tc.want)
			}
		})
	}
}

func TestNameDistance(t *testing.T) {
	for name, tc := range map[string]struct {
		shoot, seed, provider string
		want                  int
	}{
		"the same":               {"europe-west1", "europe-west1", "aws", 0},
		"another number":         {"europe-west1", "europe-west3", "aws", 2},
		"another orientation":    {"europe-west1", "europe-north1", "aws", 2},
		"only one orientation":   {"europe-west1", "europe1", "aws", 3},
		"no orientation":         {"local", "local", "aws", 1},
		"another provider":       {"europe-west1", "europe-west1", "gcp", 2},
		"everything differs":     {"eu-west-1", "us-east-12", "gcp", 10},
		"longer than the buffer": {"r" + fmt.Sprintf("%070d", 0), "s" + fmt.Sprintf("%070d", 0), "aws", 3},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := &request{providerType: "aws", place: newPlace(tc.shoot)}
			if got := nameDistance(shoot, &seed{providerType: tc.provider, place: newPlace(tc.seed)}); got != tc.want {
				t.Errorf("nameDistance() = %d, want %d", got, tc.want)
			}
		})
	}
}

func TestLevenshtein(t *testing.T) {
	for _, tc := range []struct {
		from, to string
		want     int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"kitten", "sitting", 3}, {"flaw", "lawn", 2}, {"abc", "abc", 0}} {
		if got := levenshtein(tc.from, tc.to); got != tc.want {
			t.Errorf("levenshtein(%q, %q) = %d, want %d", tc.from, tc.to, got, tc.want)
		}
	}
}

// A decision among 200 seeds with 10,000 shoots.
func BenchmarkDecide(b *testing.B) {
	for _, strategy := range schedulerconfigv1alpha1.Strategies {
		b.Run(string(strategy), func(b *testing.B) {
			counts := newUsage()
			in := landscape{strategy: strategy, shootsOn: counts.shootsOn}
			for i := range 200 {
				name := fmt.Sprintf("seed-%03d", i)
				region := "eu-west-1"
				if strategy == schedulerconfigv1alpha1.MinimalDistance {
					region = fmt.Sprintf("eu-central-%d", i)
				}
				in.seeds = append(in.seeds, newSeed(testSeed(name, withRoom("1000"), inRegion("aws", region))))
				counts.counts[name] = 50
			}
			shoot, all := testShoot(), newProfile(nil, "")
			b.ReportAllocs()
			for b.Loop() {
				request, err := newRequest(shoot)
				if err != nil {
					b.Fatal(err)
				}
				if _, failure := decide(request, all, in); failure != nil {
					b.Fatal(failure)
				}
			}
		})
	}
}
