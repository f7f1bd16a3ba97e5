package wave

import (
	"context"
	"errors"
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

	mu   sync.Mutex
	view view
}

// errWatching has a watch continue.
var errWatching = errors.New("the watch continues")

// watch watches what a wave depends on until ctx is done. It returns when all is known.
func watch(ctx context.Context, c client.WithWatch, seeds []string) (w *watcher, wait func(), err error) {
	w = &watcher{changed: make(chan struct{}, 1), view: view{shoots: map[string][]*metav1.PartialObjectMetadata{}}}
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
		// A garden may have tens of thousands of shoots: only those of the wave are read, and only their metadata.
		shoots := &metav1.PartialObjectMetadataList{}
		shoots.SetGroupVersionKind(corev1beta1.SchemeGroupVersion.WithKind("ShootList"))
		watchKind(ctx, w, &running, &known, c, shoots, func(v *view, shoots []*metav1.PartialObjectMetadata) { v.shoots[seed] = shoots },
			client.MatchingLabels{constants.PrefixSeedName + seed: "true"})
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

func byName[T client.Object](objects []T) map[string]T {
	out := make(map[string]T, len(objects))
	for _, object := range objects {
		out[object.GetName()] = object
	}
	return out
}
