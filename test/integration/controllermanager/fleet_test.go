package controllermanager

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/test/builder"
	"gardener.cloud/gardener/test/env"
)

// awaitStale waits until a Project is stale or not, and has a date for its deletion or not.
func awaitStale(t *testing.T, g *garden, p *corev1beta1.Project, stale, dated bool) *corev1beta1.Project {
	t.Helper()
	return env.Await(t, g.client, p, func(p *corev1beta1.Project) error {
		if since, date := p.Status.StaleSinceTimestamp, p.Status.StaleAutoDeleteTimestamp; (since != nil) != stale || (date != nil) != dated {
			return fmt.Errorf("stale since %v, deletion at %v, want %t, %t", since, date, stale, dated)
		}
		return nil
	})
}

// recheck has a Project reconciled.
func recheck(t *testing.T, g *garden, p *corev1beta1.Project) {
	t.Helper()
	edit(t, g, p, func(p *corev1beta1.Project) { p.Spec.Description = new(fmt.Sprint(time.Now().UnixNano())) })
}

func testStale(t *testing.T, g *garden) {
	step := env.Story(t)
	p := project("unused")
	g.create(t, p)

	step("a project that nothing uses is stale, and has a date for its deletion after a while")
	awaitStale(t, g, p, true, false)
	awaitEvent(t, g, "unused", "ProjectStale")
	p = awaitPhase(t, g, "unused", corev1beta1.ProjectReady)
	editStatus(t, g, p, func(p *corev1beta1.Project) {
		p.Status.StaleSinceTimestamp = new(metav1.NewTime(time.Now().Add(-20 * 24 * time.Hour).Truncate(time.Second)))
	})
	g.awaitCached(t, p)
	recheck(t, g, p)
	awaitStale(t, g, p, true, true)
	awaitEvent(t, g, "unused", "ProjectAutoDeletionScheduled")

	step("a Shoot is an activity that ends this")
	s := shoot(*p.Spec.Namespace, "user")
	g.create(t, s)
	p = awaitStale(t, g, p, false, false)
	if p.Status.LastActivityTimestamp == nil || p.Status.LastActivityTimestamp.Before(&s.CreationTimestamp) {
		t.Errorf("the last activity was at %v, want one after %s", p.Status.LastActivityTimestamp, s.CreationTimestamp)
	}
	awaitEvent(t, g, "unused", "ProjectUsedAgain")
	g.delete(t, s)
	g.awaitUnknown(t, s)
	recheck(t, g, p)
	awaitStale(t, g, p, true, false)

	step("and so does an operator who exempts it")
	ns := namespace(*p.Spec.Namespace, nil)
	edit(t, g, ns, func(n *corev1.Namespace) { n.Annotations["project.gardener.cloud/skip-stale-check"] = "true" })
	g.awaitCached(t, metadataOf(ns))
	recheck(t, g, p)
	awaitStale(t, g, p, false, false)
	edit(t, g, ns, func(n *corev1.Namespace) { delete(n.Annotations, "project.gardener.cloud/skip-stale-check") })
	g.awaitCached(t, metadataOf(ns))
	recheck(t, g, p)
	awaitStale(t, g, p, true, false)

	step("and a Plant")
	plant := &corev1beta1.Plant{
		ObjectMeta: metav1.ObjectMeta{Namespace: *p.Spec.Namespace, Name: "foreign"}, Spec: corev1beta1.PlantSpec{SecretRef: corev1.LocalObjectReference{Name: "any"}},
	}
	g.create(t, plant)
	g.awaitCached(t, plant)
	recheck(t, g, p)
	awaitStale(t, g, p, false, false)
	g.delete(t, plant)
	g.awaitUnknown(t, plant)
	recheck(t, g, p)
	awaitStale(t, g, p, true, false)

	step("and credentials that a Shoot of another project uses")
	g.create(t, namespace("garden-stale-user", nil))
	credentials := secret(*p.Spec.Namespace, "shared")
	g.create(t, credentials)
	binding := credentialsBinding("garden-stale-user", "shared", corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: *p.Spec.Namespace, Name: "shared"})
	user := shoot("garden-stale-user", "user", withWorkers("shared"))
	g.create(t, binding, user)
	g.awaitCached(t, binding, user)
	recheck(t, g, p)
	awaitStale(t, g, p, false, false)

	step("whose changes are activities")
	env.Await(t, g.client, credentials, marked[*corev1.Secret](
		"gardener.cloud/credentialsbinding provider.shoot.gardener.cloud/local reference.gardener.cloud/credentialsbinding"))
	g.settle(t)
	long := metav1.NewTime(time.Now().Add(-1000 * time.Hour).Truncate(time.Second))
	editStatus(t, g, p, func(p *corev1beta1.Project) { p.Status.LastActivityTimestamp = &long })
	edit(t, g, credentials, func(s *corev1.Secret) { s.Data = map[string][]byte{"token": []byte("new")} })
	env.Await(t, g.client, p, func(p *corev1beta1.Project) error {
		if last := p.Status.LastActivityTimestamp; last == nil || !last.After(long.Time) {
			return fmt.Errorf("the last activity was at %v", last)
		}
		return nil
	})

	step("when the date has come, the project is deleted")
	g.delete(t, user)
	env.AwaitGone(t, g.client, user)
	g.delete(t, binding)
	g.awaitUnknown(t, user, binding)
	recheck(t, g, p)
	awaitStale(t, g, p, true, false)
	editStatus(t, g, p, func(p *corev1beta1.Project) {
		p.Status.StaleSinceTimestamp = new(metav1.NewTime(time.Now().Add(-100 * 24 * time.Hour)))
		p.Status.StaleAutoDeleteTimestamp = new(metav1.NewTime(time.Now().Add(-10 * 24 * time.Hour)))
	})
	g.awaitCached(t, p)
	edit(t, g, p, func(p *corev1beta1.Project) { delete(p.Annotations, "confirmation.gardener.cloud/deletion") })
	recheck(t, g, p)
	g.finishNamespace(t, ns.Name)
	env.AwaitGone(t, g.client, p)
	awaitEvent(t, g, "unused", "ProjectAutoDeletion")

	step("a project with a Shoot stays for the check that a restart is no activity")
	used := project("used")
	g.create(t, used)
	used = awaitPhase(t, g, "used", corev1beta1.ProjectReady)
	g.create(t, shoot(*used.Spec.Namespace, "user"))
	env.Await(t, g.client, used, func(p *corev1beta1.Project) error {
		if p.Status.LastActivityTimestamp == nil {
			return errors.New("no activity is recorded")
		}
		return nil
	})
}

// metadataOf returns the metadata of a namespace, as the controllers cache it.
func metadataOf(n *corev1.Namespace) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: n.ObjectMeta}
}

func testResourceQuota(t *testing.T, g *garden) {
	quota := func(namespace string) *corev1.ResourceQuota {
		return &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "own"},
			Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
				"count/shoots.core.gardener.cloud": resource.MustParse("10"), "count/secrets": resource.MustParse("5"),
			}},
		}
	}
	is := func(limit, perShoot string) func(*corev1.ResourceQuota) error {
		return func(q *corev1.ResourceQuota) error {
			hard := q.Spec.Hard["count/secrets"]
			if got := q.Annotations["quota.gardener.cloud/secrets-per-shoot"]; hard.String() != limit || got != perShoot {
				return fmt.Errorf("the limit is %s for %q per Shoot, want %s for %q", hard.String(), got, limit, perShoot)
			}
			return nil
		}
	}
	labels := map[string]string{"gardener.cloud/role": "project", "project.gardener.cloud/name": "limited"}
	ns, other := namespace("garden-limited", labels), namespace("limited-elsewhere", nil)
	own, foreign := quota(ns.Name), quota(other.Name)
	// The quota is older than the Project.
	g.create(t, ns, other, own, foreign)
	g.awaitCached(t, own)
	g.create(t, project("limited", func(p *corev1beta1.Project) { p.Spec.Namespace = &ns.Name }))
	env.Await(t, g.client, own, is("40", "4"))
	edit(t, g, own, func(q *corev1.ResourceQuota) { q.Annotations["quota.gardener.cloud/secrets-per-shoot"] = "3" })
	env.Await(t, g.client, own, is("50", "4"))
	g.awaitCached(t, own, foreign)
	g.settle(t)
	env.Await(t, g.client, own, is("50", "4"))
	env.Await(t, g.client, foreign, is("5", ""))
}

func testClassification(t *testing.T, g *garden) {
	profile := builder.CloudProfile("classified", builder.Versions("1.36.1", "1.35.4"))
	// It expires while the controller runs. What is expired already is removed from a new profile, so there is time to create it.
	profile.Spec.Kubernetes.Versions[1].ExpirationDate = new(metav1.NewTime(time.Now().Add(15 * time.Second)))
	g.create(t, profile)
	classified := func(want ...corev1beta1.ExpirableVersionStatus) {
		t.Helper()
		env.Await(t, g.client, profile, func(p *corev1beta1.CloudProfile) error {
			if p.Status.Kubernetes == nil || fmt.Sprint(p.Status.Kubernetes.Versions) != fmt.Sprint(want) {
				return fmt.Errorf("versions are %v, want %v", p.Status.Kubernetes, want)
			}
			if images := p.Status.MachineImages; len(images) != len(p.Spec.MachineImages) || len(images[0].Versions) == 0 {
				return fmt.Errorf("images are %v", images)
			}
			return nil
		})
	}
	supported := corev1beta1.ExpirableVersionStatus{Version: "1.36.1", Classification: "supported"}
	classified(supported, corev1beta1.ExpirableVersionStatus{Version: "1.35.4", Classification: "expired"})
	edit(t, g, profile, func(p *corev1beta1.CloudProfile) { p.Spec.Kubernetes.Versions = p.Spec.Kubernetes.Versions[:1] })
	classified(supported)
	editStatus(t, g, profile, func(p *corev1beta1.CloudProfile) { p.Status = corev1beta1.CloudProfileStatus{} })
	classified(supported)
}

func testMigrationConstraint(t *testing.T, g *garden) {
	from, to := builder.Seed("from"), builder.Seed("to")
	g.create(t, namespace("garden-moved", nil), from, to)
	s := shoot("garden-moved", "moved", builder.On("from"))
	g.create(t, s)
	own := condition("MaintenancePreconditionsSatisfied", "of the gardenlet")
	editStatus(t, g, s, func(s *corev1beta1.Shoot) {
		s.Status.SeedName, s.Status.Constraints = new("from"), []corev1beta1.Condition{own}
	})
	is := func(want string) {
		t.Helper()
		env.Await(t, g.client, s, func(s *corev1beta1.Shoot) error {
			got := ""
			for _, c := range s.Status.Constraints {
				if c.Type == "ReadyForMigration" {
					got = string(c.Status) + " " + c.Reason
				}
			}
			if got != want {
				return fmt.Errorf("the constraint is %q, want %q", got, want)
			}
			if len(s.Status.Constraints) == 0 || s.Status.Constraints[0].Type != own.Type {
				return errors.New("the constraint of the gardenlet is missing")
			}
			return nil
		})
	}
	is("")
	env.Bind(t, g.client, s, "to")
	is("False DestinationSeedUnready")
	for _, seed := range []*corev1beta1.Seed{from, to} {
		editStatus(t, g, seed, func(s *corev1beta1.Seed) {
			s.Status.Gardener, s.Status.ObservedGeneration = &corev1beta1.Gardener{Version: "v1.2.3", Name: "gardenlet", ID: "a"}, s.Generation
			s.Status.Conditions = append(s.Status.Conditions, condition("GardenletReady", ""), condition("SeedSystemComponentsHealthy", ""))
		})
	}
	is("True DestinationSeedReady")
	editStatus(t, g, to, func(s *corev1beta1.Seed) { s.Status.Gardener.Version = "v1.2.4" })
	is("False DestinationSeedUnready")
	env.Await(t, g.client, to, func(s *corev1beta1.Seed) error {
		if len(s.Finalizers) == 0 {
			return errors.New("another controller does not protect the Seed yet")
		}
		return nil
	})
	g.delete(t, to)
	is("False DestinationSeedInDeletion")
	editStatus(t, g, s, func(s *corev1beta1.Shoot) { s.Status.SeedName = new("to") })
	is("")
	g.delete(t, s)
	env.AwaitGone(t, g.client, s)
	g.delete(t, from)
	env.AwaitGone(t, g.client, from)
	env.AwaitGone(t, g.client, to)
}

func testRegisteredSeeds(t *testing.T, g *garden) {
	seed := builder.Seed("registered")
	g.create(t, seed)
	remembered := func(configMap *corev1.ConfigMap) error {
		if _, found := configMap.Data[seed.Name]; !found {
			return fmt.Errorf("the names are %v", configMap.Data)
		}
		return nil
	}
	env.Await(t, g.client, env.Named[*corev1.ConfigMap]("garden", "registered-seeds"), remembered)
	g.delete(t, seed)
	g.awaitUnknown(t, seed)
	g.settle(t)
	env.Await(t, g.client, env.Named[*corev1.ConfigMap]("garden", "registered-seeds"), remembered)
}
