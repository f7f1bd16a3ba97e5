package lifecycle

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"gardener.cloud/gardener/api/core/v1beta1/constants"
	operatorv1alpha1 "gardener.cloud/gardener/api/operator/v1alpha1"
	resourcesv1alpha1 "gardener.cloud/gardener/api/resources/v1alpha1"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/internal/stage/stagetest"
	"gardener.cloud/gardener/pkg/flow"
	"gardener.cloud/gardener/test/builder"
)

// The deletion of a Garden begins when nothing uses it. If that cannot be known, the operator has to say so; what a former run has begun continues.
func TestGuard(t *testing.T) {
	registered := func(finalizers ...string) *resourcesv1alpha1.ManagedResource {
		return &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: constants.GardenNamespace, Name: "gardener-apiserver-virtual", Finalizers: finalizers}}
	}
	for name, tc := range map[string]struct {
		// registration is that of gardener-apiserver, and deleted whether a former run has deleted it.
		registration *resourcesv1alpha1.ManagedResource
		deleted      bool
		objects      []client.Object
		// err is that of the virtual garden, and forced whether the Garden has the annotation.
		err    error
		forced bool
		want   string
	}{
		"unused":                     {registration: registered()},
		"with a Seed and a Shoot":    {registration: registered(), objects: []client.Object{builder.Seed("s"), builder.Shoot("a")}, want: `still has Seed "s", Shoot "`},
		"with a Seed, forced":        {registration: registered(), objects: []client.Object{builder.Seed("s")}, forced: true, want: `still has Seed "s"; delete`},
		"it does not respond":        {registration: registered(), err: errors.New("connection refused"), want: "connection refused; to delete the Garden all the same, annotate it with operator.gardener.cloud/force-deletion=true"},
		"it does not respond, force": {registration: registered(), err: errors.New("connection refused"), forced: true},
		"a former run has begun":     {registration: registered("a/b"), deleted: true, err: errors.New("connection refused")},
		"it never came up":           {err: errors.New("connection refused")},
	} {
		t.Run(name, func(t *testing.T) {
			c := stagetest.New(t)
			if tc.registration != nil {
				if err := c.Seed.Create(t.Context(), tc.registration); err != nil {
					t.Fatal(err)
				}
			}
			if tc.deleted {
				if err := c.Seed.Delete(t.Context(), tc.registration); err != nil {
					t.Fatal(err)
				}
			}
			for _, object := range tc.objects {
				if err := c.Shoot.Create(t.Context(), object); err != nil {
					t.Fatal(err)
				}
			}
			virtual := interceptor.NewClient(c.Shoot, interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					if tc.err != nil {
						return tc.err
					}
					return c.List(ctx, list, opts...)
				},
			})
			s := &state{
				reconciler: &reconciler{Values: Values{RuntimeAPI: c.Seed}}, garden: &operatorv1alpha1.Garden{},
				run: &stage.Run{Target: stage.NewConnectedTarget(virtual, stagetest.Discover)},
			}
			if tc.forced {
				metav1.SetMetaDataAnnotation(&s.garden.ObjectMeta, operatorv1alpha1.ForceDeletion, "true")
			}
			err := s.checkUnused(t.Context())
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got error %v, want one with %q", err, tc.want)
			}
		})
	}
}

// Nothing but the virtual cluster's resource manager removes the finalizers of its ManagedResources, and it cannot if the cluster does not respond: a forced
// deletion has to remove them before it waits for their deletion, whether a former run has begun with it or not.
func TestForcedDeletionWithoutResponse(t *testing.T) {
	const finalizer = "resources.gardener.cloud/gardener-resource-manager"
	for name, begun := range map[string]bool{"first run": false, "a former run has begun": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				garden := plainGarden()
				metav1.SetMetaDataAnnotation(&garden.ObjectMeta, operatorv1alpha1.ForceDeletion, "true")
				registration := managedResource("gardener-apiserver-virtual", nil, finalizer)
				s := deleting(t, garden, registration, managedResource("gardener-scheduler-virtual", nil, finalizer),
					managedResource("extension-registration-x", nil, finalizer), managedResource("of-a-user", nil, finalizer))
				if begun {
					if err := s.RuntimeAPI.Delete(t.Context(), registration); err != nil {
						t.Fatal(err)
					}
				}
				s.run.Target = stage.NewConnectedTarget(interceptor.NewClient(s.RuntimeAPI, interceptor.Funcs{
					List: func(ctx context.Context, _ client.WithWatch, _ client.ObjectList, _ ...client.ListOption) error {
						<-ctx.Done()
						return ctx.Err()
					},
				}), stagetest.Discover)
				for _, step := range []struct {
					timeout time.Duration
					run     func(context.Context) error
				}{{guardTimeout, s.checkUnused}, {stage.ExtensionTimeout, s.awaitOnlyOwn}, {stage.PodsTimeout, s.deleteGardener}} {
					ctx, cancel := context.WithTimeout(t.Context(), step.timeout)
					err := step.run(ctx)
					cancel()
					if err != nil {
						t.Fatal(err)
					}
				}
			})
		})
	}
}

// All tasks of a deletion come after the check.
func TestGuarded(t *testing.T) {
	tasks := (&state{}).guarded([]flow.Task{{ID: "extension"}, {ID: "gardener", After: []string{"extension"}}})
	var first []string
	for _, task := range tasks {
		if len(task.After) == 0 {
			first = append(first, task.ID)
		}
	}
	if want := []string{guardTask}; !slices.Equal(first, want) || len(tasks) != 3 {
		t.Errorf("first are %v of %d tasks, want %v", first, len(tasks), want)
	}
}
