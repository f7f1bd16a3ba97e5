package shoot

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	schedulerconfigv1alpha1 "gardener.cloud/gardener/api/config/scheduler/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
)

// testIndex returns an index with a CloudProfile and seeds.
func testIndex(strategy schedulerconfigv1alpha1.CandidateDeterminationStrategy, seeds ...*corev1beta1.Seed) *index {
	i := newIndex(nil, strategy, logr.Discard())
	for _, s := range seeds {
		i.seedChanged(trimSeed(s))
	}
	i.cloudProfileChanged(trimCloudProfile(&corev1beta1.CloudProfile{ObjectMeta: metav1.ObjectMeta{Name: "aws"}}))
	return i
}

func TestConcurrentDecisionsHoldPlaces(t *testing.T) {
	i := testIndex(schedulerconfigv1alpha1.SameRegion, testSeed("a", withRoom("5")), testSeed("b", withRoom("5")), testSeed("c", withRoom("5")))
	var lock sync.Mutex
	got := map[string]int{}
	var workers sync.WaitGroup
	for n := range 50 {
		workers.Go(func() {
			r, err := newRequest(testShoot(func(s *corev1beta1.Shoot) { s.Name = fmt.Sprint(n) }))
			if err != nil {
				t.Error(err)
				return
			}
			seed, err := i.place(r, profileKey{Name: "aws"})
			var failure *unschedulable
			if err != nil && !errors.As(err, &failure) {
				t.Error(err)
			}
			lock.Lock()
			defer lock.Unlock()
			got[seed]++
		})
	}
	workers.Wait()
	if diff := cmp.Diff(map[string]int{"a": 5, "b": 5, "c": 5, "": 35}, got); diff != "" {
		t.Errorf("shoots by seed (-want +got):\n%s", diff)
	}
}

func TestABoundShootIsNotPlacedAgain(t *testing.T) {
	i := testIndex(schedulerconfigv1alpha1.SameRegion, testSeed("a"))
	place := func(uid string) string {
		t.Helper()
		r, err := newRequest(testShoot(func(s *corev1beta1.Shoot) { s.UID = types.UID(uid) }))
		if err != nil {
			t.Fatal(err)
		}
		seed, err := i.place(r, profileKey{Name: "aws"})
		if err != nil {
			t.Fatal(err)
		}
		i.confirm(r.shoot)
		return seed
	}
	if diff := cmp.Diff([]string{"a", "", "a"}, []string{place("1"), place("1"), place("another UID")}); diff != "" {
		t.Errorf("seeds (-want +got):\n%s", diff)
	}
}

func TestAShootIsRetriedWhenItsProfileIsCreated(t *testing.T) {
	i := newIndex(nil, schedulerconfigv1alpha1.SameRegion, logr.Discard())
	i.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	i.seedChanged(testSeed("a"))
	shoot := testShoot()
	i.shootChanged(shoot)
	queued, _ := i.queue.Get()
	i.queue.Done(queued)
	r, err := newRequest(shoot)
	if err != nil {
		t.Fatal(err)
	}
	if seed, err := i.place(r, profileOf(shoot)); err == nil {
		t.Errorf("place() = %q, want an error", seed)
	}
	i.cloudProfileChanged(&corev1beta1.CloudProfile{ObjectMeta: metav1.ObjectMeta{Name: "aws"}})
	if i.queue.Len() != 1 {
		t.Errorf("%d shoots are queued, want the one that waits", i.queue.Len())
	}
	if seed, err := i.place(r, profileOf(shoot)); seed != "a" || err != nil {
		t.Errorf("place() = %q, %v, want a", seed, err)
	}
}

func TestNamespacedCloudProfile(t *testing.T) {
	shoot := testShoot(func(s *corev1beta1.Shoot) {
		s.Spec.CloudProfile = &corev1beta1.CloudProfileReference{Kind: "NamespacedCloudProfile", Name: "own"}
	})
	i := testIndex(
		schedulerconfigv1alpha1.MinimalDistance,
		testSeed("a", inRegion("aws", "eu-west-2")), testSeed("b", inRegion("aws", "us-east-1")), testSeed("c", inRegion("aws", "us-east-1")),
	)
	own := &corev1beta1.NamespacedCloudProfile{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "own"}}
	own.Spec.Parent = corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "aws"}
	i.namespacedCloudProfileChanged(trimNamespacedCloudProfile(own)) // not merged yet
	own.Status.CloudProfileSpec = &corev1beta1.CloudProfileSpec{SeedSelector: &corev1beta1.SeedSelector{LabelSelector: metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "seed", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"b"}}},
	}}}
	i.namespacedCloudProfileChanged(trimNamespacedCloudProfile(own))
	i.regionsChanged(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "aws", Annotations: map[string]string{"scheduling.gardener.cloud/cloudprofiles": "aws"}},
		Data:       map[string]string{"eu-west-1": "us-east-1: 10\neu-west-2: 20"},
	})
	r, err := newRequest(shoot)
	if err != nil {
		t.Fatal(err)
	}
	// By its parent's distances, us-east-1 is closest; its own selector excludes b.
	if seed, err := i.place(r, profileOf(shoot)); seed != "c" || err != nil {
		t.Errorf("place() = %q, %v, want c", seed, err)
	}
}

// A description that was written while the cache was behind is corrected.
func TestADescriptionQueuesAShootThatWaits(t *testing.T) {
	i := testIndex(schedulerconfigv1alpha1.SameRegion)
	i.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer i.queue.ShutDown()
	for _, step := range []struct {
		name, description string
		queued            int
	}{
		{"created", "", 1}, {"described", "Failed to schedule Shoot: a", 1}, {"the same", "Failed to schedule Shoot: a", 0}, {"described anew", "Failed to schedule Shoot: b", 1},
	} {
		i.shootChanged(testShoot(func(s *corev1beta1.Shoot) {
			s.Status.LastOperation = &corev1beta1.LastOperation{Description: step.description}
		}))
		if got := i.queue.Len(); got != step.queued {
			t.Errorf("%s: %d are queued, want %d", step.name, got, step.queued)
		}
		for i.queue.Len() > 0 {
			request, _ := i.queue.Get()
			i.queue.Done(request)
		}
	}
}
