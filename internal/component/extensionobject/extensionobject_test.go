package extensionobject_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	"gardener.cloud/gardener/api/core/v1beta1/constants"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/component/extensionobject"
	"gardener.cloud/gardener/internal/stage/stagetest"
	"gardener.cloud/gardener/pkg/errorcode"
)

// A wait ends at once with an error that only the user can fix, if it is of the operation that was requested last. Other errors are waited for, as
// extensions retry.
func TestWaitsEndAtOnceIfTheUserHasToAct(t *testing.T) {
	const quota, depleted = corev1beta1.ErrorInfraQuotaExceeded, corev1beta1.ErrorInfraResourcesDepleted
	const reconciliation, deletion = corev1beta1.LastOperationTypeReconcile, corev1beta1.LastOperationTypeDelete
	const failed, processing = corev1beta1.LastOperationStateError, corev1beta1.LastOperationStateProcessing
	for name, tc := range map[string]struct {
		code      corev1beta1.ErrorCode
		operation corev1beta1.LastOperationType
		state     corev1beta1.LastOperationState
		// age is how long before the request the error was reported.
		age       time.Duration
		requested bool
		deleting  bool
		// want is how long the wait takes.
		want time.Duration
	}{
		"quota":                            {code: quota, operation: reconciliation, state: failed},
		"no machines for the moment":       {code: depleted, operation: reconciliation, state: failed, want: 30 * time.Second},
		"without a code":                   {operation: reconciliation, state: failed, want: 30 * time.Second},
		"from before the request":          {code: quota, operation: reconciliation, state: failed, age: time.Minute, want: 30 * time.Second},
		"it is tried again":                {code: quota, operation: reconciliation, state: processing, want: 30 * time.Second},
		"requested, but not begun":         {code: quota, operation: reconciliation, state: failed, requested: true, want: time.Hour},
		"a deletion":                       {code: quota, operation: deletion, state: failed, deleting: true},
		"a deletion, for the moment":       {code: depleted, operation: deletion, state: failed, deleting: true, want: 30 * time.Second},
		"a deletion of what was not ready": {code: quota, operation: reconciliation, state: failed, deleting: true, want: 30 * time.Second},
		"a deletion, from before":          {code: quota, operation: deletion, state: failed, age: time.Minute, deleting: true, want: 30 * time.Second},
		"a deletion, requested, not begun": {code: quota, operation: deletion, state: failed, deleting: true, requested: true, want: 30 * time.Second},
		"a deletion that is tried again":   {code: quota, operation: deletion, state: processing, deleting: true, want: 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				now := time.Now()
				object := infrastructure()
				object.Annotations = map[string]string{constants.GardenerTimestamp: now.Format(time.RFC3339Nano)}
				if tc.requested {
					object.Annotations[constants.GardenerOperation] = constants.GardenerOperationReconcile
				}
				object.Status.LastOperation = &corev1beta1.LastOperation{
					Type: tc.operation, State: tc.state, LastUpdateTime: metav1.NewTime(now.Add(-tc.age).Truncate(time.Second)),
				}
				object.Status.LastError = &corev1beta1.LastError{Description: "no luck"}
				if tc.code != "" {
					object.Status.LastError.Codes = []corev1beta1.ErrorCode{tc.code}
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				wait := extensionobject.Await
				if tc.deleting {
					wait = extensionobject.AwaitGone
				}
				err := wait(ctx, extensionobject.Values{Client: seed(t, object), Clock: clock.RealClock{}}, infrastructure())
				if took := time.Since(now); took != tc.want {
					t.Errorf("the wait took %s, want %s: %v", took, tc.want, err)
				}
				if needsUser := errorcode.NeedsUser(errorcode.Of(err)); tc.want == 0 && !needsUser {
					t.Errorf("error %v has no code that only the user can fix", err)
				}
			})
		})
	}
}

// A wait for an extension that does not run says which one that is. One that works has a description of its own.
func TestWaitsSayWhichExtensionDoesNotRun(t *testing.T) {
	const advice = ` See the ControllerInstallation of the extension for type "acme" on the seed, and its pods.`
	for name, tc := range map[string]struct {
		requested bool
		last      *corev1beta1.LastOperation
		want      string
	}{
		"no controller has seen it": {want: `Infrastructure "i": The extension has not observed the last change yet.` + advice},
		"the operation is not begun": {
			requested: true, last: &corev1beta1.LastOperation{State: corev1beta1.LastOperationStateSucceeded}, want: `Infrastructure "i": The extension has not begun yet.` + advice,
		},
		"it works": {
			last: &corev1beta1.LastOperation{State: corev1beta1.LastOperationStateProcessing, Description: "creating a network"}, want: `Infrastructure "i": creating a network`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				object := infrastructure()
				object.Name, object.Spec.Type, object.Status.LastOperation = "i", "acme", tc.last
				if tc.requested {
					object.Annotations = map[string]string{constants.GardenerOperation: constants.GardenerOperationReconcile}
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				err := extensionobject.Await(ctx, extensionobject.Values{Client: seed(t, object), Clock: clock.RealClock{}}, object.DeepCopy())
				if want := tc.want + " (context deadline exceeded)"; err == nil || err.Error() != want {
					t.Errorf("error is %v\nwant: %s", err, want)
				}
			})
		})
	}
}

// A wait for an extension that does not run ends early and says which one that is, whatever it waits for. One whose heartbeat goes on is waited for.
func TestWaitsEndIfTheExtensionDoesNotRun(t *testing.T) {
	const end = 10 * time.Minute
	deletion, migration := extensionobject.AwaitGone, extensionobject.AwaitMigrated
	for name, tc := range map[string]struct {
		wait func(context.Context, extensionobject.Values, extensionsv1alpha1.Object) error
		// renewed is how long before the wait the heartbeat was renewed; zero means never. It is renewed again after these times.
		renewed time.Duration
		again   []time.Duration
		// without is whether it is installed without a ControllerInstallation.
		without bool
		want    time.Duration
	}{
		"it has not run for long":              {renewed: time.Hour, want: 30 * time.Second},
		"it has not run for long, a deletion":  {wait: deletion, renewed: time.Hour, want: 30 * time.Second},
		"it has not run for long, a migration": {wait: migration, renewed: time.Hour, want: 30 * time.Second},
		"it stops":                             {renewed: time.Second, want: 59 * time.Second},
		"it stops later":                       {renewed: time.Second, again: []time.Duration{20 * time.Second, 50 * time.Second}, want: 110 * time.Second},
		"it starts":                            {renewed: time.Hour, again: []time.Duration{29 * time.Second}, want: 89 * time.Second},
		"without a heartbeat":                  {want: end},
		"without a ControllerInstallation":     {renewed: time.Hour, without: true, want: end},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				object, began := infrastructure(), time.Now()
				object.Spec.Type = "acme"
				if tc.wait == nil {
					tc.wait = extensionobject.Await
				}
				c := seed(t, object)
				lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "extension-acme-1", Name: "gardener-extension-heartbeat"}}
				if tc.renewed > 0 {
					lease.Spec.RenewTime = new(metav1.NewMicroTime(began.Add(-tc.renewed)))
					if err := c.Create(t.Context(), lease); err != nil {
						t.Fatal(err)
					}
				}
				for _, after := range tc.again {
					time.AfterFunc(after, func() {
						lease.Spec.RenewTime = new(metav1.NowMicro())
						if err := c.Update(t.Context(), lease); err != nil {
							t.Error(err)
						}
					})
				}
				v := extensionobject.Values{Client: c, Clock: clock.RealClock{}, Controller: func(_ context.Context, kind, typ string) (*corev1beta1.ControllerInstallation, error) {
					if tc.without || kind != "Infrastructure" || typ != "acme" {
						return nil, nil //nolint:nilnil // as documented
					}
					ci := &corev1beta1.ControllerInstallation{ObjectMeta: metav1.ObjectMeta{Name: "acme-1"}}
					ci.Spec.RegistrationRef.Name = "provider-acme"
					return ci, nil
				}}
				ctx, cancel := context.WithTimeout(t.Context(), end)
				defer cancel()
				err := tc.wait(ctx, v, infrastructure())
				if took := time.Since(began); took != tc.want {
					t.Errorf("the wait took %s, want %s: %v", took, tc.want, err)
				}
				var since time.Duration
				if n := len(tc.again); n > 0 {
					since = tc.again[n-1]
				} else {
					since = -tc.renewed
				}
				want := fmt.Sprintf(`(extension "provider-acme" does not run: it has not renewed its heartbeat, Lease "gardener-extension-heartbeat", since %s: `+
					`see its pods and their logs in namespace "extension-acme-1" of the seed, and ControllerInstallation "acme-1")`, began.Add(since).UTC().Format(time.RFC3339))
				if err == nil || strings.HasSuffix(err.Error(), want) != (tc.want < end) {
					t.Errorf("error is %v\nwant: %s", err, want)
				}
			})
		})
	}
}

// A deletion that has failed as the user has to act is requested again by the next run, which does not take the old error for a new one.
func TestDeleteRequestsAFailedDeletionAgain(t *testing.T) {
	now := time.Now()
	for name, tc := range map[string]struct {
		codes []corev1beta1.ErrorCode
		want  string
	}{
		"only the user can fix it": {codes: []corev1beta1.ErrorCode{corev1beta1.ErrorInfraUnauthorized}, want: constants.GardenerOperationReconcile},
		"the extension retries":    {codes: []corev1beta1.ErrorCode{corev1beta1.ErrorRetryableInfraDependencies}},
	} {
		t.Run(name, func(t *testing.T) {
			object := infrastructure()
			object.DeletionTimestamp, object.Finalizers = &metav1.Time{Time: now}, []string{"example.com/infrastructure"}
			object.Annotations = map[string]string{constants.GardenerTimestamp: now.Add(-time.Minute).Format(time.RFC3339Nano)}
			object.Status.LastOperation = &corev1beta1.LastOperation{
				Type: corev1beta1.LastOperationTypeDelete, State: corev1beta1.LastOperationStateError, LastUpdateTime: metav1.NewTime(now),
			}
			object.Status.LastError = &corev1beta1.LastError{Description: "no luck", Codes: tc.codes}
			c := seed(t, object)
			if err := extensionobject.Delete(t.Context(), extensionobject.Values{Client: c, Clock: clock.RealClock{}}, infrastructure()); err != nil {
				t.Fatal(err)
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, object.Annotations[constants.GardenerOperation]); diff != "" {
				t.Errorf("operation (-want +got):\n%s", diff)
			}
		})
	}
}

func infrastructure() *extensionsv1alpha1.Infrastructure {
	return &extensionsv1alpha1.Infrastructure{ObjectMeta: metav1.ObjectMeta{Namespace: "shoot--dev--a", Name: "a"}}
}

func seed(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	return fake.NewClientBuilder().WithScheme(stagetest.Scheme(t)).WithObjects(objects...).
		WithIndex(&extensionsv1alpha1.Infrastructure{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).
		WithIndex(&coordinationv1.Lease{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).
		WithInterceptorFuncs(interceptor.Funcs{Watch: stagetest.WatchWithoutList}).Build()
}
