package wave

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	seedmanagementv1alpha1 "gardener.cloud/gardener/api/seedmanagement/v1alpha1"
	"gardener.cloud/gardener/internal/kube"
)

// view is what is known of the garden during a wave.
type view struct {
	landscape
	// shoots are the metadata of the shoots of the seeds that depend on the wave.
	shoots map[string][]*metav1.PartialObjectMetadata
}

// watcher keeps a view up to date.
type watcher struct {
	// changed has a value after a change.
	changed chan struct{}
	// fresh reads a view from the API server.
	fresh func(context.Context) (*view, error)

	mu   sync.Mutex
	view view
}

// errWatching has a watch continue.
var errWatching = errors.New("the watch continues")

// watch watches what a wave depends on until ctx is done. It returns when all is known.
func watch(ctx context.Context, c client.WithWatch, seeds []string) (w *watcher, wait func(), err error) {
	w = &watcher{changed: make(chan struct{}, 1), view: view{shoots: map[string][]*metav1.PartialObjectMetadata{}}}
	w.fresh = func(ctx context.Context) (*view, error) { return readView(ctx, c, seeds) }
	var running, known sync.WaitGroup
	watchKind(ctx, w, &running, &known, c, &corev1beta1.SeedList{}, func(v *view, seeds []*corev1beta1.Seed) { v.seeds = byName(seeds) })
	garden := client.InNamespace(constants.GardenNamespace)
	watchKind(ctx, w, &running, &known, c, &seedmanagementv1alpha1.GardenletList{}, func(v *view, gardenlets []*seedmanagementv1alpha1.Gardenlet) {
		v.gardenlets = byName(gardenlets)
	}, garden)
	watchKind(ctx, w, &running, &known, c, &seedmanagementv1alpha1.ManagedSeedList{}, func(v *view, managed []*seedmanagementv1alpha1.ManagedSeed) {
		v.managedSeeds = byName(managed)
	}, garden)
	for _, seed := range seeds {
		shoots, on := shootsOn(seed)
		watchKind(ctx, w, &running, &known, c, shoots, func(v *view, shoots []*metav1.PartialObjectMetadata) { v.shoots[seed] = shoots }, on)
	}
	all := make(chan struct{})
	go func() {
		known.Wait()
		close(all)
	}()
	select {
	case <-all:
		return w, running.Wait, nil
	case <-ctx.Done():
		running.Wait()
		return nil, nil, context.Cause(ctx)
	}
}

// watchKind watches one kind. It counts as known when it was listed, or when the watch ends.
func watchKind[T client.Object](
	ctx context.Context, w *watcher, running, known *sync.WaitGroup, c client.WithWatch, list client.ObjectList, store func(*view, []T), options ...client.ListOption,
) {
	known.Add(1)
	listed := sync.OnceFunc(known.Done)
	running.Go(func() {
		defer listed()
		_ = kube.Await(ctx, c, list, func(objects []T) error {
			w.mu.Lock()
			store(&w.view, objects)
			w.mu.Unlock()
			listed()
			select {
			case w.changed <- struct{}{}:
			default: // a reader that has yet to start will see this change too
			}
			return errWatching
		}, nil, options...)
	})
}

// read returns a consistent view. The objects are not changed later.
func (w *watcher) read() *view {
	w.mu.Lock()
	defer w.mu.Unlock()
	return &view{landscape: w.view.landscape, shoots: maps.Clone(w.view.shoots)}
}

// readView reads from the API server what a wave depends on.
func readView(ctx context.Context, c client.Reader, seeds []string) (*view, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, requestTimeout, fmt.Errorf("no response within %s", requestTimeout))
	defer cancel()
	l, err := read(ctx, c)
	if err != nil {
		return nil, err
	}
	return l.withShoots(ctx, c, seeds)
}

// withShoots reads the shoots of seeds.
func (l *landscape) withShoots(ctx context.Context, c client.Reader, seeds []string) (*view, error) {
	v := &view{landscape: *l, shoots: map[string][]*metav1.PartialObjectMetadata{}}
	for _, seed := range seeds {
		shoots, on := shootsOn(seed)
		if err := c.List(ctx, shoots, on); err != nil {
			return nil, fmt.Errorf("list shoots of seed %q: %w", seed, err)
		}
		v.shoots[seed] = pointers(shoots.Items)
	}
	return v, nil
}

// read reads which gardenlets there are.
func read(ctx context.Context, c client.Reader) (*landscape, error) {
	seeds, gardenlets, managedSeeds := &corev1beta1.SeedList{}, &seedmanagementv1alpha1.GardenletList{}, &seedmanagementv1alpha1.ManagedSeedList{}
	inGarden := client.InNamespace(constants.GardenNamespace)
	for _, err := range []error{c.List(ctx, seeds), c.List(ctx, gardenlets, inGarden), c.List(ctx, managedSeeds, inGarden)} {
		if err != nil {
			return nil, err
		}
	}
	return &landscape{
		seeds: byName(pointers(seeds.Items)), gardenlets: byName(pointers(gardenlets.Items)), managedSeeds: byName(pointers(managedSeeds.Items)),
	}, nil
}

// shootsOn is a list of the shoots of a seed. A garden may have tens of thousands of shoots: only those of the wave are read, and only their metadata.
func shootsOn(seed string) (*metav1.PartialObjectMetadataList, client.MatchingLabels) {
	shoots := &metav1.PartialObjectMetadataList{}
	shoots.SetGroupVersionKind(corev1beta1.SchemeGroupVersion.WithKind("ShootList"))
	return shoots, client.MatchingLabels{constants.PrefixSeedName + seed: "true"}
}

func pointers[T any](items []T) []*T {
	out := make([]*T, 0, len(items))
	for i := range items {
		out = append(out, &items[i])
	}
	return out
}

func byName[T client.Object](objects []T) map[string]T {
	out := make(map[string]T, len(objects))
	for _, object := range objects {
		out[object.GetName()] = object
	}
	return out
}
