package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	"gardener.cloud/gardener/internal/shoot/observed"
	"gardener.cloud/gardener/pkg/errorcode"
	"gardener.cloud/gardener/pkg/extension"
	"gardener.cloud/gardener/pkg/flow"
)

// Tasks that are added during a run are for the next one, and unknown ones are for other controllers.
func TestRemoveTasks(t *testing.T) {
	for name, test := range map[string]struct{ before, now, want string }{
		"none":                          {},
		"all are done":                  {before: "deployInfrastructure", now: "deployInfrastructure"},
		"one is added":                  {before: "deployInfrastructure", now: "deployInfrastructure,restartCoreAddons", want: "restartCoreAddons"},
		"the first":                     {now: "deployInfrastructure", want: "deployInfrastructure"},
		"one is for another controller": {before: "deployInfrastructure,custom", now: "deployInfrastructure,custom", want: "custom"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLandscape(t)
			shoot := &corev1beta1.Shoot{}
			shoot.Namespace, shoot.Name = "garden-dev", "crazy-botany"
			if test.now != "" {
				shoot.Annotations = map[string]string{constants.ShootTasks: test.now}
			}
			if err := l.garden.Create(t.Context(), shoot); err != nil {
				t.Fatal(err)
			}
			before := &corev1beta1.Shoot{}
			before.Annotations = map[string]string{constants.ShootTasks: test.before}
			if err := l.removeTasks(t.Context(), shoot, requestedTasks(before)); err != nil {
				t.Fatal(err)
			}
			if err := l.garden.Get(t.Context(), client.ObjectKeyFromObject(shoot), shoot); err != nil {
				t.Fatal(err)
			}
			if got := shoot.Annotations[constants.ShootTasks]; got != test.want {
				t.Errorf("tasks: got %q, want %q", got, test.want)
			}
		})
	}
}

// Operations that are added while a pass begins are for the next one: the status does not have them yet.
func TestOperationsThatAreAddedMeanwhile(t *testing.T) {
	const asked, more = "rotate-ca-start;maintain", "rotate-ca-start;maintain;rotate-ssh-keypair"
	for name, tc := range map[string]struct{ asked, now string }{
		"one is the first":          {now: "rotate-ssh-keypair"},
		"one is added":              {asked: asked, now: more},
		"one replaces what is done": {asked: asked, now: "maintain;rotate-ssh-keypair"},
	} {
		for _, when := range []string{"the status is written", "the annotation is written"} {
			t.Run(name+" when "+when, func(t *testing.T) {
				t.Parallel()
				l, f := newLandscape(t), reconciled()
				shoot, profile := f.shoot, &corev1beta1.CloudProfile{}
				shoot.Generation++
				shoot.Spec.CloudProfile = &corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "local"}
				shoot.Annotations = map[string]string{constants.GardenerOperation: tc.asked}
				f.seed.Name, profile.Name = "here", "local"
				if err := errors.Join(
					l.garden.Create(t.Context(), shoot), l.garden.Create(t.Context(), f.seed), l.garden.Create(t.Context(), profile),
					l.createProject(t.Context(), "dev", shoot.Namespace),
					l.seed.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
						Name: "shoot--dev--" + shoot.Name, UID: "u", Annotations: map[string]string{constants.ShootUIDAnnotation: string(shoot.UID)},
					}}),
				); err != nil {
					t.Fatal(err)
				}
				var once sync.Once
				ask := func(now string) {
					if now != when {
						return
					}
					once.Do(func() {
						patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, constants.GardenerOperation, tc.now)
						if err := l.garden.Patch(t.Context(), shoot.DeepCopy(), client.RawPatch(types.MergePatchType, patch)); err != nil {
							t.Error(err)
						}
					})
				}
				l.gardenCache = interceptor.NewClient(l.garden, interceptor.Funcs{
					SubResourcePatch: func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
						ask("the status is written")
						return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
					},
					Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
						ask("the annotation is written")
						return c.Patch(ctx, obj, patch, opts...)
					},
				})
				ctx, stop := context.WithCancel(t.Context())
				l.SeedAPI = interceptor.NewClient(l.seed, interceptor.Funcs{
					Apply: func(ctx context.Context, _ client.WithWatch, _ runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
						stop() // the flow is not part of this test
						return ctx.Err()
					},
				})
				l.Clock, l.Config = clocktesting.NewFakePassiveClock(noon), f.config
				l.Config.RetryDuration = &metav1.Duration{Duration: time.Hour}
				if _, err := l.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(shoot)}); !errors.Is(err, context.Canceled) {
					t.Fatal("the flow has not begun", err)
				}
				ask(when)
				if err := l.garden.Get(t.Context(), client.ObjectKeyFromObject(shoot), shoot); err != nil {
					t.Fatal(err)
				}
				want := strings.TrimPrefix(strings.TrimPrefix(tc.now, "rotate-ca-start"), ";")
				if got := shoot.Annotations[constants.GardenerOperation]; got != want {
					t.Errorf("left is %q, want %q", got, want)
				}
				if c := shoot.Status.Credentials; c != nil && c.Rotation.SSHKeypair != nil || (c != nil) != (tc.asked != "") {
					t.Errorf("credentials are %+v", c)
				}
			})
		}
	}
}

// Without its namespace, a control plane is lost: a new one would delete the machines of the former one.
func TestLostControlPlaneIsNotCreatedAgain(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		v       verdict
		exists  bool
		refused bool
	}{
		"reconcile":                 {v: verdict{action: reconcileShoot, operation: corev1beta1.LastOperationTypeReconcile}, refused: true},
		"reconcile one that exists": {v: verdict{action: reconcileShoot, operation: corev1beta1.LastOperationTypeReconcile}, exists: true},
		"create":                    {v: verdict{action: reconcileShoot, operation: corev1beta1.LastOperationTypeCreate}},
		"restore":                   {v: verdict{action: reconcileShoot, operation: corev1beta1.LastOperationTypeRestore}},
		"delete":                    {v: verdict{action: deleteShoot, operation: corev1beta1.LastOperationTypeDelete}},
		"migrate what is released":  {v: verdict{action: migrateShoot, operation: corev1beta1.LastOperationTypeMigrate}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := newLandscape(t).checkNamespace(tc.v, &observed.State{Namespace: "shoot--dev--x", HasNamespace: tc.exists})
			if refused := err != nil; refused != tc.refused {
				t.Errorf("checkNamespace() = %v", err)
			}
		})
	}
}

// A conflict is not reported. An object that is missing may stay so, which is reported.
func TestFailedReports(t *testing.T) {
	missing := fmt.Errorf("read credentials: %w", apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, "creds"))
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, "creds", errors.New("changed"))
	for name, tc := range map[string]struct {
		err error
		// want is the state afterwards. Empty means that it stays as it was, and that the pass is repeated soon.
		want corev1beta1.LastOperationState
	}{
		"a conflict":                {err: conflict},
		"a conflict in a task":      {err: &flow.Error{Tasks: []*flow.TaskError{{Err: conflict}}}},
		"something is missing":      {err: missing, want: corev1beta1.LastOperationStateError},
		"missing in a task":         {err: &flow.Error{Tasks: []*flow.TaskError{{Err: missing}}}, want: corev1beta1.LastOperationStateError},
		"only the owner can fix it": {err: errorcode.With(missing, corev1beta1.ErrorInfraUnauthenticated), want: corev1beta1.LastOperationStateFailed},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := reconciled().shoot
			c := garden(t, shoot)
			clock := clocktesting.NewFakePassiveClock(noon)
			status := &statusReporter{
				gardenCache: c, clock: clock, shoot: shoot, operation: corev1beta1.LastOperationTypeReconcile, generation: shoot.Generation,
				gardener: corev1beta1.Gardener{Version: "v1"}, retry: time.Hour,
			}
			result, err := (&reconciler{Values: Values{Clock: clock}, gardenCache: c}).failed(t.Context(), status, tc.err)
			if quiet := err == nil && result.RequeueAfter > 0; quiet != (tc.want == "") {
				t.Errorf("failed() is %v, %v", result, err)
			}
			if final := errors.Is(err, reconcile.TerminalError(nil)); final != (tc.want == corev1beta1.LastOperationStateFailed) {
				t.Errorf("it is final: %t", final)
			}
			if tc.want == "" {
				tc.want = corev1beta1.LastOperationStateSucceeded
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(shoot), shoot); err != nil {
				t.Fatal(err)
			}
			if got := shoot.Status.LastOperation; got.State != tc.want {
				t.Errorf("last operation is %+v, want %q", got, tc.want)
			}
		})
	}
}

// The annotation to ignore a shoot is removed, and there is nothing else to do: the Cluster resource is written all the same.
func TestEndOfIgnoring(t *testing.T) {
	l, f := newLandscape(t), reconciled()
	shoot := f.shoot
	shoot.Spec.CloudProfile = &corev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "local"}
	shoot.Status.TechnicalID = "shoot--dev--crazy-botany"
	f.seed.Name = "here"
	profile, namespace := &corev1beta1.CloudProfile{}, &corev1.Namespace{}
	profile.Name, namespace.Name, namespace.UID = "local", shoot.Status.TechnicalID, "1"
	namespace.Annotations = map[string]string{constants.ShootUIDAnnotation: string(shoot.UID)}
	ignored := shoot.DeepCopy()
	ignored.Annotations = map[string]string{constants.ShootIgnore: "true"}
	f.config.RespectSyncPeriodOverwrite = new(true)
	l.Clock, l.Config = clocktesting.NewFakePassiveClock(noon), f.config
	if err := errors.Join(
		l.garden.Create(t.Context(), shoot), l.garden.Create(t.Context(), f.seed), l.garden.Create(t.Context(), profile),
		l.createProject(t.Context(), "dev", shoot.Namespace),
		l.seed.Create(t.Context(), namespace), l.writeCluster(t.Context(), &observed.State{Namespace: namespace.Name, CloudProfile: profile, Seed: f.seed}, ignored),
	); err != nil {
		t.Fatal(err)
	}
	result, err := l.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(shoot)})
	if err != nil || result.RequeueAfter == 0 {
		t.Fatal(result, err)
	}
	cluster, err := extension.ReadCluster(t.Context(), l.seed, namespace.Name)
	if err != nil {
		t.Fatal(err)
	}
	if reason := cluster.SkipReason(); reason != "" {
		t.Errorf("extensions still ignore it: %s", reason)
	}
}

// If owners may not have a shoot ignored, extensions do not ignore it either: the flow would wait for them.
func TestExtensionsIgnoreWhatTheGardenletIgnores(t *testing.T) {
	for name, tc := range map[string]struct {
		namespace string
		allowed   bool
		want      string
	}{
		"not allowed":   {namespace: "garden-dev"},
		"allowed":       {namespace: "garden-dev", allowed: true, want: "the shoot is to be ignored"},
		"in the garden": {namespace: constants.GardenNamespace, want: "the shoot is to be ignored"},
	} {
		t.Run(name, func(t *testing.T) {
			l, f := newLandscape(t), reconciled()
			l.Config = f.config
			l.Config.RespectSyncPeriodOverwrite = &tc.allowed
			f.shoot.Namespace, f.shoot.Annotations = tc.namespace, map[string]string{constants.ShootIgnore: "true"}
			if err := l.writeCluster(t.Context(), &observed.State{Namespace: "shoot--dev--crazy-botany", CloudProfile: &corev1beta1.CloudProfile{}, Seed: f.seed}, f.shoot); err != nil {
				t.Fatal(err)
			}
			cluster, err := extension.ReadCluster(t.Context(), l.seed, "shoot--dev--crazy-botany")
			if err != nil {
				t.Fatal(err)
			}
			if got := cluster.SkipReason(); got != tc.want {
				t.Errorf("extensions ignore it as %q, want %q", got, tc.want)
			}
		})
	}
}

// The creation of a shoot is stopped by an error that only the user can fix. A shoot that exists is reconciled as far as possible.
func TestRunStopsTheCreation(t *testing.T) {
	for operation, want := range map[corev1beta1.LastOperationType][]string{
		corev1beta1.LastOperationTypeCreate:    {"infrastructure"},
		corev1beta1.LastOperationTypeReconcile: {"infrastructure", "worker"},
		corev1beta1.LastOperationTypeDelete:    {"infrastructure", "worker"},
	} {
		t.Run(string(operation), func(t *testing.T) {
			shoot := reconciled().shoot
			r := &reconciler{Values: Values{Clock: clocktesting.NewFakePassiveClock(noon)}, gardenCache: garden(t, shoot)}
			failed := make(chan struct{})
			f, err := flow.New("test",
				flow.Await(time.Minute, "infrastructure", "Waiting for Infrastructure", func(context.Context) error {
					defer close(failed)
					return errorcode.With(errors.New("no quota"), corev1beta1.ErrorInfraQuotaExceeded)
				}),
				flow.Await(time.Minute, "worker", "Waiting for Worker", func(ctx context.Context) error {
					if <-failed; operation == corev1beta1.LastOperationTypeCreate {
						<-ctx.Done()
					}
					return errors.New("Worker is not ready")
				}),
			)
			if err != nil {
				t.Fatal(err)
			}
			var failure *flow.Error
			if err := r.run(t.Context(), &statusReporter{gardenCache: r.gardenCache, clock: r.Clock, shoot: shoot, operation: operation}, f); !errors.As(err, &failure) {
				t.Fatalf("run() = %v", err)
			}
			var got []string
			for _, task := range failure.Tasks {
				got = append(got, task.ID)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("failed tasks (-want +got):\n%s", diff)
			}
		})
	}
}
