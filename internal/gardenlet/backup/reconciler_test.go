package backup

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	corev1beta1 "gardener.cloud/gardener/api/core/v1beta1"
	extensionsv1alpha1 "gardener.cloud/gardener/api/extensions/v1alpha1"
	"gardener.cloud/gardener/internal/component/extensionobject"
	"gardener.cloud/gardener/internal/stage/stagetest"
	"gardener.cloud/gardener/internal/stage/usercredential"
	"gardener.cloud/gardener/test/behind"
)

// stub is a Kind that fails with an error, or whose credentials cannot be read.
type stub struct {
	err, unreadable error
	deleted         bool
	credentials     usercredential.Credential
}

func (*stub) SeedName(b *corev1beta1.BackupBucket) *string { return b.Spec.SeedName }

func (*stub) Operation(*corev1beta1.BackupBucket) corev1beta1.LastOperationType {
	return corev1beta1.LastOperationTypeReconcile
}

func (*stub) State(context.Context, *corev1beta1.BackupBucket) (extensionobject.State, error) {
	return extensionobject.State{}, nil
}

func (*stub) Migrated(*corev1beta1.BackupBucket) {}

func (*stub) Status(b *corev1beta1.BackupBucket) Status {
	return Status{ObservedGeneration: &b.Status.ObservedGeneration, LastOperation: &b.Status.LastOperation, LastError: &b.Status.LastError}
}

func (*stub) CopyName(b *corev1beta1.BackupBucket) string { return "copy-" + b.Name }

func (s *stub) Credentials(context.Context, *corev1beta1.BackupBucket) (usercredential.Credential, error) {
	return s.credentials, s.unreadable
}

func (s *stub) Prepare(context.Context, *corev1beta1.BackupBucket) (usercredential.Credential, func(*extensionsv1alpha1.BackupBucket, corev1.SecretReference), error) {
	return s.credentials, func(resource *extensionsv1alpha1.BackupBucket, ref corev1.SecretReference) {
		resource.Spec.SecretRef = ref
	}, s.err
}

func (*stub) Applied(_ context.Context, b *corev1beta1.BackupBucket, _ *extensionsv1alpha1.BackupBucket, ready bool) error {
	if ready {
		b.Status.ProviderStatus = &runtime.RawExtension{Raw: []byte(`{}`)}
	}
	return nil
}

func (s *stub) BeforeDeletion(context.Context, *corev1beta1.BackupBucket) error { return s.err }

func (s *stub) AfterDeletion(context.Context, *corev1beta1.BackupBucket) error {
	s.deleted = true
	return nil
}

type fixture struct {
	garden, seed client.WithWatch
	kind         *stub
	reconciler   *Reconciler[*corev1beta1.BackupBucket, *extensionsv1alpha1.BackupBucket]
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), corev1beta1.AddToScheme(scheme), extensionsv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	bucket := &corev1beta1.BackupBucket{Spec: corev1beta1.BackupBucketSpec{SeedName: new("here")}}
	bucket.Name, bucket.Generation = "b", 1
	f := &fixture{
		garden: fake.NewClientBuilder().WithScheme(scheme).WithObjects(bucket).WithStatusSubresource(bucket).Build(),
		seed: fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&extensionsv1alpha1.BackupBucket{}).
			WithIndex(&corev1.Secret{}, "metadata.name", func(object client.Object) []string { return []string{object.GetName()} }).Build(),
		kind: &stub{credentials: usercredential.Credential{Kind: "Secret", Data: map[string][]byte{"password": []byte("1")}}},
	}
	// A gardenlet is not allowed to write to what does not exist any more.
	garden := interceptor.NewClient(f.garden, interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, _ string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			err := c.Status().Patch(ctx, object, patch, options...)
			if apierrors.IsNotFound(err) {
				return apierrors.NewForbidden(corev1beta1.Resource("backupbuckets"), object.GetName(), errors.New("no relationship"))
			}
			return err
		},
	})
	f.reconciler = &Reconciler[*corev1beta1.BackupBucket, *extensionsv1alpha1.BackupBucket]{
		Kind: f.kind, KindName: "BackupBucket", SeedName: "here", GardenCache: garden, GardenAPI: garden, SeedCache: f.seed,
		SeedAPI:    interceptor.NewClient(f.seed, interceptor.Funcs{Watch: stagetest.WatchWithoutList}),
		SyncPeriod: time.Hour, Clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0)),
	}
	return f
}

// reconcile reconciles the BackupBucket and returns it, or nil if it does not exist any more.
func (f *fixture) reconcile(t *testing.T) (*corev1beta1.BackupBucket, reconcile.Result, error) {
	t.Helper()
	key := client.ObjectKey{Name: "b"}
	result, err := f.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
	bucket := &corev1beta1.BackupBucket{}
	if err := f.garden.Get(t.Context(), key, bucket); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	} else if err != nil {
		bucket = nil
	}
	return bucket, result, err
}

// resource edits the BackupBucket in the seed as its extension controller would.
func (f *fixture) resource(t *testing.T, edit func(*extensionsv1alpha1.BackupBucket)) {
	t.Helper()
	resource := &extensionsv1alpha1.BackupBucket{}
	if err := f.seed.Get(t.Context(), client.ObjectKey{Name: "b"}, resource); err != nil {
		t.Fatal(err)
	}
	edit(resource)
	status := resource.DeepCopy()
	if err := f.seed.Update(t.Context(), resource); err != nil {
		t.Fatal(err)
	}
	status.ResourceVersion = resource.ResourceVersion
	if err := f.seed.Status().Update(t.Context(), status); err != nil {
		t.Fatal(err)
	}
}

func TestLifecycle(t *testing.T) {
	f := newFixture(t)
	bucket, _, err := f.reconcile(t)
	if err != nil {
		t.Fatal(err)
	}
	if last := bucket.Status.LastOperation; last == nil || last.State != corev1beta1.LastOperationStateProcessing || bucket.Status.ObservedGeneration != 1 {
		t.Errorf("before the extension has begun, the status is %+v", bucket.Status)
	}
	secret := &corev1.Secret{}
	if err := f.seed.Get(t.Context(), client.ObjectKey{Namespace: "garden", Name: "copy-b"}, secret); err != nil || string(secret.Data["password"]) != "1" {
		t.Errorf("the copy of the credentials has %v: %v", secret.Data, err)
	}
	f.resource(t, func(b *extensionsv1alpha1.BackupBucket) {
		if b.Annotations["gardener.cloud/operation"] != "reconcile" || b.Spec.SecretRef.Name != "copy-b" {
			t.Errorf("the extension is requested with annotations %v and spec %+v", b.Annotations, b.Spec)
		}
		delete(b.Annotations, "gardener.cloud/operation")
		b.UID, b.Finalizers = "1", []string{"example.com/extension"} // the fake API server sets no UID
		b.Status.LastOperation = &corev1beta1.LastOperation{State: corev1beta1.LastOperationStateSucceeded, LastUpdateTime: metav1.Unix(0, 0)}
	})
	bucket, result, err := f.reconcile(t)
	if err != nil {
		t.Fatal(err)
	}
	if last := bucket.Status.LastOperation; last.Description != "BackupBucket has been reconciled." || last.Progress != 100 || bucket.Status.ProviderStatus == nil {
		t.Errorf("when the extension is ready, the status is %+v", bucket.Status)
	}
	if result.RequeueAfter < time.Hour || result.RequeueAfter > 72*time.Minute {
		t.Errorf("it is reconciled again after %s, want an hour and a little more", result.RequeueAfter)
	}
	f.resource(t, func(b *extensionsv1alpha1.BackupBucket) {
		if b.Annotations["gardener.cloud/operation"] != "" {
			t.Error("an unchanged BackupBucket is reconciled by the extension again")
		}
	})

	f.kind.credentials.Data = map[string][]byte{"password": []byte("2")}
	if bucket, _, err = f.reconcile(t); err != nil || bucket.Status.LastOperation.State != corev1beta1.LastOperationStateProcessing {
		t.Errorf("with new credentials, the status is %+v: %v", bucket.Status, err)
	}
	if err := f.seed.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil || string(secret.Data["password"]) != "2" {
		t.Errorf("the copy of the new credentials has %v: %v", secret.Data, err)
	}
	f.resource(t, func(b *extensionsv1alpha1.BackupBucket) {
		if b.Annotations["gardener.cloud/operation"] != "reconcile" {
			t.Error("the extension is not requested to use new credentials")
		}
	})

	if err := f.garden.Delete(t.Context(), bucket); err != nil {
		t.Fatal(err)
	}
	if bucket, _, err = f.reconcile(t); err != nil || bucket.Status.LastOperation.Description != "Waiting until the extension has deleted the BackupBucket." {
		t.Errorf("during the deletion, the status is %+v: %v", bucket.Status.LastOperation, err)
	}
	f.resource(t, func(b *extensionsv1alpha1.BackupBucket) {
		if b.DeletionTimestamp == nil || b.Annotations["confirmation.gardener.cloud/deletion"] != "true" {
			t.Errorf("the BackupBucket in the seed is not deleted: %+v", b.ObjectMeta)
		}
	})
	resource := &extensionsv1alpha1.BackupBucket{}
	resource.Name = "b"
	if err := f.seed.Patch(t.Context(), resource, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	if bucket, _, err = f.reconcile(t); err != nil || bucket != nil || !f.kind.deleted {
		t.Errorf("after the deletion, the BackupBucket is %+v: %v", bucket, err)
	}
	if err := f.seed.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the copy of the credentials still exists: %v", err)
	}
}

// The extension may have to renew credentials that it has generated, and only does when it is requested.
func TestExtensionIsRequestedAgainAfterAWhile(t *testing.T) {
	for name, tc := range map[string]struct {
		period  time.Duration
		change  func(*extensionsv1alpha1.BackupBucket)
		request bool
	}{
		"after the period": {period: 12 * time.Hour, request: true},
		"before its end":   {period: 14 * time.Hour},
		"without a period": {},
		"while the extension has not begun": {period: 12 * time.Hour, change: func(b *extensionsv1alpha1.BackupBucket) {
			b.Annotations["gardener.cloud/timestamp"] = time.Unix(0, 0).UTC().Format(time.RFC3339Nano)
		}},
		"while the extension works": {period: 12 * time.Hour, change: func(b *extensionsv1alpha1.BackupBucket) {
			b.Status.LastOperation.State = corev1beta1.LastOperationStateProcessing
		}},
		"after the extension gave up": {request: true, change: func(b *extensionsv1alpha1.BackupBucket) {
			b.Status.LastOperation.State = corev1beta1.LastOperationStateFailed
		}},
		"just after the extension gave up": {change: func(b *extensionsv1alpha1.BackupBucket) {
			b.Status.LastOperation = &corev1beta1.LastOperation{
				State: corev1beta1.LastOperationStateFailed, LastUpdateTime: metav1.NewTime(time.Unix(0, 0).Add(-time.Minute)),
			}
		}},
		"before the extension has reported after the next request": {change: func(b *extensionsv1alpha1.BackupBucket) {
			b.Status.LastOperation.State = corev1beta1.LastOperationStateFailed
			b.Annotations["gardener.cloud/timestamp"] = time.Unix(0, 0).Add(-time.Minute).UTC().Format(time.RFC3339Nano)
		}},
		"while the extension retries": {change: func(b *extensionsv1alpha1.BackupBucket) {
			b.Status.LastOperation.State = corev1beta1.LastOperationStateError
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			if _, _, err := f.reconcile(t); err != nil {
				t.Fatal(err)
			}
			ago := time.Unix(0, 0).Add(-13 * time.Hour)
			f.resource(t, func(b *extensionsv1alpha1.BackupBucket) {
				delete(b.Annotations, "gardener.cloud/operation")
				b.Annotations["gardener.cloud/timestamp"] = ago.UTC().Format(time.RFC3339Nano)
				b.UID = "1" // the fake API server sets none
				b.Status.LastOperation = &corev1beta1.LastOperation{State: corev1beta1.LastOperationStateSucceeded, LastUpdateTime: metav1.NewTime(ago)}
				if tc.change != nil {
					tc.change(b)
				}
			})
			f.reconciler.RequestPeriod = tc.period
			if _, _, err := f.reconcile(t); err != nil {
				t.Fatal(err)
			}
			f.resource(t, func(b *extensionsv1alpha1.BackupBucket) {
				if requested := b.Annotations["gardener.cloud/operation"] == "reconcile"; requested != tc.request {
					t.Errorf("the extension is requested: %t", requested)
				}
			})
		})
	}
}

// A pass may fail after it has written the copy. The next one finds the copy complete.
func TestExtensionIsRequestedForNewCredentialsAfterAFailure(t *testing.T) {
	f := newFixture(t)
	if _, _, err := f.reconcile(t); err != nil {
		t.Fatal(err)
	}
	f.resource(t, func(b *extensionsv1alpha1.BackupBucket) {
		delete(b.Annotations, "gardener.cloud/operation")
		b.UID = "1" // the fake API server sets none
	})
	f.kind.credentials.Data = map[string][]byte{"password": []byte("2")}
	f.reconciler.SeedCache = interceptor.NewClient(f.seed, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			if _, ok := object.(*extensionsv1alpha1.BackupBucket); ok {
				return errors.New("connection refused")
			}
			return c.Patch(ctx, object, patch, options...)
		},
	})
	if _, _, err := f.reconcile(t); err == nil {
		t.Fatal("the pass does not fail")
	}
	f.reconciler.SeedCache = f.seed
	if _, _, err := f.reconcile(t); err != nil {
		t.Fatal(err)
	}
	f.resource(t, func(b *extensionsv1alpha1.BackupBucket) {
		if b.Annotations["gardener.cloud/operation"] != "reconcile" {
			t.Error("the extension is not requested to use new credentials")
		}
	})
}

// The credentials may change while backups are kept, and while the extension fails to delete them with the former ones.
func TestDeletionWithNewCredentials(t *testing.T) {
	for name, tc := range map[string]struct {
		unreadable error
		late       bool // they change when the extension has tried
		want       string
	}{
		"before the deletion":       {want: "2"},
		"during the deletion":       {late: true, want: "2"},
		"that cannot be read":       {unreadable: errors.New("not found"), want: "1"},
		"that cannot be read, late": {unreadable: errors.New("not found"), late: true, want: "1"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			bucket, _, err := f.reconcile(t)
			if err != nil {
				t.Fatal(err)
			}
			f.resource(t, func(b *extensionsv1alpha1.BackupBucket) {
				delete(b.Annotations, "gardener.cloud/operation")
				b.Finalizers = []string{"example.com/extension"}
			})
			if err := f.garden.Delete(t.Context(), bucket); err != nil {
				t.Fatal(err)
			}
			if tc.late {
				if _, _, err := f.reconcile(t); err != nil {
					t.Fatal(err)
				}
			}
			f.kind.credentials.Data, f.kind.unreadable = map[string][]byte{"password": []byte("2")}, tc.unreadable
			if _, result, err := f.reconcile(t); err != nil || result.RequeueAfter == 0 {
				t.Fatalf("Reconcile() = %v, %v, want another pass later", result, err)
			}
			secret := &corev1.Secret{}
			if err := f.seed.Get(t.Context(), client.ObjectKey{Namespace: "garden", Name: "copy-b"}, secret); err != nil || string(secret.Data["password"]) != tc.want {
				t.Errorf("the copy of the credentials has %s, want %s: %v", secret.Data["password"], tc.want, err)
			}
			f.resource(t, func(b *extensionsv1alpha1.BackupBucket) {
				if b.DeletionTimestamp == nil {
					t.Error("the BackupBucket in the seed is not deleted")
				}
				if again := b.Annotations["gardener.cloud/operation"] == "reconcile"; again != (tc.late && tc.unreadable == nil) {
					t.Errorf("whether the deletion is requested again: %v", again)
				}
			})
		})
	}
}

func TestErrors(t *testing.T) {
	failure := errors.New("no credentials")
	for name, tc := range map[string]struct {
		err             error
		terminal, fails bool
		after           time.Duration
		want            corev1beta1.LastOperation
	}{
		"an error is retried": {
			err: failure, fails: true,
			want: corev1beta1.LastOperation{State: corev1beta1.LastOperationStateError, Description: "no credentials"},
		},
		"a terminal error is not": {
			err: reconcile.TerminalError(failure), fails: true, terminal: true,
			want: corev1beta1.LastOperation{State: corev1beta1.LastOperationStateError, Description: "no credentials"},
		},
		"pending": {
			err: &Pending{Message: "Waiting.", After: time.Minute}, after: time.Minute,
			want: corev1beta1.LastOperation{State: corev1beta1.LastOperationStateProcessing, Description: "Waiting."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.kind.err = tc.err
			bucket, result, err := f.reconcile(t)
			if (err != nil) != tc.fails || errors.Is(err, reconcile.TerminalError(nil)) != tc.terminal || result.RequeueAfter != tc.after {
				t.Errorf("Reconcile() = %v, %v", result, err)
			}
			got := *bucket.Status.LastOperation
			tc.want.Type, tc.want.LastUpdateTime = corev1beta1.LastOperationTypeReconcile, got.LastUpdateTime
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("last operation (-want +got):\n%s", diff)
			}
		})
	}
}

// The copy of a WorkloadIdentity asks for a token. The extension is requested when it has one, and later passes keep it.
func TestWorkloadIdentity(t *testing.T) {
	const nameKey, renewKey = "workloadidentity.security.gardener.cloud/name", "workloadidentity.security.gardener.cloud/token-renew-timestamp"
	f := newFixture(t)
	identity := func(name string) usercredential.Credential {
		return usercredential.Credential{
			Kind: "WorkloadIdentity", Data: map[string][]byte{"config": []byte("c")},
			Labels: map[string]string{"security.gardener.cloud/purpose": "workload-identity-token-requestor"}, Annotations: map[string]string{nameKey: name},
		}
	}
	secret, key := &corev1.Secret{}, client.ObjectKey{Namespace: "garden", Name: "copy-b"}
	pass := func(ctx context.Context) error {
		_, err := f.reconciler.Reconcile(ctx, reconcile.Request{NamespacedName: client.ObjectKey{Name: "b"}})
		// The fake API server does not look at the end of the context.
		if err := f.seed.Get(ctx, key, secret); err != nil {
			t.Fatal(err)
		}
		return err
	}
	requested := func() bool {
		return f.seed.Get(t.Context(), client.ObjectKey{Name: "b"}, &extensionsv1alpha1.BackupBucket{}) == nil
	}

	f.kind.credentials = identity("w")
	if err := stagetest.UntilIdle(t, pass); err == nil || requested() {
		t.Errorf("the extension is requested before there is a token, or the pass succeeds: %v", err)
	}
	if secret.Annotations[nameKey] != "w" || secret.Labels["security.gardener.cloud/purpose"] == "" {
		t.Fatalf("the copy does not ask for a token: %v", secret.ObjectMeta)
	}

	secret.Data["token"], secret.Annotations[renewKey] = []byte("t"), "2026-03-04T12:00:00Z"
	if err := f.seed.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := pass(t.Context()); err != nil || !requested() {
			t.Fatalf("with a token, the extension is not requested: %v", err)
		}
		if diff := cmp.Diff(map[string][]byte{"config": []byte("c"), "token": []byte("t")}, secret.Data); diff != "" || secret.Annotations[renewKey] == "" {
			t.Errorf("data of the copy, with annotations %v (-want +got):\n%s", secret.Annotations, diff)
		}
	}

	// The token of another one is not kept, nor that of credentials which are no WorkloadIdentity any more.
	f.kind.credentials = identity("other")
	if err := stagetest.UntilIdle(t, pass); err == nil || secret.Data["token"] != nil || secret.Annotations[renewKey] != "" {
		t.Errorf("the token of another WorkloadIdentity is kept: %v, %v", secret, err)
	}
	f.kind.credentials = usercredential.Credential{Kind: "Secret", Data: map[string][]byte{"password": []byte("2")}}
	if err := pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string][]byte{"password": []byte("2")}, secret.Data); diff != "" || len(secret.Labels)+len(secret.Annotations) > 0 {
		t.Errorf("data of the copy, with metadata %v (-want +got):\n%s", secret.ObjectMeta, diff)
	}
}

func TestReconcileWithStaleCache(t *testing.T) {
	f := newFixture(t)
	bucket := &corev1beta1.BackupBucket{}
	bucket.Name = "b"
	behind.Case[*corev1beta1.BackupBucket]{
		API: f.garden, Object: bucket,
		Status: func(b *corev1beta1.BackupBucket) any { return b.Status.LastOperation.State },
		Other: func(b *corev1beta1.BackupBucket) {
			b.Status.LastOperation.State = corev1beta1.LastOperationStateSucceeded
		},
		Pass: func(cache client.WithWatch) {
			f.reconciler.GardenCache = cache
			if _, _, err := f.reconcile(t); err != nil {
				t.Fatal(err)
			}
		},
	}.Run(t)
}
