package lifecycle

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/shoot/observed/observedtest"
	"gardener.cloud/gardener/internal/stage"
	"gardener.cloud/gardener/internal/stage/stagetest"
	"gardener.cloud/gardener/pkg/flow"
)

func TestSkipsReadiness(t *testing.T) {
	rotation := func(change func(*corev1beta1.ShootCredentialsRotation)) func(*corev1beta1.Shoot) {
		return func(s *corev1beta1.Shoot) {
			s.Status.Credentials = &corev1beta1.ShootCredentials{Rotation: &corev1beta1.ShootCredentialsRotation{}}
			change(s.Status.Credentials.Rotation)
		}
	}
	for name, tc := range map[string]struct {
		change func(*corev1beta1.Shoot)
		want   bool
	}{
		"annotated":     {change: func(*corev1beta1.Shoot) {}, want: true},
		"not annotated": {change: func(s *corev1beta1.Shoot) { s.Annotations = nil }},
		"hibernating":   {change: func(s *corev1beta1.Shoot) { s.Spec.Hibernation = &corev1beta1.Hibernation{Enabled: new(true)} }},
		"preparing CAs": {change: rotation(func(r *corev1beta1.ShootCredentialsRotation) {
			r.CertificateAuthorities = &corev1beta1.CARotation{Phase: corev1beta1.RotationPreparing}
		})},
		"CAs are prepared": {change: rotation(func(r *corev1beta1.ShootCredentialsRotation) {
			r.CertificateAuthorities = &corev1beta1.CARotation{Phase: corev1beta1.RotationPrepared}
		}), want: true},
		"old CAs still trusted by etcd": {change: rotation(func(r *corev1beta1.ShootCredentialsRotation) {
			r.CertificateAuthorities = &corev1beta1.CARotation{Phase: corev1beta1.RotationCompleted, LastCompletionTriggeredTime: new(metav1.Now())}
		})},
		"completing the key of ServiceAccounts": {change: rotation(func(r *corev1beta1.ShootCredentialsRotation) {
			r.ServiceAccountKey = &corev1beta1.ServiceAccountKeyRotation{Phase: corev1beta1.RotationCompleting}
		})},
		"preparing the encryption key": {change: rotation(func(r *corev1beta1.ShootCredentialsRotation) {
			r.ETCDEncryptionKey = &corev1beta1.ETCDEncryptionKeyRotation{Phase: corev1beta1.RotationPreparing}
		})},
	} {
		t.Run(name, func(t *testing.T) {
			shoot := observedtest.State().Shoot
			shoot.Annotations = map[string]string{constants.ShootSkipReadiness: ""}
			tc.change(shoot)
			if got := skipsReadiness(shoot); got != tc.want {
				t.Errorf("skipsReadiness() = %v, want %v", got, tc.want)
			}
		})
	}
}

// Each task that is left out exists in the flow otherwise, and the shoot is reconciled without them.
func TestFlowWithoutReadiness(t *testing.T) {
	ran := func(annotations map[string]string) (ids []string) {
		o := complete(workers)
		o.Shoot.Annotations = annotations
		f, err := newLandscape(t).reconcileFlow(o)
		if err != nil {
			t.Fatal(err)
		}
		result, err := f.Run(t.Context(), flow.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, timing := range result.Timings {
			ids = append(ids, timing.ID)
		}
		return slices.Sorted(slices.Values(ids))
	}
	all, some := ran(nil), ran(map[string]string{constants.ShootSkipReadiness: "true"})
	all = slices.DeleteFunc(all, func(id string) bool { return slices.Contains(some, id) })
	want := slices.Sorted(slices.Values(slices.Concat(readinessTasks, tasksWhenReady)))
	if diff := cmp.Diff(want, all); diff != "" {
		t.Errorf("tasks that are left out (-want +got):\n%s", diff)
	}
}

// A resource is written, and its extension is not waited for, unless its result is needed.
func TestExtensionsThatAreNotWaitedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		skip, waits bool
		extend      func(context.Context, *stage.Run, *extensionsv1alpha1.Network, func(*extensionsv1alpha1.Network)) error
	}{
		"readiness is skipped": {skip: true, extend: stage.Extend[*extensionsv1alpha1.Network]},
		"it is not":            {waits: true, extend: stage.Extend[*extensionsv1alpha1.Network]},
		"the result is needed": {skip: true, waits: true, extend: stage.ExtendAndAwait[*extensionsv1alpha1.Network]},
	} {
		t.Run(name, func(t *testing.T) {
			waits, seed := false, stagetest.New(t)
			run := seed.Run()
			run.SkipReadiness = tc.skip
			run.SeedAPI = interceptor.NewClient(run.SeedAPI, interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					waits = true
					return c.List(ctx, list, opts...)
				},
			})
			if err := tc.extend(t.Context(), run, run.Network(), func(*extensionsv1alpha1.Network) {}); err != nil {
				t.Fatal(err)
			}
			if waits != tc.waits {
				t.Errorf("it waits: %v, want %v", waits, tc.waits)
			}
			if err := seed.Seed.Get(t.Context(), client.ObjectKeyFromObject(run.Network()), run.Network()); err != nil {
				t.Error(err)
			}
		})
	}
}

// The annotation is for one operation. One that is added while an operation runs is for the next.
func TestRemoveSkipReadiness(t *testing.T) {
	for name, tc := range map[string]struct {
		before, now map[string]string
		left        bool
	}{
		"with a value": {before: map[string]string{constants.ShootSkipReadiness: "true"}, now: map[string]string{constants.ShootSkipReadiness: "true"}},
		"empty":        {before: map[string]string{constants.ShootSkipReadiness: ""}, now: map[string]string{constants.ShootSkipReadiness: ""}},
		"added later":  {now: map[string]string{constants.ShootSkipReadiness: "true"}, left: true},
		"removed":      {before: map[string]string{constants.ShootSkipReadiness: "true"}},
		"none":         {},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLandscape(t)
			shoot := &corev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-dev", Name: "crazy-botany", Annotations: tc.now}}
			if err := l.garden.Create(t.Context(), shoot); err != nil {
				t.Fatal(err)
			}
			before := shoot.DeepCopy()
			before.Annotations = tc.before
			if err := l.removeSkipReadiness(t.Context(), before); err != nil {
				t.Fatal(err)
			}
			if err := l.garden.Get(t.Context(), client.ObjectKeyFromObject(shoot), shoot); err != nil {
				t.Fatal(err)
			}
			if got := hasSkipReadiness(shoot); got != tc.left {
				t.Errorf("the annotation is left: %v, want %v", got, tc.left)
			}
		})
	}
}
