package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	gardenletconfigv1alpha1 "gardener.cloud/gardener/api/config/gardenlet/v1alpha1"
	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/imagevector"
	"gardener.cloud/gardener/internal/shoot/observed"
	"gardener.cloud/gardener/internal/shoot/observed/observedtest"
	"gardener.cloud/gardener/internal/stage/foundation"
	"gardener.cloud/gardener/internal/stage/stagetest"
	"gardener.cloud/gardener/pkg/flow"
)

// landscape is a garden, a seed and a shoot with a gardenlet, and without any other controllers: resources are reconciled when they are read.
type landscape struct {
	garden, seed, shoot client.WithWatch
	*reconciler
}

func newLandscape(t *testing.T) *landscape {
	t.Helper()
	images, err := imagevector.Default()
	if err != nil {
		t.Fatal(err)
	}
	c := stagetest.New(t)
	return &landscape{
		garden: c.Garden, seed: c.Seed, shoot: c.Shoot,
		reconciler: &reconciler{
			Values: Values{
				SeedName: "here", GardenAPI: c.Garden, SeedAPI: c.Seed, Images: images, Gardener: corev1beta1.Gardener{Version: "v1"},
				Connect: func(*rest.Config) (client.WithWatch, error) { return c.Shoot, nil }, Discover: stagetest.Discover,
				Clock:  clock.RealClock{},
				Config: gardenletconfigv1alpha1.ShootControllerConfiguration{DNSEntryTTLSeconds: new(int64(120))},
			},
			gardenCache: c.Garden,
		},
	}
}

// createProject creates a Project and its namespace.
func (l *landscape) createProject(ctx context.Context, name, namespace string) error {
	return errors.Join(
		l.garden.Create(ctx, &corev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1beta1.ProjectSpec{Namespace: &namespace}}),
		l.garden.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{constants.ProjectName: name}}}),
	)
}

// TestInterruption stops each flow after each task, runs it again from the start, and expects the same objects every time.
func TestInterruption(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes some seconds, as the fake of an API server is slow to apply")
	}
	logf.SetLogger(logr.Discard())
	workerless := func(w *observed.State) { w.Shoot.Spec.Provider.Workers, w.Extensions = nil, nil }
	elasticWorkers := func(w *observed.State) { workers(w); elastic(w) }
	for name, test := range map[string]struct {
		change func(*observed.State)
		// every is after how many tasks one run is interrupted, again and again. Zero means a run of its own for each interruption.
		every int
		// before is the flow that has run before.
		before, flow func(*reconciler, *observed.State) (*flow.Flow, error)
	}{
		"creation":              {change: workerless, flow: (*reconciler).reconcileFlow},
		"deletion":              {change: workerless, before: (*reconciler).reconcileFlow, flow: (*reconciler).deletionFlow},
		"creation with workers": {change: elasticWorkers, every: 4, flow: (*reconciler).reconcileFlow},
		"deletion with workers": {change: elasticWorkers, every: 4, before: (*reconciler).reconcileFlow, flow: (*reconciler).deletionFlow},
		"deletion by force":     {change: elasticWorkers, every: 4, before: (*reconciler).reconcileFlow, flow: (*reconciler).forcedFlow},
		// It is deleted when only the namespace was created.
		"deletion of what was begun": {change: workerless, before: func(r *reconciler, w *observed.State) (*flow.Flow, error) {
			return flow.New("start", foundation.Tasks(r.stages(w, kindRunning).foundation)[:1]...)
		}, flow: (*reconciler).deletionFlow},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := complete(test.change)
			begin := func(t *testing.T) *landscape {
				t.Helper()
				s := newLandscape(t)
				if test.before != nil {
					s.run(t, test.before, w, -1)
				}
				return s
			}
			s := begin(t)
			total := s.run(t, test.flow, w, -1)
			want := s.objects(t)
			runs, step := total, total
			if test.every > 0 {
				runs, step = 1, test.every
			}
			for first := range runs {
				t.Run(fmt.Sprintf("after %d tasks", first), func(t *testing.T) {
					t.Parallel()
					s := begin(t)
					for after := first; after < total; after += step {
						s.run(t, test.flow, w, after)
					}
					s.run(t, test.flow, w, -1)
					if diff := cmp.Diff(want, s.objects(t)); diff != "" {
						t.Errorf("objects at the end (-uninterrupted +interrupted):\n%s", diff)
					}
				})
			}
		})
	}
}

// complete returns the state of a shoot whose flows run to their end in a landscape.
func complete(change func(*observed.State)) *observed.State {
	w := observedtest.State()
	change(w)
	w.Seed.Spec.Backup = nil
	w.Shoot.Spec.Kubernetes.Version = "1.36.3"
	w.CloudProfile, w.Seed.Name, w.Identity = &corev1beta1.CloudProfile{}, "here", "id"
	return w
}

// workers adds a worker pool to a shoot.
func workers(w *observed.State) {
	w.Shoot.Spec.Provider = corev1beta1.Provider{Type: "local", WorkersSettings: &corev1beta1.WorkersSettings{SSHAccess: &corev1beta1.SSHAccess{}}} // its key takes seconds
	w.Shoot.Spec.Provider.Workers = []corev1beta1.Worker{{
		Name: "a", Machine: corev1beta1.Machine{Type: "small", Image: &corev1beta1.ShootMachineImage{Name: "local", Version: new("1.0.0")}},
		CRI: &corev1beta1.CRI{Name: corev1beta1.CRINameContainerD, ContainerRuntimes: []corev1beta1.ContainerRuntime{{Type: "sandbox"}}},
	}}
	w.Shoot.Spec.Networking = &corev1beta1.Networking{Type: new("local"), Pods: new("10.5.0.0/16"), Services: new("10.4.0.0/16"), Nodes: new("10.6.0.0/16")}
}

// run runs a flow and stops it when a number of tasks are done; a negative number does not stop it. It returns how many there are.
func (l *landscape) run(t *testing.T, composed func(*reconciler, *observed.State) (*flow.Flow, error), w *observed.State, after int) (total int) {
	t.Helper()
	f, err := composed(l.reconciler, w)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = f.Run(ctx, flow.Options{Progress: func(p flow.Progress) {
		if total = p.Total; p.Done == after {
			cancel()
		}
	}})
	if err != nil && after < 0 {
		t.Fatal(err)
	}
	return total
}

// objects are those that exist, by cluster, kind and name. Names of credentials end in what they depend on, which differs each time.
func (l *landscape) objects(t *testing.T) map[string]int {
	t.Helper()
	count := map[string]int{}
	for name, c := range map[string]client.WithWatch{"garden": l.garden, "seed": l.seed, "shoot": l.shoot} {
		for gvk := range c.Scheme().AllKnownTypes() {
			if !strings.HasSuffix(gvk.Kind, "List") || gvk.Version == "__internal" || gvk.Group == "" && gvk.Kind == "APIGroupList" {
				continue
			}
			object, err := c.Scheme().New(gvk)
			if err != nil {
				t.Fatal(err)
			}
			list, ok := object.(client.ObjectList)
			if !ok || c.List(t.Context(), list) != nil {
				continue
			}
			for _, item := range namesIn(t, list) {
				count[name+" "+gvk.GroupKind().String()+" "+item]++
			}
		}
	}
	if len(count) == 0 {
		t.Fatal("nothing was created")
	}
	return count
}

func namesIn(t *testing.T, list client.ObjectList) []string {
	t.Helper()
	names := map[string]bool{}
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(list)
	if err != nil {
		t.Fatal(err)
	}
	items, _ := raw["items"].([]any)
	for _, item := range items {
		metadata := item.(map[string]any)["metadata"].(map[string]any) //nolint:forcetypeassert // objects have metadata
		name := fmt.Sprint(metadata["name"])
		if labels, ok := metadata["labels"].(map[string]any); ok && labels["name"] != nil && labels["managed-by"] == "secrets-manager" {
			name = fmt.Sprint(labels["name"])
		} else if i := strings.LastIndex(name, "-"); i > 0 && len(name)-i == 9 {
			name = name[:i]
		}
		names[name] = true
	}
	return slices.Sorted(maps.Keys(names))
}
