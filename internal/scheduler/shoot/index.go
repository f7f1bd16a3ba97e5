package shoot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	schedulerconfigv1alpha1 "gardener.cloud/gardener/api/config/scheduler/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
)

// index is the input of decisions, kept up to date by informers, so that a decision reads and lists nothing.
//
// As a source of the controller it enqueues a Shoot when it is created or its spec has changed, and all Shoots that wait when there is a
// change after which they may fit: of a seed, a profile, the configured distances, or when a shoot has left a full seed. The controller
// starts its workers when the index has all objects that existed at the start.
type index struct {
	informers cache.Informers
	strategy  schedulerconfigv1alpha1.CandidateDeterminationStrategy
	log       logr.Logger

	registrations []toolscache.ResourceEventHandlerRegistration

	lock     sync.Mutex
	queue    workqueue.TypedRateLimitingInterface[reconcile.Request]
	seeds    []*seed // sorted by name
	profiles map[profileKey]*profile
	regions  map[string]regionConfig         // by the name of the ConfigMap
	waiting  map[types.NamespacedName]queued // Shoots without a seed, and what of them was queued
	usage    usage
}

// queued is what of a Shoot is a reason to queue it. A description that was written because the cache had an older one is corrected.
type queued struct {
	generation  int64
	description string
}

// regionConfig is a ConfigMap with distances.
type regionConfig struct {
	profiles  []string
	distances distances
}

func newIndex(informers cache.Informers, strategy schedulerconfigv1alpha1.CandidateDeterminationStrategy, log logr.Logger) *index {
	return &index{
		informers: informers,
		strategy:  strategy,
		log:       log,
		profiles:  map[profileKey]*profile{},
		regions:   map[string]regionConfig{},
		waiting:   map[types.NamespacedName]queued{},
		usage:     newUsage(),
	}
}

// Start starts the watches.
func (i *index) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	i.queue = queue
	return errors.Join(
		watch(ctx, i, i.seedChanged, i.seedDeleted),
		watch(ctx, i, i.cloudProfileChanged, func(p *corev1beta1.CloudProfile) { i.profileDeleted(p) }),
		watch(ctx, i, i.namespacedCloudProfileChanged, func(p *corev1beta1.NamespacedCloudProfile) { i.profileDeleted(p) }),
		watch(ctx, i, i.regionsChanged, i.regionsDeleted),
		watch(ctx, i, i.shootChanged, i.shootDeleted),
	)
}

// WaitForSync waits until all objects that existed at the start are in the index.
func (i *index) WaitForSync(ctx context.Context) error {
	for _, registration := range i.registrations {
		select {
		case <-registration.HasSyncedChecker().Done():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// watch calls a function with each object that was created or updated, and another with each that was deleted. Events of one kind are
// handled one after the other.
func watch[T any, P interface {
	*T
	client.Object
}](ctx context.Context, i *index, changed, deleted func(P),
) error {
	informer, err := i.informers.GetInformer(ctx, P(new(T)), cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch %T: %w", new(T), err)
	}
	locked := func(handle func(P), obj any) {
		if tombstone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
			obj = tombstone.Obj
		}
		if obj, ok := obj.(P); ok {
			i.lock.Lock()
			defer i.lock.Unlock()
			handle(obj)
		}
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { locked(changed, obj) },
		UpdateFunc: func(before, now any) {
			if before, ok := before.(P); ok && before.GetUID() != now.(P).GetUID() { //nolint:forcetypeassert // the informer holds nothing else
				locked(deleted, before)
			}
			locked(changed, now)
		},
		DeleteFunc: func(obj any) { locked(deleted, obj) },
	})
	if err != nil {
		return fmt.Errorf("watch %T: %w", new(T), err)
	}
	i.registrations = append(i.registrations, registration)
	return nil
}

// retryWaiting enqueues all Shoots that wait.
func (i *index) retryWaiting() {
	for key := range i.waiting {
		i.queue.Add(reconcile.Request{NamespacedName: key})
	}
}

func (i *index) seedChanged(s *corev1beta1.Seed) {
	now := newSeed(s)
	at, found := i.findSeed(s.Name)
	switch {
	case found && reflect.DeepEqual(i.seeds[at], now): // most changes are heartbeats
		return
	case found:
		i.seeds[at] = now
	default:
		i.seeds = slices.Insert(i.seeds, at, now)
	}
	i.retryWaiting()
}

func (i *index) seedDeleted(s *corev1beta1.Seed) {
	if at, found := i.findSeed(s.Name); found {
		i.seeds = slices.Delete(i.seeds, at, at+1)
		i.retryWaiting() // the messages that count it are outdated
	}
}

func (i *index) findSeed(name string) (at int, found bool) {
	return slices.BinarySearchFunc(i.seeds, name, func(s *seed, name string) int { return cmp.Compare(s.name, name) })
}

func (i *index) cloudProfileChanged(p *corev1beta1.CloudProfile) {
	i.profileChanged(profileKey{Name: p.Name}, newProfile(p.Spec.SeedSelector, p.Name))
}

func (i *index) namespacedCloudProfileChanged(p *corev1beta1.NamespacedCloudProfile) {
	if p.Status.CloudProfileSpec != nil { // otherwise it is not merged with its parent yet
		i.profileChanged(client.ObjectKeyFromObject(p), newProfile(p.Status.CloudProfileSpec.SeedSelector, p.Spec.Parent.Name))
	}
}

func (i *index) profileChanged(key profileKey, now *profile) {
	if !reflect.DeepEqual(i.profiles[key], now) {
		i.profiles[key] = now
		i.retryWaiting()
	}
}

func (i *index) profileDeleted(p client.Object) {
	delete(i.profiles, client.ObjectKeyFromObject(p))
}

func (i *index) regionsChanged(m *corev1.ConfigMap) {
	now := i.parseRegions(m)
	if !reflect.DeepEqual(i.regions[m.Name], now) {
		i.regions[m.Name] = now
		i.retryWaiting()
	}
}

func (i *index) regionsDeleted(m *corev1.ConfigMap) {
	delete(i.regions, m.Name)
}

// parseRegions ignores regions whose value is not a map of distances.
func (i *index) parseRegions(m *corev1.ConfigMap) regionConfig {
	var config regionConfig
	for name := range strings.SplitSeq(m.Annotations[constants.SchedulingCloudProfiles], ",") {
		config.profiles = append(config.profiles, strings.TrimSpace(name))
	}
	config.distances = distances{}
	for region, text := range m.Data {
		var toSeeds map[string]int
		if err := yaml.Unmarshal([]byte(text), &toSeeds); err != nil {
			i.log.Error(err, "Ignoring invalid distances", "configMap", client.ObjectKeyFromObject(m), "region", region)
			continue
		}
		config.distances[region] = toSeeds
	}
	return config
}

// regionsFor returns the distances for the shoots of a CloudProfile: those of the first ConfigMap that names it.
func (i *index) regionsFor(profile string) distances {
	for _, name := range slices.Sorted(maps.Keys(i.regions)) {
		if config := i.regions[name]; slices.Contains(config.profiles, profile) {
			return config.distances
		}
	}
	return nil
}

func (i *index) shootChanged(s *corev1beta1.Shoot) {
	key := client.ObjectKeyFromObject(s)
	i.seedsLeft(i.usage.set(key, s))
	if !unassigned(s) {
		delete(i.waiting, key)
		return
	}
	now := queued{generation: s.Generation}
	if last := s.Status.LastOperation; last != nil {
		now.description = last.Description
	}
	if before, known := i.waiting[key]; known && before == now {
		return
	}
	i.waiting[key] = now
	i.queue.Add(reconcile.Request{NamespacedName: key})
}

func (i *index) shootDeleted(s *corev1beta1.Shoot) {
	key := client.ObjectKeyFromObject(s)
	delete(i.waiting, key)
	i.seedsLeft(i.usage.delete(key))
}

// seedsLeft enqueues all Shoots that wait if one of the seeds that shoots have left was full.
func (i *index) seedsLeft(names []string) {
	for _, name := range names {
		if at, found := i.findSeed(name); found && i.usage.shootsOn(name)+1 >= i.seeds[at].allocatable {
			i.retryWaiting()
			return
		}
	}
}

// place decides about a Shoot and holds its place on the seed. It returns an *unschedulable if no seed fits, and no seed if the Shoot is
// bound already and the informer is yet to show it.
func (i *index) place(r *request, of profileKey) (seed string, err error) {
	i.lock.Lock()
	defer i.lock.Unlock()
	if assumed := i.usage.assumed[r.shoot]; assumed.bound && assumed.uid == r.uid {
		return "", nil
	}
	i.seedsLeft(i.usage.release(r.shoot)) // held by a former attempt that failed
	profile, found := i.profiles[of]
	switch {
	case !found:
		return "", fmt.Errorf("cloud profile %q not found", of.Name)
	case profile.err != nil:
		return "", fmt.Errorf("cloud profile %q: seed selector: %w", of.Name, profile.err)
	}
	chosen, failure := decide(r, profile, landscape{
		strategy: i.strategy, seeds: i.seeds, shootsOn: i.usage.shootsOn, regions: i.regionsFor(profile.root),
	})
	if failure != nil {
		return "", failure
	}
	i.usage.assume(r, chosen.name)
	return chosen.name, nil
}

// confirm records that a Shoot is bound to the seed on which its place is held.
func (i *index) confirm(key types.NamespacedName) {
	i.lock.Lock()
	defer i.lock.Unlock()
	i.usage.confirm(key)
}

// release releases the place that is held for a Shoot.
func (i *index) release(key types.NamespacedName) {
	i.lock.Lock()
	defer i.lock.Unlock()
	i.seedsLeft(i.usage.release(key))
}
